"""The only bridges from a coroutine to Django's synchronous database work."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from channels.db import aclose_old_connections, database_sync_to_async
from django.db import connection

from kit.sql import AWAY

P = ParamSpec("P")
R = TypeVar("R")
Slice = TypeVar("Slice", str, bytes)

_bulk = ThreadPoolExecutor(2, "bulk")


def db_call(function: Callable[P, R]) -> Callable[P, Awaitable[R]]:
    """Wrap one whole synchronous function so that it runs in a pool thread.

    The default thread is shared by every socket of the process: one slow query there stalls them all
    (docs/adr/0003). The pool thread closes stale connections itself.
    """
    wrapped: Callable[P, Awaitable[R]] = database_sync_to_async(function, thread_sensitive=False)
    return wrapped


async def release_connection() -> None:
    """Give back the connection of the request's own thread, in which Django ran its view."""
    await aclose_old_connections()


def release_before_waiting() -> None:
    """Give back the connection of this thread, which is about to wait for another server; not in a transaction."""
    if not connection.in_atomic_block:
        connection.close()


async def stream_slices(slices: Iterator[Slice]) -> AsyncIterator[Slice]:
    """Slices as they are read.

    All long answers share two threads: they hold at most two connections, and none while a client takes a slice.
    """
    read = database_sync_to_async(next, thread_sensitive=False, executor=_bulk)
    while (piece := await read(slices, None)) is not None:
        yield piece


class DbThread:
    """A thread that keeps its connection: for a small write, opening one costs more than the write."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, name)

    async def call(self, function: Callable[[], R]) -> R:
        """Run one whole synchronous function; after a failure of the connection the next gets a new one."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._run, function)

    async def close(self) -> None:
        """End the thread after what it does."""
        await asyncio.get_running_loop().run_in_executor(self._thread, _close)
        self._thread.shutdown()

    def _run(self, function: Callable[[], R]) -> R:
        try:
            return function()
        except AWAY:
            connection.close()
            raise


def _close() -> None:
    """The connection of the thread that runs this."""
    connection.close()
