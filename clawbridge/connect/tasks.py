"""Background work that cannot outlive the block that needs it."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

T = TypeVar("T")


@asynccontextmanager
async def running(work: Coroutine[Any, Any, T]) -> AsyncIterator[asyncio.Task[T]]:
    """Run `work` as a task while the block runs; what is left of it at the end is cancelled and awaited."""
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})


async def cancel_all(tasks: set[asyncio.Task[None]]) -> None:
    """Cancel tasks and return once each has cleaned up."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
