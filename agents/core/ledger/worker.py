"""The worker of the ledger: it takes work from the queue and commits it in batches, in a thread of its own.

Waiting work is done as one batch; the end of a large reply is committed alone, between batches. A batch that fails
is tried again, then its items one by one, so that one bad row fails no other item. When the disk is full, the
worker releases its reserve, and writes only ends until the reserve is filled again. Asks beyond MAX_WAITING are
refused; settles never are.
"""

import asyncio
import logging
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import partial
from operator import attrgetter
from queue import SimpleQueue
from typing import Any

from django.db import DatabaseError, InterfaceError, connection
from msgspec import Struct

from agents.core.errors import MustWait, Unavailable
from agents.core.ledger.batch import commit
from agents.core.ledger.disk_reserve import DiskReserve
from agents.core.ledger.state import LookUp, look_up
from agents.core.ledger.work import Admit, Release, Result, Settle, Touch, Withdraw, Work, without_optional_writes
from agents.core.types import LookUpResult, OpenTurn
from agents.transcript.announcements import Carrier
from kit import sql

logger = logging.getLogger(__name__)

MAX_WAITING = 1024
MAX_BATCH = 128
HANDED_OVER = MAX_BATCH // 2  # the most pieces that the event loop hands over together
TRIES = 3
# An end is tried for longer than a restart of the database takes. Later the reaper ends the turn.
SETTLE_TRIES = 30
RETRY_PAUSE_S = 1.0
LOCK_FAILURES = frozenset({"40P01", "55P03"})  # a deadlock, and a lock that took longer than `lock_timeout`
ENDS = Settle | Withdraw | Release  # the work that frees claims
OnBatch = Callable[[int], None]  # the thread calls it with the number of work items it took at once


Then = Callable[[Any], None]  # the event loop calls it with the result; an exception is a result, too


class Item(Struct):
    """A piece of work, and what gets its result: the future, or `then`; both are None if nothing waits for it.

    The work that `then` of a look-up returns replaces the look-up.
    """

    work: Any  # Work | LookUp
    loop: asyncio.AbstractEventLoop
    future: Any
    then: Then | None = None
    result: object = None
    tries: int = 0


_work_of = attrgetter("work")


class Worker:
    """The queue and the thread. The event loop calls `put` and `begin_close`, the thread what is private."""

    def __init__(
        self, *, home: str, carry: Carrier | None, on_batch: OnBatch, reserve: DiskReserve | None = None
    ) -> None:
        self._queue: SimpleQueue[list[Item] | None] = SimpleQueue()  # None ends the thread
        self._collected: list[Item] = []  # in this iteration of the event loop
        self._put = self._taken = 0  # the event loop counts the one, the thread the other
        self._home = home
        self._carry = carry
        self._on_batch = on_batch
        self._reserve = reserve
        self._postponed: list[Item] = []
        self._large: deque[Item] = deque()  # ends of large replies; an empty list in the queue tells of each
        self._is_large_due = False  # the last batch was of other work
        self._thread: threading.Thread | None = None
        self._ending: threading.Thread | None = None  # that was told to end

    @property
    def waiting(self) -> int:
        """The number of pieces of work that wait for the thread."""
        return self._put - self._taken

    def put(
        self,
        work: Work | LookUp,
        *,
        may_refuse: bool = False,
        is_awaited: bool = True,
        is_large: bool = False,
        then: Then | None = None,
    ) -> Item:
        """Queue work for the thread; returns the item, with its future unless `then` gets the result.

        `then` is called with the context variables of this call. The thread gets all work of an iteration of the
        event loop at once: it wakes up once, for a larger batch.
        `may_refuse`: the result is Unavailable if too many wait.
        """
        loop = asyncio.get_running_loop()
        item = Item(work, loop, loop.create_future() if is_awaited and then is None else None)
        if then is not None:
            run: Callable[..., None] = copy_context().run
            item.then = partial(run, then)
        if may_refuse and self._put - self._taken >= MAX_WAITING:
            item.result = Unavailable("too many asks wait")
            loop.call_soon(self._resolve, [item])
            return item
        if self._thread is None:
            args = (self._queue, self._large, self._ending)
            self._thread = threading.Thread(target=self._run, args=args, name="ledger", daemon=True)
            self._thread.start()
        self._put += 1
        if is_large:
            self._large.append(item)
            self._queue.put([])
            return item
        if not self._collected:
            loop.call_soon(self._hand_over)
        self._collected.append(item)
        return item

    def _hand_over(self) -> None:
        items, self._collected = self._collected, []
        for start in range(0, len(items), HANDED_OVER):
            self._queue.put(items[start : start + HANDED_OVER])

    def begin_close(self) -> None:
        """Let the thread end after the waiting work; later work is for another thread, and another queue.

        Not for another thread than that of the event loop: what is put in that moment would be lost.
        """
        if self._thread is not None:
            self._hand_over()
            self._queue.put(None)
            self._queue, self._large = SimpleQueue(), deque()
            self._ending, self._thread = self._thread, None

    def finish_close(self, within_s: float) -> None:
        """Wait for the thread that ends; one that takes too long is abandoned and logged. Any thread may wait."""
        if self._ending is not None:
            self._ending.join(timeout=within_s)
            if self._ending.is_alive():
                logger.error("ledger.unfinished", extra={"waiting": self.waiting})

    def _run(
        self, queue: "SimpleQueue[list[Item] | None]", large: deque[Item], before: threading.Thread | None
    ) -> None:
        if before is not None:
            before.join()
        while (items := self._take(queue, large)) is not None:
            if not items:
                continue
            try:
                self._serve(items)
            except Exception:  # no exception of a batch may end the thread
                logger.exception("ledger.broken", extra={"size": len(items)})
                self._answer(items, [Unavailable()] * len(items))
        connection.close()

    def _take(self, queue: "SimpleQueue[list[Item] | None]", large: deque[Item]) -> list[Item] | None:
        """Wait for work; an empty list if there is none after all, None at the end marker.

        Postponed work goes first, because it holds claims. The pause before it delays new asks, which would fail
        too. The end of a large reply is taken alone, after a batch of other work or when there is none.
        """
        if large and (self._is_large_due or (queue.empty() and not self._postponed)):
            return self._take_large(large)
        if self._postponed:
            time.sleep(RETRY_PAUSE_S)
        items, self._postponed = self._postponed, []
        if not items:
            first = queue.get()
            if first is None:
                if not large:
                    return None
                queue.put(None)
                return self._take_large(large)
            items = first
            self._taken += len(items)
        while len(items) <= MAX_BATCH - HANDED_OVER and not queue.empty():
            more = queue.get()
            if more is None:
                queue.put(None)  # a later call takes the end marker, after this work is done
                break
            items += more
            self._taken += len(more)
        self._is_large_due = True
        return items

    def _take_large(self, large: deque[Item]) -> list[Item]:
        self._is_large_due = False
        self._taken += 1
        return [large.popleft()]

    def _serve(self, items: list[Item]) -> None:
        """Do the look-ups, then commit: an ask that a look-up builds is decided in the same batch."""
        looks: list[Item] = []
        works: list[Item] = []
        for item in items:
            (looks if isinstance(item.work, LookUp) else works).append(item)
        if looks:
            works += self._look_up(looks)
        self._on_batch(len(items))
        if works:
            self._answer(works, self._commit([*map(_work_of, works)]))

    def _look_up(self, looks: Sequence[Item]) -> list[Item]:
        """Do look-ups, and answer those that build no ask; returns the asks, and a `Touch` of each stale
        credential.
        """
        results: Sequence[LookUpResult | Unavailable] = [Unavailable()]
        for attempt in range(TRIES):
            try:
                results = look_up([*map(_work_of, looks)])
                break
            except (DatabaseError, InterfaceError) as failure:
                _recover("ledger.look_up_failed", failure, attempt)
        else:
            if len(looks) > 1:  # the database may refuse the values of one of them
                return [work for item in looks for work in self._look_up([item])]
        asking: list[Item] = []
        answered: list[Item] = []
        answers: list[object] = []
        used: dict[int, Item] = {}
        for item, found in zip(looks, results, strict=True):
            answer: object = found
            if isinstance(found, LookUpResult):
                if found.identity is not None and found.identity.is_stale:
                    # The write may fail: the next look-up of a stale credential repeats it.
                    credential_id = found.identity.credential_id
                    used[credential_id] = Item(Touch(credential_id), item.loop, None)
                if item.work.then is not None and (item.future is None or not item.future.cancelled()):
                    try:
                        item.work = item.work.then(found)
                        asking.append(item)
                        continue
                    except Exception as refusal:  # noqa: BLE001  it is the answer
                        answer = refusal
            answered.append(item)
            answers.append(answer)
        if answered:
            self._answer(answered, answers)  # answered before the commit: these tasks need not wait for the disk
        return [*asking, *used.values()]

    def _commit(self, batch: Sequence[Work], *, is_retry: bool = False) -> Sequence[Result]:
        """Commit a batch; only its ends while the disk is full.

        A batch whose commit failed may have been written all the same, so a retry reads before it writes.
        """
        reserve = self._reserve
        if reserve is not None and not (reserve.is_kept or reserve.fill()):
            ends = [work for work in batch if isinstance(work, ENDS)]
            if len(ends) < len(batch):
                written = iter(self._commit(ends, is_retry=is_retry) if ends else ())
                return [next(written) if isinstance(work, ENDS) else Unavailable() for work in batch]
        is_away = False
        for attempt in range(TRIES):
            try:
                committed = commit(batch, home=self._home, is_retry=is_retry or attempt > 0)
            except sql.DATABASE_UNAVAILABLE as failure:
                if reserve is not None and sql.is_disk_full(failure):
                    connection.close()
                    if not reserve.is_kept:  # the space of the released reserve is used up, too
                        return [Unavailable()] * len(batch)
                    logger.exception("ledger.disk_full")
                    reserve.spend()
                    return self._commit(batch, is_retry=True)
                is_away = not _is_lock_failure(failure)
                _recover("ledger.batch_failed", failure, attempt)
            except Exception:
                logger.exception("ledger.batch_broken", extra={"size": len(batch)})
                is_away = False
                break
            else:
                if committed.messages and self._carry is not None:
                    self._carry(committed.messages)
                return committed.results
        if not is_away and len(batch) == 1 and (less := without_optional_writes(batch[0])):
            return self._commit([less], is_retry=True)
        if is_away or len(batch) == 1:  # each work item alone would wait for the database as long as the batch did
            return [Unavailable()] * len(batch)
        return [self._commit([work], is_retry=True)[0] for work in batch]

    def _answer(self, items: Sequence[Item], results: Sequence[object]) -> None:
        """Pass the results to the event loop in one call; postpone ends and withdrawals that have to be tried
        again.
        """
        by_loop: dict[asyncio.AbstractEventLoop, list[Item]] = {}
        for item, result in zip(items, results, strict=True):
            if isinstance(result, Unavailable):
                if isinstance(item.work, Settle | Withdraw) and item.tries < SETTLE_TRIES:
                    item.tries += 1
                    self._postponed.append(item)
                    continue
                if isinstance(item.work, Admit):  # the commit of the ask may have succeeded
                    self._postponed.append(Item(Withdraw(item.work.ask), item.loop, None))
            if item.future is not None or item.then is not None:
                item.result = result
                by_loop.setdefault(item.loop, []).append(item)
        for loop, answered in by_loop.items():
            try:
                loop.call_soon_threadsafe(self._resolve, answered)
            except RuntimeError:
                logger.warning("ledger.loop_gone", extra={"answers": len(answered)})

    def _resolve(self, items: Sequence[Item]) -> None:
        """In the event loop: pass the results on. A turn whose task no longer waits is withdrawn."""
        for item in items:
            future, result = item.future, item.result
            then, item.then = item.then, None  # which may refer to the item: no circle may stay
            if then is not None:
                try:
                    then(result)
                except Exception:  # the other items must get their results
                    logger.exception("ledger.result_not_taken")
            elif future is None:  # a look-up that was answered before its batch failed
                continue
            elif future.done():  # cancelled, or a look-up that was answered before its batch failed
                if future.cancelled() and isinstance(result, OpenTurn | MustWait):
                    self.put(Withdraw(item.work.ask), is_awaited=False)
            elif isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)


def _is_lock_failure(failure: Exception) -> bool:
    """True if a deadlock or a lock timeout failed the batch, so that the database itself can be reached."""
    return sql.state_of(failure) in LOCK_FAILURES


def _recover(event: str, failure: Exception, attempt: int) -> None:
    logger.warning(event, extra={"attempt": attempt, "failure": type(failure).__name__})
    connection.close()
    time.sleep(random.uniform(0.01, 0.05) * 2**attempt)  # noqa: S311  spreads retries, guards nothing
