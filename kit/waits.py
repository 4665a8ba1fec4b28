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
                    # Into the coroutine, not past it: when the timer cancels the
                    # wait, its `finally` blocks must run.
                    awaited = self._work.throw(thrown)
                else:
                    awaited = self._work.send(None)
            except StopIteration as done:
                result: T = done.value
                return result


class Waiters(list[asyncio.Future[bool]]):
    """Coroutines that wait for the same thing, each for its own time. Without any it costs nothing."""

    __slots__ = ()

    async def wait(self, within_s: float) -> bool:
        """Wait for the next `wake`; False when none came in time."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        timer = loop.call_later(within_s, _give_up, waiter)
        self.append(waiter)
        try:
            return await waiter
        finally:
            timer.cancel()
            self.remove(waiter)

    def wake(self) -> None:
        """It happened: all that wait now go on."""
        # The list does not change meanwhile: a waiter removes itself only when its coroutine runs again.
        for waiter in self:
            if not waiter.done():
                waiter.set_result(True)


def _give_up(waiter: asyncio.Future[bool]) -> None:
    if not waiter.done():
        waiter.set_result(False)
