"""Background asyncio tasks with an owner, whose failures are logged; and cheap deadlines.

Each ask runs under several deadlines, and mostly finishes without waiting.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any, Generic, TypeVar

logger = logging.getLogger(__name__)
Result = TypeVar("Result")
T = TypeVar("T")
Start = Callable[[Coroutine[Any, Any, None], str], object]


class TaskSet:
    """Starts tasks, keeps references until they end, and logs their exceptions, unless the caller reads them."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Run a coroutine in the background, and return its task; the caller need not keep the task."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._log_failure)
        return task

    def keep(self, work: Coroutine[Any, Any, Result], name: str) -> asyncio.Task[Result]:
        """Run a coroutine in the background, and return its task, whose exception the caller reads."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        # The event loop has only weak references to tasks: without this one, a waiting task may be garbage-
        # collected.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def wait(self, within_s: float | None = None) -> None:
        """Wait until all tasks have ended, or the time is up, if there is one; running tasks continue."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=within_s)

    async def cancel(self) -> None:
        """Cancel the running tasks and wait until they have ended."""
        for task in (left := list(self._tasks)):
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def _log_failure(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (failure := task.exception()):
            logger.error("task.failed", extra={"task": task.get_name()}, exc_info=failure)


def read_failure(future: asyncio.Future[Any]) -> None:
    """A done-callback for tasks that may have no waiter: it reads the failure, so that asyncio does not log it."""
    if not future.cancelled():
        future.exception()


def start_apart(start: Start, work: Coroutine[Any, Any, Result], name: str) -> "asyncio.Future[Result]":
    """Run a coroutine to its end, also when the request that started it is cancelled; returns a future of its
    result.
    """
    done: asyncio.Future[Result] = asyncio.get_running_loop().create_future()

    async def run() -> None:
        try:
            done.set_result(await work)
        except asyncio.CancelledError:
            done.cancel()
            raise
        except Exception as failure:  # noqa: BLE001  the request that waits answers it; else asyncio logs it
            done.set_exception(failure)

    start(run(), name)
    return done


async def wait_within(work: Coroutine[Any, Any, T], within_s: float) -> T:
    """Await a coroutine with a deadline. A coroutine that finishes without waiting gets no timer.

    Raises:
        TimeoutError: the coroutine did not finish in time, and was cancelled.
    """
    try:
        first = work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    async with asyncio.timeout(within_s):
        return await _Rest(work, first)


class _Rest(Generic[T]):
    """An awaitable that continues a coroutine from the first object that it awaited."""

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


class Waiters(list[Callable[[], None]]):
    """Callbacks, and coroutines each with its own timeout, that wait for the same event.

    A callback is added by `append` and removed by `remove`, also after its call. What it raises is logged.
    """

    __slots__ = ()

    async def wait(self, within_s: float) -> bool:
        """Wait for the next `wake`; False if the time ran out first."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        timer = loop.call_later(within_s, _wake, waiter, False)
        wake = partial(_wake, waiter, True)
        self.append(wake)
        try:
            return await waiter
        finally:
            timer.cancel()
            self.remove(wake)

    def wake(self) -> None:
        """Call all callbacks, and wake all coroutines, that wait now."""
        for call in tuple(self):
            try:
                call()
            except Exception:  # the others must be woken
                logger.exception("waiter.failed")


def _wake(waiter: asyncio.Future[bool], is_in_time: bool) -> None:
    if not waiter.done():
        waiter.set_result(is_in_time)
