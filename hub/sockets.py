"""uvicorn's sockets, with protocol pings where no JSON frame shows life: on `/cli` (docs/adr/0010)."""

from typing import Any

from django.conf import settings
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from kit.asgi import below
from kit.durations import seconds

PING_EVERY_S = seconds(25.0)
PONG_WITHIN_S = seconds(20.0, at_least_s=10.0)
PINGED = frozenset({"/cli"})


class HubSockets(WebSocketsSansIOProtocol):
    """Agents get JSON pings from their consumer; an operator who vanished would stay attached for ever."""

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
