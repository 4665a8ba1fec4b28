"""Writes rows to the database in batches, and keeps them while the database is away."""

import asyncio
import itertools
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Generic, TypeVar

from django.db import DatabaseError

from kit.async_db import DbThread
from kit.batcher import Batcher
from kit.sql import DATABASE_AWAY

logger = logging.getLogger(__name__)

T = TypeVar("T")
TRIES = 5  # then a failure is logged, and a process that ends gives up
RETRY_S = 0.5


class BatchWriter(Generic[T]):
    """Writes the items of one process in the order in which they came, in a thread that keeps its connection.

    `write`: writes some items, in one transaction; called again while it raises one of `kit.sql.DATABASE_AWAY`.
    `at_once`: items of a transaction, which is short: SQLite has one write lock. `pause_s`: between batches, so
    that they are few and large. `most_waiting`: see `wait_for_room`; the sum of the sizes of items.
    """

    def __init__(
        self,
        name: str,
        write: Callable[[Sequence[T]], object],
        *,
        at_once: int,
        pause_s: float,
        most_waiting: int,
        retry_s: float = RETRY_S,
    ) -> None:
        self._name = name
        self._write_items = write
        self._at_once = at_once
        self._pause_s = pause_s
        self._most_waiting = most_waiting
        self._retry_s = retry_s
        self._thread = DbThread(name)
        self._batcher: Batcher[tuple[T, int]] = Batcher(self._write, pause=self._pause)
        self._last: asyncio.Future[None] | None = None
        self._waiting = 0
        self._may_write_at = 0.0
        self._flushing = 0
        self._urgent = asyncio.Event()
        self._is_closing = False

    def put(self, item: T, size: int = 1) -> None:
        """Write an item with the next batch. Call `wait_for_room` before or after it."""
        self._waiting += size
        self._last = self._batcher.put((item, size))

    @property
    def is_full(self) -> bool:
        """Whether as much waits as may."""
        return self._waiting >= self._most_waiting

    async def wait_for_room(self) -> None:
        """Wait while too much waits to be written."""
        while self.is_full and self._last is not None:
            await asyncio.shield(self._last)

    async def flush(self, within_s: float | None = None) -> None:
        """Return when all that was put is written, or the time is over; at once when nothing waits."""
        if self._last is None or self._last.done():
            return
        self._flushing += 1
        self._urgent.set()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    await asyncio.shield(self._last)
        finally:
            self._flushing -= 1
            if not self._flushing:
                self._urgent.clear()

    async def close(self) -> None:
        """Write what waits, and end the thread; gives up when the database stays away."""
        self._is_closing = True
        await self.flush()
        await self._thread.close()

    async def _pause(self) -> None:
        left_s = self._may_write_at - asyncio.get_running_loop().time()
        if left_s > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._urgent.wait()

    async def _write(self, added: Sequence[tuple[T, int]]) -> None:
        left = sum(size for _, size in added)
        try:
            for start in range(0, len(added), self._at_once):
                some = added[start : start + self._at_once]
                await self._write_some([item for item, _ in some])
                written = sum(size for _, size in some)
                self._waiting -= written
                left -= written
        finally:
            self._waiting -= left
            self._may_write_at = asyncio.get_running_loop().time() + self._pause_s

    async def _write_some(self, items: Sequence[T]) -> None:
        for attempt in itertools.count(1):
            try:
                await self._thread.call(self._write_items, items)
            except DATABASE_AWAY:
                if attempt == TRIES:
                    logger.exception("batch_writer.waits", extra={"writer": self._name, "items": len(items)})
                if self._is_closing and attempt >= TRIES:
                    return
                await asyncio.sleep(self._retry_s)
            else:
                return


def write_or_split(
    items: Sequence[T], write: Callable[[Sequence[T]], object], refused: Callable[[T, DatabaseError], object]
) -> None:
    """Write items together, each alone when one is at fault; `refused` gets those that cannot be written.

    Raises:
        OperationalError, InterfaceError, InternalError: the database is away.
    """
    try:
        write(items)
    except DATABASE_AWAY:
        raise
    except DatabaseError as failure:
        if len(items) == 1:
            refused(items[0], failure)
            return
        for item in items:
            write_or_split([item], write, refused)
