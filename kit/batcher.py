"""Group commit for asyncio: items that arrive while one batch is written go into the next."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

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
        """Write the item with the next batch; returns a future of the write, which must not be cancelled."""
        self._items.append(item)
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
            if not self._is_running:
                self._is_running = True
                self._tasks.start(self._run(), name="batcher")
        return self._next

    async def _run(self) -> None:
        while self._next is not None:
            if self._pause:
                await self._pause()
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
