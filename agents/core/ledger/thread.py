"""The ledger: the database thread of a process, to which the event loop hands work (group commit).

Waiting work is done as one batch. Asks beyond MAX_WAITING are refused; settles never are. A batch that fails is
tried again, then one by one, so that one bad row cannot fail its neighbours. When the disk is full the reserve is
spent, and only ends are written until it is filled again.
"""

import asyncio
import logging
import random
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any
from uuid import UUID

from django.db import DatabaseError, InterfaceError, connection
from msgspec.structs import replace

from agents.core.errors import Denied, MustWait, Unavailable
from agents.core.ledger.batch import commit
from agents.core.ledger.state import BuildAsk, LookUp, look_up
from agents.core.ledger.work import (
    Admit,
    Deny,
    ExtraWrites,
    Record,
    Release,
    Result,
    Settle,
    Touch,
    Withdraw,
    Work,
)
from agents.core.types import Ask, Ending, LookUpResult, OpenTurn, SettledTurn
from agents.models.choices import Failure, Outcome
from agents.transcript.announcements import AddressedMessage, Carrier
from agents.transcript.pieces import Usage
from agents.transcript.recording import NewEvent
from kit import sql
from kit.disk_reserve import Reserve

logger = logging.getLogger(__name__)

MAX_WAITING = 1024
CLOSED_WITHIN_S = 10
MAX_BATCH = 128
BATCH_FILL_S = 0.0005  # asks of several callers mostly come together: what is on its way shares their commit
TRIES = 3
SETTLE_TRIES = 30
RETRY_PAUSE_S = 1.0
LOCK_FAILURES = frozenset({"40P01", "55P03"})
ENDS = Settle | Withdraw | Release  # what frees a claim
OnBatch = Callable[[int], None]  # how many pieces of work were taken at once; called by the thread


@dataclass(slots=True)
class Item:
    """A piece of work, and the future that waits for its result; None where no task does.

    A look-up that asks becomes the work that its `then` makes of what was found. `when_cancelled` takes the result
    that no task waits for any more.
    """

    work: Any  # Work | LookUp
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any] | None
    when_cancelled: Callable[["Item", object], None] | None = None
    tries: int = 0


class _DiskFull(Exception):
    """SQLite reported a full disk."""


Queue = SimpleQueue[Item | None]  # None ends the thread


class Ledger:
    """Admits and settles turns durably. All methods but `close` belong to the event loop."""

    def __init__(
        self,
        *,
        home: str,
        carry: Carrier | None = None,
        on_batch: OnBatch | None = None,
        reserve: Reserve | None = None,
    ) -> None:
        self._queue: Queue = SimpleQueue()
        self._worker = _Worker(self._queue, home=home, carry=carry, on_batch=on_batch, reserve=reserve)
        self._thread: threading.Thread | None = None

    @property
    def waiting(self) -> int:
        """How many pieces of work wait for the thread."""
        return self._queue.qsize()

    async def look_up(self, digest: str | None, handle: str | None, session: UUID | None = None) -> LookUpResult:
        """Find an identity, a published agent and the token's own session; each None when there is none.

        Raises:
            Unavailable: too many wait, or the database is out of reach.
        """
        found: LookUpResult = await self._submit(LookUp(digest, handle, session))
        return found

    def admit(self, ask: Ask, *, in_queue: bool = False) -> Coroutine[Any, Any, OpenTurn]:
        """Decide an ask, or decide it again (`in_queue`); it is durable, counted and holds its claim afterwards.

        An ask that is answered `Unavailable` although its commit happened is withdrawn when the database is back.

        Raises:
            Denied, NotPublished: refused; the audit row of a Denied is durable too.
            AlreadyAsked: an identical message is open; nothing was written.
            Waits: it has a position in the queue of its agent.
            Unavailable: nothing was decided; a place it had (`in_queue`) may be there still.

        When this is cancelled no task sees the turn through: what is admitted all the same is withdrawn.
        """
        return self._decided(self._item(Admit(ask, in_queue)))

    def admit_found(self, digest: str | None, handle: str | None, then: BuildAsk) -> Coroutine[Any, Any, OpenTurn]:
        """Look up a token and an agent, and decide the ask that `then` makes of what is found: in one trip.

        `then`: see `LookUp`.

        Raises:
            Whatever `then` raises, and `admit`; Unavailable also when nothing could be looked up.
        """
        return self._decided(self._item(LookUp(digest, handle, then=then)))

    async def deny(self, ask: Ask, denied: Denied, *, in_queue: bool = False) -> None:
        """Write the audit row of a refusal decided elsewhere. `in_queue`: the ask waited, and its position is
        deleted.

        Raises:
            Unavailable: nothing was written; a position still exists, see `withdraw`.
        """
        await self._submit(Deny(ask, denied, in_queue))

    def withdraw(self, ask: Ask) -> None:
        """Withdraw an ask: end it unsent if it was admitted, and delete its position; once the database is
        back.
        """
        self._hand_over(Item(Withdraw(ask), asyncio.get_running_loop(), None))

    async def settle(self, turn: OpenTurn, ending: Ending, extra_writes: ExtraWrites | None = None) -> SettledTurn:
        """End a turn; the first ending stands, and this returns the one that stands.

        `extra_writes`: see `Settle`.

        Raises:
            Unavailable: the database stayed out of reach; the turn's lease will end it.
        """
        settled: SettledTurn = await self._post(Settle(turn, ending, extra_writes))
        return settled

    async def release_turn(self, chat_id: str, late: str = "", usage: Usage | None = None) -> None:
        """Free the lingering claim of an ended turn: its agent finished after all, perhaps with a late reply."""
        await self._post(Release(chat_id=chat_id, late=late, usage=usage))

    async def record(self, event: NewEvent) -> None:
        """Write an event of a session; it is durable when this returns.

        Raises:
            Unavailable: too many wait, or the database is out of reach.
        """
        await self._submit(Record(event))

    async def release_session(self, session_id: int) -> None:
        """Free every lingering claim of a session: its agent's turn is over."""
        await self._post(Release(session_id=session_id))

    def close(self, within_s: float = CLOSED_WITHIN_S) -> None:
        """Serve the waiting work, then end the thread; a thread that takes too long is abandoned and logged."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(timeout=within_s)
            if self._thread.is_alive():
                waiting = max(0, self.waiting - 1)  # the one that ends the thread is none of them
                logger.error("ledger.unfinished", extra={"waiting": waiting})
            self._thread = None

    async def _decided(self, item: Item) -> OpenTurn:
        """What becomes of an ask; once it is found, `item.work` has it."""
        future = item.future
        assert future is not None  # noqa: S101  for the type checker: this task waits for it
        self._hand_over(item, may_refuse=True)
        try:
            turn: OpenTurn = await future
        except asyncio.CancelledError:
            if not future.cancelled():  # it was decided in the same iteration of the loop
                self._withdraw_admitted(item, future.exception() or future.result())
            raise
        if isinstance(item.work, Deny):
            raise item.work.denied
        return turn

    def _withdraw_admitted(self, item: Item, result: object) -> None:
        if isinstance(result, OpenTurn | MustWait):
            self.withdraw(item.work.ask)

    def _item(self, work: Admit | LookUp) -> Item:
        loop = asyncio.get_running_loop()
        return Item(work, loop, loop.create_future(), self._withdraw_admitted)

    def _submit(self, work: Work | LookUp) -> asyncio.Future[Any]:
        return self._post(work, may_refuse=True)

    def _post(self, work: Work | LookUp, *, may_refuse: bool = False) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._hand_over(Item(work, loop, future), may_refuse=may_refuse)
        return future

    def _hand_over(self, item: Item, *, may_refuse: bool = False) -> None:
        if may_refuse and self._queue.qsize() >= MAX_WAITING:
            raise Unavailable("too many asks wait")
        if self._thread is None:
            self._thread = threading.Thread(target=self._worker.run, name="ledger", daemon=True)
            self._thread.start()
        self._queue.put(item)


class _Worker:
    """Takes work from a queue until the end marker. Only the thread that calls `run` uses it."""

    def __init__(
        self,
        queue: Queue,
        *,
        home: str,
        carry: Carrier | None,
        on_batch: OnBatch | None,
        reserve: Reserve | None = None,
    ) -> None:
        self._queue = queue
        self._home = home
        self._carry = carry
        self._on_batch = on_batch
        self._reserve = reserve
        self._postponed: list[Item] = []

    def run(self) -> None:
        """Serve the queue until the end marker."""
        while (items := self._take()) is not None:
            try:
                self._serve(items)
            except Exception:  # the thread outlives whatever a batch does
                logger.exception("ledger.broken", extra={"size": len(items)})
                self._answer_or_postpone(items, [Unavailable()] * len(items))
        connection.close()

    def _take(self) -> list[Item] | None:
        if self._postponed:
            time.sleep(RETRY_PAUSE_S)
        items, self._postponed = self._postponed, []
        if not items:
            first = self._queue.get()
            if first is None:
                return None
            items = [first]
        self._fill(items)
        if len(items) > 1:
            self._fill(items, BATCH_FILL_S)
        return items

    def _fill(self, items: list[Item], wait_s: float = 0.0) -> None:
        """Add what waits; wait so long for the first."""
        while len(items) < MAX_BATCH:
            try:
                item = self._queue.get(wait_s > 0, wait_s or None)
            except Empty:
                break
            if item is None:
                self._queue.put(None)
                break
            items.append(item)
            wait_s = 0.0

    def _serve(self, items: list[Item]) -> None:
        """Look up, then commit: what was found may ask in the same batch."""
        looks: list[Item] = []
        works: list[Item] = []
        for item in items:
            (looks if isinstance(item.work, LookUp) else works).append(item)
        if looks:
            works += self._found(looks)
        if self._on_batch is not None:
            self._on_batch(len(items))
        if works:
            self._answer_or_postpone(works, self._commit([item.work for item in works]))

    def _found(self, looks: Sequence[Item]) -> list[Item]:
        """The asks of those who were found, and a note of each credential's use; other look-ups are answered."""
        asking: list[Item] = []
        answered: list[Item] = []
        answers: list[object] = []
        used: dict[int, Item] = {}
        for item, found in zip(looks, self._look_up([item.work for item in looks]), strict=True):
            result: object = found
            is_awaited = item.future is not None and not item.future.cancelled()
            if item.work.then is not None and isinstance(found, LookUpResult) and is_awaited:
                try:
                    item.work = item.work.then(found)
                    asking.append(item)
                    result = None
                except Exception as refusal:  # noqa: BLE001  it is the answer
                    result = refusal
            if result is not None:
                answered.append(item)
                answers.append(result)
            if isinstance(found, LookUpResult) and found.identity is not None and found.identity.is_stale:
                # It may fail: the next look-up of a stale credential writes it again.
                used[found.identity.credential_id] = Item(Touch(found.identity.credential_id), item.loop, None)
        if answered:
            _answer(answered, answers)
        return [*asking, *used.values()]

    def _look_up(self, wanted: Sequence[LookUp]) -> Sequence[LookUpResult | Exception]:
        for attempt in range(TRIES):
            try:
                return look_up(wanted)
            except (DatabaseError, InterfaceError) as failure:
                _recover("ledger.look_up_failed", failure, attempt)
        if len(wanted) == 1:
            return [Unavailable()]
        return [self._look_up([one])[0] for one in wanted]

    def _commit(self, batch: Sequence[Work], *, is_retry: bool = False) -> Sequence[Result]:
        """Commit a batch; only its ends while the disk is full."""
        if self._reserve is None:
            return self._commit_all(batch, is_retry=is_retry)
        if self._reserve.fill():
            try:
                return self._commit_all(batch, is_retry=is_retry)
            except _DiskFull:
                logger.exception("ledger.disk_full")
                is_retry = True
                self._reserve.spend()
        ends = [work for work in batch if isinstance(work, ENDS)]
        try:
            written = iter(self._commit_all(ends, is_retry=is_retry) if ends else ())
        except _DiskFull:
            return [Unavailable()] * len(batch)
        return [next(written) if isinstance(work, ENDS) else Unavailable() for work in batch]

    def _commit_all(self, batch: Sequence[Work], *, is_retry: bool = False) -> Sequence[Result]:
        """Commit a batch; one by one when a piece of it may be at fault, not at all when the database is away.

        Raises:
            _DiskFull: there is a reserve to spend; nothing of the batch was written, or parts of it were.
        """
        is_away = False
        for attempt in range(TRIES):
            try:
                committed = commit(batch, home=self._home, is_retry=is_retry or attempt > 0)
            except sql.AWAY as failure:
                if self._reserve is not None and sql.is_disk_full(failure):
                    connection.close()
                    raise _DiskFull from failure
                is_away = not _is_lock_failure(failure)
                _recover("ledger.batch_failed", failure, attempt)
            except Exception:
                logger.exception("ledger.batch_broken", extra={"size": len(batch)})
                is_away = False
                break
            else:
                self._tell(committed.messages)
                return committed.results
        if not is_away and len(batch) == 1 and (less := _without_optional_writes(batch[0])):
            return self._commit_all([less], is_retry=True)
        if is_away or len(batch) == 1:
            return [Unavailable()] * len(batch)
        return [self._commit_all([work], is_retry=True)[0] for work in batch]

    def _tell(self, messages: Sequence[AddressedMessage]) -> None:
        if messages and self._carry is not None:
            self._carry(messages)

    def _answer_or_postpone(self, items: Sequence[Item], results: Sequence[Result]) -> None:
        answered: list[Item] = []
        answers: list[Result] = []
        for item, result in zip(items, results, strict=True):
            must_happen = isinstance(item.work, Settle | Withdraw)
            if isinstance(result, Unavailable) and must_happen and item.tries < SETTLE_TRIES:
                item.tries += 1
                self._postponed.append(item)
                continue
            if isinstance(result, Unavailable) and isinstance(item.work, Admit):
                self._postponed.append(Item(Withdraw(item.work.ask), item.loop, None))
            answered.append(item)
            answers.append(result)
        _answer(answered, answers)


def _is_lock_failure(failure: Exception) -> bool:
    """Whether a deadlock or a lock timeout failed the batch: one of its sessions, not the database."""
    return sql.state_of(failure) in LOCK_FAILURES


def _without_optional_writes(work: Work) -> Settle | None:
    """The same end without what may be at fault: what its surface writes, then what the database refuses to keep.

    A turn that cannot end would be tried for long.
    """
    if not isinstance(work, Settle):
        return None
    if work.extra_writes is not None:
        return replace(work, extra_writes=None, has_extra_writes=False)
    if work.ending.outcome is not Outcome.COMPLETED:
        return None
    ending = replace(work.ending, outcome=Outcome.FAILED, reason=Failure.NOT_RECORDED, text="")
    return replace(work, ending=ending)


def _recover(event: str, failure: Exception, attempt: int) -> None:
    logger.warning(event, extra={"attempt": attempt, "failure": type(failure).__name__})
    connection.close()
    time.sleep(random.uniform(0.01, 0.05) * 2**attempt)  # noqa: S311  spreads retries, guards nothing


def _answer(items: Sequence[Item], results: Sequence[object]) -> None:
    """Wake the waiters of each loop by one call."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Item, object]]] = {}
    for item, result in zip(items, results, strict=True):
        by_loop.setdefault(item.loop, []).append((item, result))
    for loop, pairs in by_loop.items():
        try:
            loop.call_soon_threadsafe(_resolve, pairs)
        except RuntimeError:
            logger.warning("ledger.loop_gone", extra={"answers": len(pairs)})


def _resolve(pairs: Sequence[tuple[Item, object]]) -> None:
    for item, result in pairs:
        future = item.future
        if future is None:
            continue
        if future.cancelled():
            if item.when_cancelled is not None:
                item.when_cancelled(item, result)
        elif future.done():
            continue  # a look-up of a batch that failed after it
        elif isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
