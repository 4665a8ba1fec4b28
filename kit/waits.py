"""Cheap deadlines: each ask passes several of them, and most never have to wait."""

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


async def wait_within(work: Coroutine[Any, Any, T], within_s: float) -> T:
    """Await a coroutine with a deadline. A coroutine that finishes without waiting gets no timer.

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
    """Continues a coroutine from its first wait."""

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
    """Coroutines that wait for the same event, each with its own timeout. Costs nothing without waiters."""

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
        """Wake all current waiters."""
        # The list does not change meanwhile: a waiter removes itself only when its coroutine runs again.
        for waiter in self:
            if not waiter.done():
                waiter.set_result(True)


def _give_up(waiter: asyncio.Future[bool]) -> None:
    if not waiter.done():
        waiter.set_result(False)
