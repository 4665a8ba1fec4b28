"""Background asyncio tasks with an owner: none is garbage-collected early, and no failure is lost."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

logger = logging.getLogger(__name__)
Result = TypeVar("Result")
Start = Callable[[Coroutine[Any, Any, None], str], object]


class TaskSet:
    """Starts tasks, keeps references until they end, and logs their exceptions, unless the caller reads them."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Run a coroutine in the background, and return its task; the caller need not keep it."""
        task = self.keep(work, name)
        task.add_done_callback(_log_failure)
        return task

    def keep(self, work: Coroutine[Any, Any, Result], name: str) -> asyncio.Task[Result]:
        """Run a coroutine in the background, and return its task, whose exception the caller reads."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        # The event loop refers to tasks weakly: one that nothing else holds may be collected while it waits.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def wait(self, within_s: float) -> None:
        """Wait until all tasks have ended, or the time is up; running tasks continue."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=within_s)

    async def cancel(self) -> None:
        """Cancel the running tasks and wait until they have ended."""
        for task in (left := list(self._tasks)):
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


def _log_failure(task: asyncio.Task[Any]) -> None:
    if not task.cancelled() and (failure := task.exception()):
        logger.error("task.failed", extra={"task": task.get_name()}, exc_info=failure)


def read_failure(future: asyncio.Future[Any]) -> None:
    """A done-callback for tasks that may have no waiter: it reads the failure, so that asyncio does not log it."""
    if not future.cancelled():
        future.exception()


def start_apart(start: Start, work: Coroutine[Any, Any, Result], name: str) -> "asyncio.Future[Result]":
    """Run something to its end, whether or not a request still waits for it; a future of what it returns."""
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
