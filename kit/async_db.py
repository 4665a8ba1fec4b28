"""The only bridges from a coroutine to Django's synchronous database work."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import partial
from time import thread_time
from typing import ParamSpec, Protocol, TypeVar

from channels.db import database_sync_to_async
from django.db import connection

from kit.asgi import Receive
from kit.request_threads import RequestThreads, WatchedCall, be_nice
from kit.sql import DATABASE_UNAVAILABLE

P = ParamSpec("P")
R = TypeVar("R")
Slice = TypeVar("Slice", str, bytes)

_bulk = ThreadPoolExecutor(2, "bulk", initializer=be_nice)
_requests = RequestThreads(100, "request")
_busy_requests = ThreadPoolExecutor(100, "busy request", initializer=be_nice)


def db_call(function: Callable[P, R]) -> Callable[P, Awaitable[R]]:
    """Wrap one whole synchronous function so that it runs in a pool thread.

    The default thread is shared by every socket of the process: one slow query there stalls them all
    (docs/adr/0003). The pool thread closes stale connections itself.
    """
    wrapped: Callable[P, Awaitable[R]] = database_sync_to_async(function, thread_sensitive=False)
    return wrapped


class DbCall(Protocol):
    """Runs one whole synchronous database function in another thread."""

    async def __call__(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the function, and return its result."""


class DbCalls:
    """Runs database calls of one kind, at most `at_once` at a time, so that threads remain for other calls."""

    def __init__(self, at_once: int) -> None:
        self._room = asyncio.Semaphore(at_once)

    async def __call__(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run one whole synchronous function as `db_call`, when there is room."""
        async with self._room:
            return await db_call(function)(*args, **kwargs)


class AccountCall(Protocol):
    """Runs one whole synchronous database function for an account in a thread, when it is the account's turn."""

    async def __call__(
        self, account_id: int, receive: Receive, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """Run the function, and return its result. `receive`: of the request, whose body was read.

        Raises:
            RequestRefused: too many requests of the account are under way.
            ClientLeft: the client disconnected before it was the account's turn.
        """


def request_call(function: Callable[P, R]) -> Callable[P, Awaitable[R]]:
    """Wrap a synchronous function that may wait long, also for another server, as Django wraps its views.

    Once it has computed for long, other threads have the processor before it: see `kit.request_threads`.
    """

    def run(watched: WatchedCall[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        return watched(*args, **kwargs)

    in_thread = database_sync_to_async(run, thread_sensitive=False, executor=_requests)

    async def call(*args: P.args, **kwargs: P.kwargs) -> R:
        watched = WatchedCall(function)
        try:
            result: R = await in_thread(watched, *args, **kwargs)
        finally:
            watched.stop()
        return result

    return call


def busy_request_call(function: Callable[P, R]) -> Callable[P, Awaitable[R]]:
    """Wrap a function as `request_call`; others have the processor first. For an account that has used much, and
    for reads that may take a little longer.
    """
    wrapped: Callable[P, Awaitable[R]] = database_sync_to_async(
        function, thread_sensitive=False, executor=_busy_requests
    )
    return wrapped


leave_thread: ContextVar[Callable[[], object] | None] = ContextVar("leave_thread", default=None)


def release_before_waiting() -> None:
    """Let other requests have what this one holds before it waits for another server: its connection, if it is
    not inside a transaction, and its place among the requests of its account.
    """
    if not connection.in_atomic_block:
        connection.close()
    if (leave := leave_thread.get()) is not None:
        leave()


async def _without_turn(read: Callable[[], Awaitable[tuple[R, float]]]) -> R:
    return (await read())[0]


class SliceCall(Protocol):
    """Reads a slice of an answer when it is the turn of the account that is answered. `read` returns the slice and
    the processor seconds of its thread.
    """

    async def __call__(self, read: Callable[[], Awaitable[tuple[R, float]]]) -> R:
        """Return the slice."""


read_slice: ContextVar[SliceCall] = ContextVar("read_slice", default=_without_turn)


async def stream_slices(slices: Iterator[Slice]) -> AsyncIterator[Slice]:
    """Yield slices as they are read from the database, each in a turn of its account.

    All long responses share two threads: they hold at most two connections, and none while a client reads a slice.
    """

    def read_next() -> tuple[Slice | None, float]:
        began_s = thread_time()
        return next(slices, None), thread_time() - began_s

    read = database_sync_to_async(read_next, thread_sensitive=False, executor=_bulk)
    while (piece := await read_slice.get()(read)) is not None:
        yield piece


class DbThread:
    """A thread that keeps its database connection: opening a connection takes longer than a small write."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, name)

    async def call(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run one whole synchronous function; after a connection failure the next call gets a new connection."""
        call = partial(function, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._run, call)

    async def close(self) -> None:
        """End the thread after its current call."""
        await asyncio.get_running_loop().run_in_executor(self._thread, _close)
        self._thread.shutdown()

    def _run(self, function: Callable[[], R]) -> R:
        try:
            return function()
        except DATABASE_UNAVAILABLE:
            connection.close()
            raise


def _close() -> None:
    """Close the database connection of the calling thread."""
    connection.close()
