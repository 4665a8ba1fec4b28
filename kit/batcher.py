"""Group commit for asyncio: what waits while one batch is written goes into the next."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from kit.tasks import TaskSet

T = TypeVar("T")


class Batcher(Generic[T]):
    """Collects items and hands them to `write` in batches, one batch at a time."""

    def __init__(self, write: Callable[[Sequence[T]], Awaitable[None]]) -> None:
        self._write = write
        self._items: list[T] = []
        self._next: asyncio.Future[None] | None = None
        self._is_running = False
        self._tasks = TaskSet()

    @property
    def waiting(self) -> int:
        """Items that are not being written yet."""
        return len(self._items)

    async def add(self, item: T) -> None:
        """Return when the batch that holds the item was written; raise what writing it raised."""
        await asyncio.shield(self.put(item))

    def put(self, item: T) -> asyncio.Future[None]:
        """Have an item written with the next batch; the end of that, for who wants to wait. Never cancel it."""
        self._items.append(item)
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
            if not self._is_running:
                self._is_running = True
                self._tasks.start(self._run(), name="batcher")
        return self._next

    async def _run(self) -> None:
        while self._next is not None:
            items, done = self._items, self._next
            # Before the write: what is added while it waits goes into the next batch.
            self._items, self._next = [], None
            try:
                await self._write(items)
            except Exception as failure:  # noqa: BLE001  those who wait get it
                done.set_exception(failure)
                # Marks it as read: asyncio logs failures of futures for which no
                # coroutine waits, and `put` need not be awaited.
                done.exception()
            else:
                done.set_result(None)
        self._is_running = False
