"""The worker of the ledger: it takes work from the queue and commits it in batches, in a thread of its own.

Waiting work is done as one batch. A batch that fails is tried again, then one by one, so that one bad row cannot
fail its neighbours. A full disk spends the reserve: only ends are written until the reserve is filled again.
"""

import asyncio
import logging
import os
import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from django.db import DatabaseError, InterfaceError, connection
from msgspec.structs import replace

from agents.core.errors import Unavailable
from agents.core.ledger.batch import commit
from agents.core.ledger.state import LookUp, look_up
from agents.core.ledger.work import Admit, Release, Result, Settle, Touch, Withdraw, Work
from agents.core.types import LookUpResult
from agents.models.choices import Outcome, TurnFailure
from agents.transcript.announcements import Carrier
from kit import sql

logger = logging.getLogger(__name__)

MAX_BATCH = 128
BATCH_FILL_S = 0.0005  # asks of several callers mostly come together: what is on its way shares their commit
TRIES = 3
SETTLE_TRIES = 30
RETRY_PAUSE_S = 1.0
TRY_EVERY_S = 1.0  # to fill a reserve that was spent
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


class Reserve(Protocol):
    """Reserved space: released so that ends of turns can be written, and filled again when the disk has space."""

    def fill(self) -> bool:
        """Allocate the space unless it is allocated; returns whether it is. Cheap when it is."""

    def spend(self) -> None:
        """Release the space."""


class DiskReserve:
    """A file of that size without content. Only one thread uses the reserve."""

    def __init__(self, path: Path, size_bytes: int) -> None:
        self._path = path
        self._size_bytes = size_bytes
        self._is_kept = False
        self._try_at = 0.0

    def fill(self) -> bool:
        """See `Reserve`."""
        if self._is_kept or time.monotonic() < self._try_at:
            return self._is_kept
        self._try_at = time.monotonic() + TRY_EVERY_S
        try:
            with self._path.open("wb") as file:
                # Blocks, not a length: a sparse file would keep no room.
                os.posix_fallocate(file.fileno(), 0, self._size_bytes)
            self._is_kept = True
        except OSError:
            self.spend()
        return self._is_kept

    def spend(self) -> None:
        """See `Reserve`."""
        self._is_kept = False
        with suppress(OSError):  # a disk that takes no writes gives nothing back
            self._path.unlink(missing_ok=True)


Queue = SimpleQueue[Item | None]  # None ends the thread


class Worker:
    """Takes work from a queue until the end marker. Only the thread that calls `run` uses the worker."""

    def __init__(
        self,
        queue: Queue,
        *,
        home: str,
        carry: Carrier | None,
        on_batch: OnBatch,
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
        has_paused = False
        while len(items) < MAX_BATCH:
            if self._queue.empty():
                if len(items) == 1 or has_paused:
                    break
                has_paused = True
            try:
                item = self._queue.get(timeout=BATCH_FILL_S)  # at once where something waits
            except Empty:
                break
            if item is None:
                self._queue.put(None)
                break
            items.append(item)
        return items

    def _serve(self, items: list[Item]) -> None:
        """Look up, then commit: what was found may ask in the same batch."""
        looks: list[Item] = []
        works: list[Item] = []
        for item in items:
            (looks if isinstance(item.work, LookUp) else works).append(item)
        if looks:
            works += self._found(looks)
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
                # The write may fail: the next look-up of a stale credential repeats it.
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
            except sql.DATABASE_UNAVAILABLE as failure:
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
                if committed.messages and self._carry is not None:
                    self._carry(committed.messages)
                return committed.results
        if not is_away and len(batch) == 1 and (less := _without_optional_writes(batch[0])):
            return self._commit_all([less], is_retry=True)
        if is_away or len(batch) == 1:
            return [Unavailable()] * len(batch)
        return [self._commit_all([work], is_retry=True)[0] for work in batch]

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
    """True if a deadlock or a lock timeout failed the batch: one of its sessions, not the database."""
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
    ending = replace(work.ending, outcome=Outcome.FAILED, reason=TurnFailure.NOT_RECORDED, text="")
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
