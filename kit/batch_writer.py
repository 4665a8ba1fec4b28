"""Batches: group commit for asyncio, and a writer that keeps items in memory while the database is away."""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from math import ceil
from typing import Generic, TypeVar

from django.db import DatabaseError

from kit.async_db import DbThread
from kit.durations import seconds
from kit.sql import DATABASE_UNAVAILABLE
from kit.tasks import TaskSet

T = TypeVar("T")


class Batcher(Generic[T]):
    """Collects items and passes them to `write` in batches, one batch at a time.

    `pause`: awaited before the items of a batch are taken.
    """

    def __init__(
        self,
        write: Callable[[Sequence[T]], Awaitable[None]],
        *,
        pause: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._write = write
        self._pause = pause
        self._items: list[T] = []
        self._next: asyncio.Future[None] | None = None
        self._is_running = False
        self._tasks = TaskSet()

    @property
    def waiting(self) -> int:
        """The number of items that are not being written yet."""
        return len(self._items)

    async def add(self, item: T) -> None:
        """Write the item with the next batch; returns after the write, or raises its exception."""
        await asyncio.shield(self.put(item))

    def put(self, item: T) -> asyncio.Future[None]:
        """Add the item to the next batch; returns a future of its write, which must not be cancelled."""
        self._items.append(item)
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
            if not self._is_running:
                self._is_running = True
                self._tasks.start(self._run(), name="batcher")
        return self._next

    async def drain(self) -> None:
        """Return when all items are written."""
        await self._tasks.wait()

    async def _run(self) -> None:
        while self._next is not None:
            if self._pause:
                await self._pause()
            items, done = self._items, self._next
            # Before the write: items that are added during the write go into the next batch.
            self._items, self._next = [], None
            try:
                await self._write(items)
            except Exception as failure:  # noqa: BLE001  those who wait get it
                done.set_exception(failure)
                # Marks the exception as retrieved: asyncio logs failures of futures for which no
                # coroutine waits, and `put` need not be awaited.
                done.exception()
            else:
                done.set_result(None)
        self._is_running = False


logger = logging.getLogger(__name__)

MAX_REST_S = seconds(5.0)  # also after a write that waited for a database that was away
TRIES = 5  # then the writer logs the failure, and a process that ends gives up
RETRY_S = 0.5


class BatchWriter(Generic[T]):
    """Writes items in the order of `put`, in one thread that keeps its database connection.

    `write`: writes some items in one transaction; the writer calls `write` again while `write` raises one of
    `kit.sql.DATABASE_UNAVAILABLE`. `at_once`: the most items of a transaction; transactions are short, because
    SQLite has one write lock. `pause_s`: between batches, so that batches are few and large; the transactions of a
    batch are spread over that time, so that other threads never wait long. `most_waiting`: the sum of the sizes of
    waiting items from which the writer `is_full`. `most_share`: of the time, for which the writer may write.
    """

    def __init__(
        self,
        name: str,
        write: Callable[[Sequence[T]], object],
        *,
        at_once: int,
        pause_s: float,
        most_waiting: int,
        most_share: float = 1.0,
        retry_s: float = RETRY_S,
        refused: Callable[[T, DatabaseError], object] | None = None,
    ) -> None:
        self._name = name
        self._write_items = write
        self._at_once = at_once
        self._pause_s = pause_s
        self._most_waiting = most_waiting
        self._rest = 1 / most_share - 1
        self._retry_s = retry_s
        self._refused = refused
        self._thread = DbThread(name)
        self._batcher: Batcher[tuple[T, int]] = Batcher(self._write, pause=self._pause)
        self._last: asyncio.Future[None] | None = None
        self._waiting = 0
        self._may_write_at = 0.0
        self._flushing = 0
        self._urgent = asyncio.Event()
        self._is_closing = False

    def put(self, item: T, size: int = 1) -> None:
        """Write an item with the next batch. Call `wait_for_room` before or after `put`."""
        self._waiting += size
        self._last = self._batcher.put((item, size))

    @property
    def is_full(self) -> bool:
        """True if the waiting items have the size `most_waiting` or more."""
        return self._waiting >= self._most_waiting

    async def wait_for_room(self) -> None:
        """Return when the writer is not full."""
        while self.is_full and self._last is not None:
            await asyncio.wait([self._last])

    async def flush(self, within_s: float | None = None) -> None:
        """Write the waiting items without a pause; return when they are written, or after `within_s` seconds."""
        if self._last is None or self._last.done():
            return
        self._flushing += 1
        self._urgent.set()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    await asyncio.wait([self._last])
        finally:
            self._flushing -= 1
            if not self._flushing:
                self._urgent.clear()

    async def close(self) -> None:
        """Write the waiting items, and end the thread.

        The writer drops them if the database stays out of reach for `TRIES`.
        """
        self._is_closing = True
        while self._last is not None and not self._last.done():
            await self.flush()
        await self._thread.close()

    async def _pause(self) -> None:
        left_s = self._may_write_at - asyncio.get_running_loop().time()
        if left_s > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._urgent.wait()

    async def _write(self, added: Sequence[tuple[T, int]]) -> None:
        pause_s = self._pause_s / ceil(len(added) / self._at_once)
        for start in range(0, len(added), self._at_once):
            await self._pause()  # before the first transaction of a batch, the pause is over
            some = added[start : start + self._at_once]
            began = asyncio.get_running_loop().time()
            try:
                await self._write_some([item for item, _ in some])
            except Exception:  # an error of `write` itself: later batches must still be written
                logger.exception("batch_writer.lost", extra={"writer": self._name, "items": len(some)})
            finally:
                self._waiting -= sum(size for _, size in some)
            ended = asyncio.get_running_loop().time()
            rest_s = min((ended - began) * self._rest, MAX_REST_S)
            self._may_write_at = ended + max(pause_s, rest_s)

    async def _write_some(self, items: Sequence[T]) -> None:
        """Write items together; if the database refuses them, write each item alone, with tries of its own."""
        for attempt in itertools.count(1):
            try:
                await self._thread.call(self._write_items, items)
            except DATABASE_UNAVAILABLE:
                if attempt == TRIES:
                    logger.exception("batch_writer.waits", extra={"writer": self._name, "items": len(items)})
                if self._is_closing and attempt >= TRIES:
                    return
                await asyncio.sleep(self._retry_s)
            except DatabaseError as failure:
                if self._refused is None:
                    raise
                if len(items) == 1:
                    self._refused(items[0], failure)
                    return
                for item in items:
                    await self._write_some([item])
                return
            else:
                return
