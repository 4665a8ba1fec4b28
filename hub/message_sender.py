"""Sends messages from any thread of this process to other processes, in order."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress

from agents.core.post import Handler, Post
from agents.transcript.announcements import AddressedMessage

logger = logging.getLogger(__name__)

MAX_WAITING = 10_000


class MessageSender:
    """One queue and one task; messages beyond its size are dropped, which loses no rows."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queue: asyncio.Queue[AddressedMessage] = asyncio.Queue(MAX_WAITING)

    def address(self, process_id: str, here: Handler, post: Post) -> None:
        """Set this process's handler and the post to other processes."""
        self._me, self._here, self._post = process_id, here, post

    def queue_messages(self, addressed: Sequence[AddressedMessage]) -> None:
        """Queue messages from any thread; does nothing before the process has started or after it has ended."""
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

    def _put(self, addressed: Sequence[AddressedMessage]) -> None:
        for one in addressed:
            if self._queue.full():
                logger.warning("courier.full")
                return
            self._queue.put_nowait(one)
