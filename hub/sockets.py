"""uvicorn's sockets, with protocol pings where no JSON frame shows life: on `/cli` (docs/adr/0010)."""

from django.conf import settings
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from kit.asgi import below

PING_EVERY_S = 25.0
PONG_WITHIN_S = 20.0
PINGED = frozenset({"/cli"})


class HubSockets(WebSocketsSansIOProtocol):
    """Agents get JSON pings from their consumer; an operator who vanished would stay attached for ever."""

    def start_keepalive(self) -> None:
        """Called by uvicorn once a socket is accepted."""
        if below(settings.PATH_PREFIX, self.scope["path"]) in PINGED:
            super().start_keepalive()
