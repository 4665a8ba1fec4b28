"""The frames that a socket sends, each within a time limit, and its end."""

import asyncio
from contextlib import suppress

from accounts.open_requests import UnsignedSockets
from kit.durations import seconds
from kit.sockets import SocketConsumer, send_refusal

SEND_WITHIN_S = seconds(10.0, at_least_s=3.0)


class FrameSocket(SocketConsumer):
    """A consumer that sends frames, as UTF-8 JSON.

    `_over`: the hub takes nothing from the socket any more. `_closed`: nothing can be sent any more.
    """

    def __init__(self, unsigned: UnsignedSockets) -> None:
        super().__init__()
        self._unsigned = unsigned
        self._over = False
        self._closed = False

    @property
    def is_over(self) -> bool:
        """True if it sends nothing any more but a last frame."""
        return self._over

    async def _admit_unsigned(self) -> bool:
        """Count the socket until its client sends a token. False: its address has too many, and it was refused."""
        if self._unsigned.enter(self, self.scope):
            return True
        self._over = self._closed = True
        text = "too many sockets of your address wait for a token"
        await send_refusal(self.base_send, 429, "rate_limited", text)
        return False

    async def _send_bytes(self, frame: bytes) -> None:
        if not self._over:
            async with asyncio.timeout(SEND_WITHIN_S):
                await self._send_encoded(frame)

    async def _send_encoded(self, frame: bytes) -> None:
        try:
            await self.base_send({"type": "websocket.send", "text": str(frame, "utf-8")})
        except RuntimeError:  # the peer's close was answered, but not yet told to us
            raise ConnectionResetError from None

    async def _close_with(self, code: int, last: bytes | None) -> None:
        """Send a last frame if the peer takes it, and close either way."""
        # A TimeoutError is an OSError: a peer that takes no last frame is closed all the same.
        with suppress(OSError):
            if last is not None and not self._closed:
                async with asyncio.timeout(SEND_WITHIN_S):
                    await self._send_encoded(last)
        with suppress(OSError):
            self._over = True
            if not self._closed:
                self._closed = True
                async with asyncio.timeout(SEND_WITHIN_S):
                    await self.close(code)
