"""The ledger with counters and spans around it."""

import time
from typing import Protocol

from agents.core.errors import Denied, NotPublished, Unavailable
from agents.core.ledger import ExtraWrites, Ledger
from agents.core.ledger.work import Admit
from agents.core.ledger.worker import Item
from agents.core.ports import Link
from agents.core.types import Ask, Ending, OpenTurn, SettledTurn
from agents.models.choices import Outcome
from agents.transcript.announcements import Carrier
from hub.logs import about_turn
from hub.monitoring.counts import Counts
from kit.disk_reserve import Reserve


class Spans(Protocol):
    """Records what a turn took its time with. Times are nanoseconds since 1970."""

    def admitted(self, ask: Ask, began_ns: int, reason: str = "") -> None:
        """The decision is durable; a `reason` when it was no."""

    def delivered(self, turn: OpenTurn, began_ns: int, failure: str = "") -> None:
        """The prompt was handed over; a `failure` when it was not."""

    def settled(self, turn: OpenTurn, ending: Ending, settled: SettledTurn, began_ns: int) -> None:
        """The end is durable: the whole ask is over."""

    def close(self) -> None:
        """Send what is left; takes a few seconds at most."""


class MeasuredLedger(Ledger):
    """Counts what it decides and settles; with `spans`, times it too."""

    def __init__(
        self,
        *,
        home: str,
        carry: Carrier | None,
        counts: Counts,
        spans: Spans | None = None,
        reserve: Reserve | None = None,
    ) -> None:
        super().__init__(home=home, carry=carry, on_batch=counts.committed, reserve=reserve)
        self._counts = counts
        self._spans = spans

    async def _decided(self, item: Item) -> OpenTurn:
        began_ns = time.time_ns() if self._spans else 0
        try:
            turn = await super()._decided(item)
        except Denied as denied:
            self._refused(item.work.ask, began_ns, Outcome.DENIED, denied.reason)
            raise
        except NotPublished:
            self._refused(item.work.ask, began_ns, "not_taken", "not_published")
            raise
        except Unavailable:
            if isinstance(item.work, Admit):  # else nothing was found that could ask
                self._refused(item.work.ask, began_ns, "not_taken", "unavailable")
            raise
        about_turn(turn.ask.chat_id)
        if self._spans:
            self._spans.admitted(turn.ask, began_ns)
        return turn

    async def deny(self, ask: Ask, denied: Denied, *, in_queue: bool = False) -> None:
        """See `Ledger.deny`."""
        await super().deny(ask, denied, in_queue=in_queue)
        self._refused(ask, time.time_ns(), Outcome.DENIED, denied.reason)

    async def settle(self, turn: OpenTurn, ending: Ending, extra_writes: ExtraWrites | None = None) -> SettledTurn:
        """See `Ledger.settle`."""
        began_ns = time.time_ns() if self._spans else 0
        settled = await super().settle(turn, ending, extra_writes)
        self._counts.ended(settled.outcome, settled.reason, ending.latency_ms)
        if self._spans:
            self._spans.settled(turn, ending, settled, began_ns)
        return settled

    def _refused(self, ask: Ask, began_ns: int, outcome: str, reason: str) -> None:
        self._counts.refused(outcome, reason)
        if self._spans:
            self._spans.admitted(ask, began_ns, reason)


class MeasuredLink:
    """A link whose deliveries are timed. See `agents.core.ports.Link`."""

    def __init__(self, link: Link, spans: Spans) -> None:
        self._link = link
        self._spans = spans

    async def deliver(self, turn: OpenTurn) -> None:
        """See `agents.core.ports.Link`."""
        began_ns, failure = time.time_ns(), ""
        try:
            await self._link.deliver(turn)
        except BaseException as why:
            failure = type(why).__name__
            raise
        finally:
            self._spans.delivered(turn, began_ns, failure)

    async def withdraw(self, turn: OpenTurn) -> None:
        """See `agents.core.ports.Link`."""
        await self._link.withdraw(turn)

    async def close(self) -> None:
        """See `agents.core.ports.Link`."""
        await self._link.close()
