"""Waiting for a while, lightly: the path of every ask has several deadlines, and most of them wait for nothing."""

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


async def within(work: Coroutine[Any, Any, T], within_s: float) -> T:
    """What a coroutine returns. One that never has to wait needs no timer, and gets none.

    Raises:
        TimeoutError: it was not done in time, and is cancelled.
    """
    try:
        first = work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    async with asyncio.timeout(within_s):
        return await _Rest(work, first)


class _Rest(Generic[T]):
    """A coroutine from its first wait on."""

    def __init__(self, work: Coroutine[Any, Any, T], first: object) -> None:
        self._work = work
        self._first = first

    def __await__(self) -> Generator[Any, None, T]:
        awaited = self._first
        while True:
            try:
                try:
                    yield awaited
                except BaseException as thrown:  # noqa: BLE001  it is handed on
                    awaited = self._work.throw(thrown)
                else:
                    awaited = self._work.send(None)
            except StopIteration as done:
                result: T = done.value
                return result


async def done_within(future: asyncio.Future[Any], within_s: float) -> bool:
    """Whether the future is done in time; it is not cancelled. Lighter than `asyncio.wait` for one future."""
    if future.done():
        return True
    loop = asyncio.get_running_loop()
    waiter = loop.create_future()

    def wake(_: object = None) -> None:
        if not waiter.done():
            waiter.set_result(None)

    timer = loop.call_later(within_s, wake)
    future.add_done_callback(wake)
    try:
        await waiter
    finally:
        timer.cancel()
        future.remove_done_callback(wake)
    return future.done()
