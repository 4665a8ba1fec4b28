"""A look at the database that is over in time, whatever the database does."""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from kit.async_db import DbThread
from kit.tasks import read_failure

T = TypeVar("T")


class Look(Generic[T]):
    """Runs one synchronous function in a thread and connection of its own; who asks meanwhile joins that run.

    A database that hangs holds this one thread, and nobody for longer than `within_s`.
    """

    def __init__(self, function: Callable[[], T], name: str, *, within_s: float) -> None:
        self._function = function
        self._within_s = within_s
        self._thread = DbThread(name)
        self._running: asyncio.Task[T] | None = None

    async def __call__(self) -> T:
        """What it found.

        Raises:
            TimeoutError: it is not over yet.
        """
        if self._running is None or self._running.done():
            self._running = asyncio.get_running_loop().create_task(self._thread.call(self._function), name="look")
            self._running.add_done_callback(read_failure)
        # `wait` does not cancel: the thread cannot be stopped, and the next caller joins this run.
        done, _ = await asyncio.wait({self._running}, timeout=self._within_s)
        if not done:
            raise TimeoutError
        return self._running.result()

    async def close(self) -> None:
        """Let the connection go, after what runs."""
        await self._thread.close()
