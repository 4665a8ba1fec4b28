"""Protocols that the core depends on; hub/wiring.py chooses the implementations."""

from collections.abc import Callable
from typing import Literal, Protocol

from agents.core.types import Ask, OpenTurn, SettledTurn, TurnEnding
from agents.core.waiting import RunningTurn


class Link(Protocol):
    """A way to reach agents. `Session.link` names the link of a session; `hub.wiring` lists all links.

    Database rows show whether an agent can be asked now. A link over connections keeps a `Connection`, which names
    the process that has the socket; a link without connections keeps `Session.reachable_from`.
    """

    def deliver_now(self, running: RunningTurn) -> bool:
        """Do what `deliver` does if it need not wait; False: nothing was done, and `deliver` has to be used."""

    async def deliver(self, running: RunningTurn) -> None:
        """Send the prompt. The reply goes to `WaitingTurns.take` of the process that waits.

        Raises:
            NotDelivered: the prompt provably never left the hub.
            NoReceipt: it is not known whether the prompt left.
        """

    async def withdraw(self, turn: OpenTurn) -> None:
        """Notify the agent, if the link can, that its caller wants no answer any more; the message may be lost."""

    async def close(self) -> None:
        """Stop the link's remaining work, because the process ends."""


class Spans(Protocol):
    """Records how long each step of a turn took. Times are nanoseconds since 1970."""

    def admitted(self, ask: Ask, began_ns: int, reason: str = "") -> None:
        """Record that the decision is committed; `reason`: the reason of a refusal."""

    def delivered(self, turn: OpenTurn, began_ns: int, failure: str = "") -> None:
        """Record that the prompt was delivered, or why it was not (`failure`)."""

    def settled(self, turn: OpenTurn, ending: TurnEnding, settled: SettledTurn, began_ns: int) -> None:
        """Record that the end is committed, and with it the whole ask is over."""

    def close(self) -> None:
        """Send the remaining records; takes a few seconds at most."""


MESSAGES_A_SECOND = 100.0  # the rate of one credential's messages to sessions of its user
MESSAGES_AT_ONCE = 200.0  # the burst of one credential's messages after a pause


class AskLimits(Protocol):
    """The rate limit of callers, over all processes; each process counts alone while Redis is unreachable.

    An ask with a `credential_id` is counted by that credential instead, at the rate of messages.

    `is_local`: this process counts alone, so `count` may be called, from any thread.
    """

    is_local: bool

    async def retry_in_s(self, ask: Ask) -> int:
        """Count one ask; returns 0 if the ask is within the rate, else the seconds until the next one would be."""

    def count(self, ask: Ask) -> int:
        """Do what `retry_in_s` does, without waiting; only if `is_local`."""

    async def close(self) -> None:
        """Close the connections to Redis, if any."""


RouteOrigin = Literal["operator", "mcp"]


class Notifier(Protocol):
    """Sends an agent the answer to a question that the agent or its operator asked without waiting."""

    async def route_reply(
        self, session_id: int, *, chat_id: str, from_name: str, text: str, origin: RouteOrigin
    ) -> None:
        """Send the answer to the session's agent, if it is connected; the frame may be lost.

        `origin`: `operator` when an operator of the session asked, `mcp` when its agent did.
        """


class FollowUpTaker(Protocol):
    """Takes follow-ups: replies that an agent sends after the reply that ended its turn."""

    async def take(self, session_id: int, chat_id: str, text: str, *, only_of: int | None) -> None:
        """Store a follow-up for the caller of its turn.

        `only_of`: the id of the only caller whose turns may be followed up; None: any caller's.

        Raises:
            NoSuchTurn, TooManyFollowUps: nothing was stored.
        """


Clock = Callable[[], float]
