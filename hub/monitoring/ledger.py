"""The ledger with counters and spans around it. Counters count since the start of the process, without locks."""

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from typing import Protocol

from agents.core.errors import Denied, NotPublished, Unavailable
from agents.core.ledger import ExtraWrites, Ledger
from agents.core.ledger.work import Admit
from agents.core.ledger.worker import Item, Reserve
from agents.core.ports import Link
from agents.core.types import Ask, OpenTurn, SettledTurn, TurnEnding
from agents.models.choices import Outcome
from agents.transcript.announcements import Carrier
from agnt.service.figures import AgntCounts
from hub.logs import current_turn

LATENCY_BOUNDS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
BATCH_BOUNDS = (1, 2, 4, 8, 16, 32, 64, 128)


class Histogram:
    """How many values were at most each bound; written by one thread."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        """Count one."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.sum += value

    def buckets(self) -> list[tuple[str, float]]:
        """Bound and how many values were at most that; the last is all."""
        total, found = 0.0, []
        for bound, count in zip([*map(str, self._bounds), "+Inf"], list(self._counts), strict=True):
            total += count
            found.append((bound, total))
        return found


class Counts:
    """Asks by how they ended and why, how long turns took, how many pieces of work the ledger wrote at once.

    `agnt`: what the endpoint of AGNT counts.
    """

    def __init__(self) -> None:
        self.asks: Counter[tuple[str, str]] = Counter()
        self.latency_s = Histogram(LATENCY_BOUNDS_S)
        self.batches = Histogram(BATCH_BOUNDS)
        self.agnt = AgntCounts()

    def refused(self, outcome: str, reason: str) -> None:
        """An ask that became no turn."""
        self.asks[outcome, reason] += 1

    def ended(self, outcome: str, reason: str, latency_ms: int | None) -> None:
        """A turn as its row says that it ended."""
        self.asks[outcome, reason] += 1
        if latency_ms is not None:
            self.latency_s.add(latency_ms / 1000)

    def committed(self, size: int) -> None:
        """The ledger took so many pieces of work at once; called by its thread."""
        self.batches.add(size)


class Spans(Protocol):
    """Records what a turn took its time with. Times are nanoseconds since 1970."""

    def admitted(self, ask: Ask, began_ns: int, reason: str = "") -> None:
        """The decision is durable; a `reason` when it was no."""

    def delivered(self, turn: OpenTurn, began_ns: int, failure: str = "") -> None:
        """The prompt was handed over; a `failure` when it was not."""

    def settled(self, turn: OpenTurn, ending: TurnEnding, settled: SettledTurn, began_ns: int) -> None:
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
        current_turn.set(turn.ask.chat_id)
        if self._spans:
            self._spans.admitted(turn.ask, began_ns)
        return turn

    async def deny(self, ask: Ask, denied: Denied, *, in_queue: bool = False) -> None:
        """See `Ledger.deny`."""
        await super().deny(ask, denied, in_queue=in_queue)
        self._refused(ask, time.time_ns(), Outcome.DENIED, denied.reason)

    async def settle(
        self, turn: OpenTurn, ending: TurnEnding, extra_writes: ExtraWrites | None = None
    ) -> SettledTurn:
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
