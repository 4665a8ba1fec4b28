"""uvicorn's protocol for WebSockets.

Sockets get protocol pings where no JSON frame shows life: on `/cli` and at the gateway.
"""

import asyncio
from collections import deque
from typing import Any

from django.conf import settings
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState

from gateway.surface.socket import PATHS as GATEWAY_PATHS
from kit.asgi import below
from kit.durations import seconds

PING_EVERY_S = seconds(25.0)
PONG_WITHIN_S = seconds(20.0, at_least_s=10.0)
MIN_PONG_S = 10.0  # for a client with a shorter heartbeat
PINGED = GATEWAY_PATHS | {"/cli"}
HEARTBEAT_TIMEOUT = 4008  # a close code that only `a2a-v1` has


class MessageQueue:
    """The messages that a socket received, for its one reader: the part of `asyncio.Queue` that uvicorn uses.

    uvicorn bounds the queue: it stops reading while a message waits.
    """

    __slots__ = ("_messages", "_reader")

    def __init__(self) -> None:
        self._messages: deque[Any] = deque()
        self._reader: asyncio.Future[None] | None = None

    def empty(self) -> bool:
        """True if no message waits."""
        return not self._messages

    def put_nowait(self, message: Any) -> None:
        """Add a message, and wake the reader."""
        self._messages.append(message)
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    async def get(self) -> Any:
        """The next message, once there is one."""
        while not self._messages:
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        return self._messages.popleft()


class HubSockets(WebSocketsSansIOProtocol):
    """A socket. Agents on `/channel` get JSON pings from their consumer; other clients get protocol pings, so that
    the socket of a client that vanished is closed.
    """

    __slots__ = ("_has_heartbeat", "_sending")

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._sending = 0  # messages of the application that wait until the client reads
        self._has_heartbeat = False
        self.queue = MessageQueue()  # type: ignore[assignment]

    def send_now(self, text: bytes) -> bool:
        """See `kit.sockets.SocketConsumer`."""
        is_blocked = self._sending or not self.writable.is_set()
        if is_blocked or not self.handshake_complete or self.transport.is_closing():
            return False
        try:
            self.conn.send_text(text)
        except InvalidState:
            return False
        self.transport.write(b"".join(self.conn.data_to_send()))
        return True

    def set_heartbeat(self, every_s: float) -> None:
        """See `kit.sockets.find_set_heartbeat`. The pong is due after the same time, but at least 10 and at most
        20 s.
        """
        self._has_heartbeat = True
        self.ping_interval = every_s
        self.ping_timeout = min(max(every_s, MIN_PONG_S), PONG_WITHIN_S)
        if self.ping_timer is not None:
            self.ping_timer.cancel()
            self.schedule_ping()

    def keepalive_timeout(self) -> None:
        """Close the socket, because no pong came; not while reading is paused, when the pong may wait behind
        unread frames.
        """
        if self.read_paused:
            self.pong_timer = self.loop.call_later(PONG_WITHIN_S, self.keepalive_timeout)
            return
        if self._has_heartbeat and not self.close_sent and not self.transport.is_closing():
            self.conn.fail(HEARTBEAT_TIMEOUT, "no pong came")  # otherwise uvicorn would close with 1011
        super().keepalive_timeout()

    def start_keepalive(self) -> None:
        """Start the protocol pings of an accepted socket, if its path has them."""
        if below(settings.PATH_PREFIX, self.scope["path"]) in PINGED:
            super().start_keepalive()

    async def send(self, message: Any) -> None:
        """Send a message of the application; also an HTTP response that refuses an upgrade."""
        self._sending += 1
        try:
            await super().send(message)
        finally:
            self._sending -= 1
        if message["type"] == "websocket.accept" and self.handshake_complete:
            del self.request, self.response  # 3 KiB of headers, which uvicorn needs only to accept
        if self.initial_response is not None and self.close_sent:
            self.handshake_complete = True  # else uvicorn logs an error
