"""The ledger's methods for the event loop; the database thread of the process does the work (group commit)."""

import asyncio
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import Any
from uuid import UUID

from accounts.authn import Identity, Presented, TokenScope, check_caller
from agents.core.errors import Denied, MustWait, NotPublished, Unavailable
from agents.core.ledger.disk_reserve import DiskReserve
from agents.core.ledger.state import BuildAsk, LookUp
from agents.core.ledger.work import Admit, Deny, ExtraWrites, Record, Release, Settle, Withdraw
from agents.core.ledger.worker import Item, Worker
from agents.core.ports import Spans
from agents.core.types import Ask, LookUpResult, OpenTurn, SettledTurn, TurnEnding
from agents.models.choices import Outcome
from agents.transcript.announcements import Carrier
from agents.transcript.pieces import Usage
from agents.transcript.recording import NewEvent
from kit.trace import current_turn

CLOSED_WITHIN_S = 10
LARGE_REPLY = 64 * 1024  # characters: its end is committed alone
LATENCY_BOUNDS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
BATCH_BOUNDS = (1, 2, 4, 8, 16, 32, 64, 128)
OnDecided = Callable[[OpenTurn | Exception], None]
OnSettled = Callable[[SettledTurn | Exception], None]


class Histogram:
    """The number of values up to each bound; written by one thread."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.sum += value

    def buckets(self) -> list[tuple[str, float]]:
        """Each bound with the number of values up to it; the last number counts all values."""
        total, found = 0.0, []
        for bound, count in zip([*map(str, self._bounds), "+Inf"], list(self._counts), strict=True):
            total += count
            found.append((bound, total))
        return found


class LedgerCounts:
    """Counts asks by outcome and reason, and measures durations of turns and sizes of batches.

    The counts begin with the process and need no locks: only the ledger's thread writes `batches`.
    """

    def __init__(self) -> None:
        self.asks: Counter[tuple[str, str]] = Counter()
        self.latency_s = Histogram(LATENCY_BOUNDS_S)
        self.batches = Histogram(BATCH_BOUNDS)

    def refused(self, outcome: str, reason: str) -> None:
        """Count an ask that became no turn."""
        self.asks[outcome, reason] += 1

    def ended(self, outcome: str, reason: str, latency_ms: int | None) -> None:
        """Count a turn by the end that its row has."""
        self.asks[outcome, reason] += 1
        if latency_ms is not None:
            self.latency_s.add(latency_ms / 1000)


class Ledger:
    """Admits and settles turns durably, and counts them; with `spans` also records their times.

    Only the event loop may call the methods; `close` also a caller without one.
    """

    def __init__(
        self,
        *,
        home: str,
        carry: Carrier | None = None,
        counts: LedgerCounts | None = None,
        spans: Spans | None = None,
        reserve: DiskReserve | None = None,
    ) -> None:
        self._counts = counts or LedgerCounts()
        self._spans = spans
        on_batch = self._counts.batches.add
        self._worker = Worker(home=home, carry=carry, on_batch=on_batch, reserve=reserve)

    @property
    def waiting(self) -> int:
        """The number of pieces of work that wait for the thread."""
        return self._worker.waiting

    async def look_up(self, digest: str | None, handle: str | None, session: UUID | None = None) -> LookUpResult:
        """Find an identity, a published agent and the token's own session; each None when there is none.

        Raises:
            Unavailable: too many work items wait, or the database is out of reach.
        """
        found: LookUpResult = await self._worker.put(LookUp(digest, handle, session), may_refuse=True).future
        return found

    async def get_caller(self, token: Presented | None, *scopes: TokenScope) -> Identity:
        """The caller of a request that asks no agent, see `accounts.authn.check_caller`.

        Raises:
            RequestRefused: no live token, of another origin, or without one of the scopes.
            Unavailable: too many work items wait, or the database is out of reach.
        """
        found = await self.look_up(token.digest, None) if token else None
        return check_caller(token, found.identity if found else None, *scopes)

    def admit(self, ask: Ask, *, in_queue: bool = False) -> Coroutine[Any, Any, OpenTurn]:
        """Decide an ask, or a queued ask again (`in_queue`). An admitted ask is durable, counted and has its
        claim.

        An ask that is answered `Unavailable` although its commit succeeded is withdrawn when the database is back.

        Raises:
            Denied, NotPublished: refused; the audit row of a Denied is durable too.
            AlreadyAsked: an identical message is open; nothing was written.
            MustWait: the ask has a position in the queue of its agent.
            Unavailable: nothing was decided; the position of a queued ask may still exist.

        If the waiting task is cancelled and the ask is admitted all the same, the turn is withdrawn.
        """
        return self._decided(Admit(ask, in_queue))

    def admit_found(
        self, digest: str | None, handle: str | None, build: BuildAsk
    ) -> Coroutine[Any, Any, OpenTurn]:
        """Look up a token and an agent, and decide the ask that `build` makes of them, in one batch.

        `build`: `LookUp.then`.

        Raises:
            The errors of `build` and of `admit`; Unavailable also when nothing could be looked up.
        """
        return self._decided(LookUp(digest, handle, then=build))

    def decide_found(self, digest: str | None, handle: str | None, build: BuildAsk, then: OnDecided) -> None:
        """Do what `admit_found` does, and call `then` with the turn or the error; no task waits."""
        began_ns = time.time_ns()
        look_up = LookUp(digest, handle, then=build)

        def take(result: OpenTurn | Exception | None) -> None:
            decided: OpenTurn | Exception
            try:
                decided = self._note(item, result, began_ns)
            except Exception as failure:  # noqa: BLE001  it is the answer: the ask must not be left without one
                decided = failure
            then(decided)

        item = self._worker.put(look_up, may_refuse=True, then=take)

    async def deny(self, ask: Ask, denied: Denied, *, in_queue: bool = False) -> None:
        """Write the audit row of a refusal decided elsewhere. `in_queue`: the ask waited, and its position is
        deleted.

        Raises:
            Unavailable: nothing was written; a position still exists, see `withdraw`.
        """
        await self._worker.put(Deny(ask, denied, in_queue), may_refuse=True).future
        self._refused(ask, time.time_ns(), Outcome.DENIED, denied.reason)

    def withdraw(self, ask: Ask) -> None:
        """Withdraw an ask, once the database is back: end an admitted ask as not sent, and delete its position."""
        self._worker.put(Withdraw(ask), is_awaited=False)

    def settle(
        self, turn: OpenTurn, ending: TurnEnding, then: OnSettled, extra_writes: ExtraWrites | None = None
    ) -> None:
        """End a turn. The first ending stands: `then` is called with the one that stands, or with an error.

        The error is Unavailable if the database stayed out of reach: the reaper ends the turn when its claim
        expires. `extra_writes`: see `Settle`.
        """
        began_ns = time.time_ns()

        def take(settled: SettledTurn | Exception) -> None:
            if isinstance(settled, SettledTurn):
                self._counts.ended(settled.outcome, settled.reason, ending.latency_ms)
                if self._spans:
                    self._spans.settled(turn, ending, settled, began_ns)
            then(settled)

        self._worker.put(Settle(turn, ending, extra_writes), then=take, is_large=len(ending.text) > LARGE_REPLY)

    async def release_turn(self, chat_id: str, late: str = "", usage: Usage | None = None) -> None:
        """Free the lingering claim of an ended turn: its agent finished after all, perhaps with a late reply."""
        await self._worker.put(Release(chat_id=chat_id, late=late, usage=usage)).future

    async def record(self, event: NewEvent) -> None:
        """Write an event of a session; it is durable when this returns.

        Raises:
            Unavailable: too many work items wait, or the database is out of reach.
        """
        await self._worker.put(Record(event), may_refuse=True).future

    async def release_session(self, session_id: int) -> None:
        """Free every lingering claim of a session: its agent's turn is over."""
        await self._worker.put(Release(session_id=session_id)).future

    def close(self, within_s: float = CLOSED_WITHIN_S) -> None:
        """Serve the waiting work, then end the thread; a thread that takes too long is abandoned and logged."""
        self._worker.begin_close()
        self._worker.finish_close(within_s)

    async def end(self, within_s: float = CLOSED_WITHIN_S) -> None:
        """Close without blocking the event loop; work that comes meanwhile is served by another thread."""
        self._worker.begin_close()
        await asyncio.to_thread(self._worker.finish_close, within_s)

    async def _decided(self, work: Admit | LookUp) -> OpenTurn:
        began_ns = time.time_ns()
        item = self._worker.put(work, may_refuse=True)
        try:
            result: OpenTurn | Exception = await item.future
        except asyncio.CancelledError:
            # The worker withdraws turns whose future is cancelled. This future had its result already, set in the
            # iteration of the event loop that cancelled the task.
            if not item.future.cancelled():
                result = item.future.exception() or item.future.result()
                if isinstance(result, OpenTurn | MustWait):
                    self.withdraw(item.work.ask)
            raise
        except Exception as failure:  # noqa: BLE001  raised below
            result = failure
        decided = self._note(item, result, began_ns)
        if isinstance(decided, Exception):
            raise decided
        return decided

    def _note(self, item: Item, result: OpenTurn | Exception | None, began_ns: int) -> OpenTurn | Exception:
        """Count a decision. The result is None for an ask that was built as a `Deny`: it is the refusal then."""
        if isinstance(result, OpenTurn):
            current_turn.set(result.ask.chat_id)
            if self._spans:
                self._spans.admitted(result.ask, began_ns)
            return result
        if result is None:
            result = item.work.denied
        if isinstance(result, Denied):
            self._refused(item.work.ask, began_ns, Outcome.DENIED, result.reason)
        elif isinstance(result, NotPublished):
            self._refused(item.work.ask, began_ns, "not_taken", "not_published")
        elif isinstance(result, Unavailable) and isinstance(item.work, Admit):  # else the look-up failed
            self._refused(item.work.ask, began_ns, "not_taken", "unavailable")
        return result

    def _refused(self, ask: Ask, began_ns: int, outcome: str, reason: str) -> None:
        self._counts.refused(outcome, reason)
        if self._spans:
            self._spans.admitted(ask, began_ns, reason)
