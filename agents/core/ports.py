"""What the core needs of its surroundings, as contracts; hub/wiring.py names who keeps them."""

from collections.abc import Callable, Coroutine
from typing import Any, Literal, Protocol

from agents.core.types import OpenTurn


class Link(Protocol):
    """One way to reach agents. `Session.link` names the link of a session; `hub.wiring` lists all links.

    Rows say whether an agent can be asked now. A link over connections keeps a `Connection`, which names the
    process that holds it; a link without connections keeps `Session.reachable_from`.
    """

    async def deliver(self, turn: OpenTurn) -> None:
        """Send the prompt. The reply goes to `WaitingTurns.take` of the process that waits.

        Raises:
            NotDelivered: it provably never left.
            NoReceipt: it is not known whether it left.
        """

    async def withdraw(self, turn: OpenTurn) -> None:
        """Tell the agent that its caller wants no answer any more, if it can be told; the message may be lost."""

    async def close(self) -> None:
        """Stop what the link still does; the process ends."""


class Limits(Protocol):
    """How fast one caller may ask, over all processes; by each for itself when its memory is out of reach.

    `is_local`: all is counted in this process, so that `count` may be used, from any thread.
    """

    is_local: bool

    async def retry_in_s(self, caller_id: int) -> int:
        """Count one ask; 0 when it is within the rate, else seconds until the next would be."""

    def count(self, caller_id: int) -> int:
        """The same in this process alone, at once."""

    async def close(self) -> None:
        """Let go of what it holds open."""


RouteOrigin = Literal["operator", "mcp"]


class Notifier(Protocol):
    """Tells an agent what came back on a question that its operator or itself sent elsewhere without waiting."""

    async def route_reply(
        self, session_id: int, *, chat_id: str, from_name: str, text: str, origin: RouteOrigin
    ) -> None:
        """Show the answer to the session's agent, if it is connected; it may be lost.

        `origin`: `operator` when an operator of the session asked, `mcp` when its agent did.
        """


Clock = Callable[[], float]
Release = Callable[[str, str], Coroutine[Any, Any, None]]  # a chat id, and its late reply or nothing
