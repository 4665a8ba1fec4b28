"""uvicorn's sockets, with protocol pings where no JSON frame shows life: on `/cli` and at the gateway
(docs/adr/0010).
"""

import asyncio
from collections import deque
from typing import Any

from django.conf import settings
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from gateway.connections.socket import PATHS as GATEWAY_PATHS
from kit.asgi import below
from kit.durations import seconds

PING_EVERY_S = seconds(25.0)
PONG_WITHIN_S = seconds(20.0, at_least_s=10.0)
PINGED = GATEWAY_PATHS | {"/cli"}


class MessageQueue:
    """What a socket received, for its one reader: as much of `asyncio.Queue` as uvicorn uses.

    uvicorn bounds it: it reads no more while anything waits.
    """

    __slots__ = ("_messages", "_reader")

    def __init__(self) -> None:
        self._messages: deque[Any] = deque()
        self._reader: asyncio.Future[None] | None = None

    def empty(self) -> bool:
        """Whether nothing waits."""
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
    """Agents on `/channel` get JSON pings from their consumer; another client that vanished would stay."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.queue = MessageQueue()  # type: ignore[assignment]

    def start_keepalive(self) -> None:
        """Called by uvicorn once a socket is accepted."""
        if below(settings.PATH_PREFIX, self.scope["path"]) in PINGED:
            super().start_keepalive()

    async def send(self, message: Any) -> None:
        """Called by the application. An upgrade that it refused by an HTTP response is answered, too."""
        await super().send(message)
        if message["type"] == "websocket.accept" and self.handshake_complete:
            del self.request, self.response  # 3 KiB of headers, which uvicorn needs only to accept
        if self.initial_response is not None and self.close_sent:
            self.handshake_complete = True  # else uvicorn logs an error
