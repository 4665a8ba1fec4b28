"""A socket that speaks frames: sends them in time or finds out that the other end is gone."""

import asyncio
from contextlib import suppress

from agents.links.channel import frames
from agents.links.channel.frame import Frame
from kit.durations import seconds
from kit.sockets import SocketConsumer

SEND_WITHIN_S = seconds(10.0, at_least_s=3.0)


class FrameSocket(SocketConsumer):
    """`_over`: nothing from it counts any more. `_closed`: nothing can be sent any more."""

    def __init__(self) -> None:
        super().__init__()
        self._over = False
        self._closed = False

    async def _say(self, frame: Frame) -> None:
        """Answer a request, if the agent is still there."""
        if not self._over:
            with suppress(OSError):
                await self._send(frame)

    async def _send(self, frame: Frame) -> None:
        if self._closed:
            return
        async with asyncio.timeout(SEND_WITHIN_S):
            await self._send_text(frame)

    async def _send_bytes(self, frame: bytes) -> None:
        if not self._over:
            async with asyncio.timeout(SEND_WITHIN_S):
                await self._send_encoded(frame)

    async def _send_text(self, frame: Frame) -> None:
        await self._send_encoded(frames.encode(frame))

    async def _send_encoded(self, frame: bytes) -> None:
        try:
            await self.base_send({"type": "websocket.send", "text": str(frame, "utf-8")})
        except RuntimeError:  # the peer's close was answered, but not yet told to us
            raise ConnectionResetError from None

    async def _part(self, code: int, last: Frame | None) -> None:
        """Send a last frame if the agent takes it, and close either way."""
        with suppress(OSError):
            if last is not None:
                await self._send(last)
        with suppress(OSError):
            await self._end(code)

    async def _end(self, code: int) -> None:
        self._over = True
        if not self._closed:
            self._closed = True
            async with asyncio.timeout(SEND_WITHIN_S):
                await self.close(code)
