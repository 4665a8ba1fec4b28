"""Carries messages from any thread of this process to the processes they are for, in order."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress

from agents.core.post import Handler, Post
from agents.transcript.announcing import Addressed

logger = logging.getLogger(__name__)

MAX_WAITING = 10_000


class Courier:
    """One queue and one task; what is over the queue is dropped: messages may be lost, rows are not."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queue: asyncio.Queue[Addressed] = asyncio.Queue(MAX_WAITING)

    def address(self, process_id: str, here: Handler, post: Post) -> None:
        """Who is here, and how to reach the others."""
        self._me, self._here, self._post = process_id, here, post

    def carry(self, addressed: Sequence[Addressed]) -> None:
        """From any thread; nothing happens before the process has started or after it has ended."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._put, addressed)

    async def run(self) -> None:
        """Carry until cancelled."""
        self._loop = asyncio.get_running_loop()
        while True:
            process_id, message = await self._queue.get()
            try:
                if process_id == self._me:
                    await self._here(message)
                else:
                    await self._post.send(process_id, message)
            except Exception:
                logger.exception("courier.failed", extra={"kind": type(message).__name__})
            await asyncio.sleep(0)  # sockets send what they were given before they are given more

    def _put(self, addressed: Sequence[Addressed]) -> None:
        for one in addressed:
            if self._queue.full():
                logger.warning("courier.full")
                return
            self._queue.put_nowait(one)
