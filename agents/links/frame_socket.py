"""The base of agents' sockets of all protocols: sends frames within a time limit, prompts in order, and closes."""

import asyncio
from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress

from accounts.open_requests import UnsignedSockets
from agents.core import presence
from agents.core.errors import NotDelivered
from agents.core.post import PostedPrompt
from agents.links.sockets import SocketLink
from agents.models.choices import TurnFailure
from kit.account_pace import AccountPaces
from kit.async_db import db_call
from kit.durations import seconds
from kit.sockets import SocketConsumer, send_refusal

SEND_WITHIN_S = seconds(10.0, at_least_s=3.0)
NORMAL = 1000
GOING_AWAY = 1001


class FrameSocket(SocketConsumer):
    """A consumer that sends frames, as UTF-8 JSON, and can become the socket of a session.

    `_waiting_prompts`: the number of prompts that wait for room in the buffer. `_over`: the hub ignores what the
    socket receives. `_closed`: nothing can be sent any more. `_timer`: ends a socket whose client does not sign
    in.
    """

    def __init__(self, unsigned: UnsignedSockets, link: SocketLink, paces: AccountPaces) -> None:
        super().__init__()
        self._unsigned = unsigned
        self._paces = paces
        self._link = link
        self._prompting = asyncio.Lock()
        self._waiting_prompts = 0
        self._timer: asyncio.TimerHandle | None = None
        self._over = False
        self._closed = False

    @property
    def is_over(self) -> bool:
        """True if the socket sends at most a last frame."""
        return self._over

    @property
    def is_gone(self) -> bool:
        """True if nothing more is to be done for the client: the hub has ended the socket, or the client has."""
        return self._over or self.has_left

    @abstractmethod
    async def _fail_open_prompts(self, reason: TurnFailure = TurnFailure.CHANNEL_LOST) -> None:
        """Ignore further frames of this socket, and fail its open prompts at once."""

    async def _admit_unsigned(self) -> bool:
        """Count the socket until its client sends a token. False: its address has too many, and it was refused."""
        if self._unsigned.enter(self, self.scope):
            return True
        self._over = self._closed = True
        text = "too many sockets of your address wait for a token"
        await send_refusal(self.base_send, 429, "rate_limited", text)
        return False

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def prompt_now(self, prompt: PostedPrompt) -> bool:
        """See `agents.links.sockets.ServedSocket`."""
        return False

    async def _send_prompt(self, frame: bytes, withdraw: Callable[[], None]) -> None:
        """Send the frame of a prompt, after frames that wait for room in the buffer. `withdraw`: called if it was
        not sent.

        Raises:
            NotDelivered: nothing was sent; the socket is closed.
        """
        if not self._waiting_prompts and self.send_now is not None and self.send_now(frame):
            return
        self._waiting_prompts += 1
        try:
            async with self._prompting:  # in order, also while the agent does not read
                await self._send_encoded(frame)
        except asyncio.CancelledError:  # still waiting for room: nothing was sent, and nothing may be sent later
            withdraw()
            raise
        except OSError:  # the server raises before it writes, so nothing was sent
            withdraw()
            await self._fail_open_prompts()
            raise NotDelivered from None
        finally:
            self._waiting_prompts -= 1

    async def _send_bytes(self, frame: bytes) -> None:
        if not self._over:
            async with asyncio.timeout(SEND_WITHIN_S):
                await self._send_encoded(frame)

    async def _send_encoded(self, frame: bytes) -> None:
        try:
            await self.base_send({"type": "websocket.send", "text": str(frame, "utf-8")})
        except RuntimeError:  # the server has answered the peer's close, but has not sent us the disconnect yet
            raise ConnectionResetError from None

    async def _close_with(self, code: int, last: bytes | None) -> None:
        """Try to send a last frame, then close the socket."""
        # A TimeoutError is an OSError: the socket is closed also if the peer does not read the last frame.
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

    async def _remove_connection(self, connection_id: int, *, delete_session: bool = False) -> None:
        if not delete_session:
            await self._link.remove_connection(connection_id)
            return
        async with self._link.registering:
            await db_call(presence.remove_connection)(connection_id, delete_session=True)
