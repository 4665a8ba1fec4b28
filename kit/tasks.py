"""Background asyncio tasks with an owner: none is garbage-collected early, and every failure is logged."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

logger = logging.getLogger(__name__)


class TaskSet:
    """Starts tasks, keeps references until they end, and logs their exceptions."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Run a coroutine in the background, and return its task; the caller need not keep it."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        # The event loop refers to tasks weakly: one that nothing else holds may be collected while it waits.
        self._tasks.add(task)
        task.add_done_callback(self._ended)
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

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (failure := task.exception()):
            logger.error("task.failed", extra={"task": task.get_name()}, exc_info=failure)


def read_failure(future: asyncio.Future[Any]) -> None:
    """A done-callback for tasks that may have no waiter: it reads the failure, so that asyncio does not log it."""
    if not future.cancelled():
        future.exception()
