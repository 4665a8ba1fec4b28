"""Waiting for a future for a while, without cancelling it and without a task."""

import asyncio
from typing import Any


async def done_within(future: asyncio.Future[Any], within_s: float) -> bool:
    """Whether the future is done in time. Lighter than `asyncio.wait` for one future, on the path of every ask."""
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
