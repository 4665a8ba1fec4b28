"""Looks at the hub repeatedly while a fault is done."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx
import psutil

from lab.callers import bearer, web
from lab.faults.fault import Scene
from lab.figures import percentile

EVERY_S = 0.2
AGAIN_AFTER_S = 1.0


def process_of(scene: Scene, index: int = 0) -> psutil.Process:
    """A web process, to look at its memory and its sockets."""
    program = scene.stack.web[index]
    assert program is not None, f"web process {index} is not running"
    return psutil.Process(program.pid)


async def became_true(look: Callable[[], Awaitable[bool]], within_s: float) -> bool:
    """Call `look` once a second until it returns True; False when time is up."""
    until = time.monotonic() + within_s
    while not await look():
        if time.monotonic() > until:
            return False
        await asyncio.sleep(AGAIN_AFTER_S)
    return True


async def until_true(look: Callable[[], bool], within_s: float) -> bool:
    """Call `look` several times a second until it returns True; False when time is up."""
    until = time.monotonic() + within_s
    while not (seen := look()) and time.monotonic() < until:
        await asyncio.sleep(EVERY_S)
    return seen


@dataclass
class Seen:
    """The seconds and the statuses of requests; the status of a request without an answer is 0."""

    took_s: list[float] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)

    @property
    def p99_s(self) -> float:
        """In how many seconds 99 of 100 looks were answered."""
        return percentile(self.took_s, 0.99)

    @property
    def summary(self) -> str:
        """A description for the detail of a figure."""
        return f"{len(self.took_s)} looks, p99 {self.p99_s:.2f} s, statuses {Counter(self.statuses)}"


@asynccontextmanager
async def looking(url: str, path: str, token: str = "") -> AsyncIterator[Seen]:
    """GET a path five times a second until the block ends, with that token."""
    seen = Seen()
    task = asyncio.get_running_loop().create_task(_look_on(url, path, token, seen))
    try:
        yield seen
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _look_on(url: str, path: str, token: str, seen: Seen) -> None:
    headers = bearer(token) if token else {}
    async with web(url) as client:
        while True:
            began = time.monotonic()
            try:
                status = (await client.get(path, headers=headers)).status_code
            except httpx.TransportError:
                status = 0
            seen.took_s.append(time.monotonic() - began)
            seen.statuses.append(status)
            await asyncio.sleep(EVERY_S)
