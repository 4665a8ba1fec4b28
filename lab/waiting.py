"""Waiting for a condition, with a deadline; how long durations are on hubs that tests start."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from kit.durations import seconds

SCALE = 0.1  # of the durations of hub processes that tests start
Seen = TypeVar("Seen")


def on_hub(real_s: float, *, at_least_s: float = 0.0) -> float:
    """The seconds that a duration of the contract takes in a hub process that a test started."""
    return seconds(real_s, at_least_s=at_least_s, scale=SCALE)


def until(look: Callable[[], Seen], what: str, *, within_s: float) -> Seen:
    """Call `look` until it returns a truthy value, and return that. Raises TimeoutError."""
    deadline = time.monotonic() + within_s
    while not (seen := look()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {within_s:g} s: {what}")
        time.sleep(0.05)
    return seen


async def eventually(
    look: Callable[[], Awaitable[Seen | None]], what: str, *, within_s: float = 30, every_s: float = 0.1
) -> Seen:
    """Call `look` until it returns a truthy value, and return that. Raises TimeoutError."""
    deadline = time.monotonic() + within_s
    while not (seen := await look()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {within_s:g} s: {what}")
        await asyncio.sleep(every_s)
    return seen
