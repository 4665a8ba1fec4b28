"""The addresses that only the gateway has, and the answers of a hub without the gateway there."""

from gateway.surface.agent_protocol import is_agent_protocol
from gateway.surface.health import STATUS_PATH
from gateway.surface.socket import PATHS
from kit.asgi import Header, Receive, RequestRefused, Send, respond_refused
from kit.sockets import refuse_upgrade

SOCKET_PATHS = PATHS - {"/"}  # at `/` HTTP requests get the home page
OFF_TEXT = "the gateway is off on this hub: its operator sets GATEWAY=1 to serve a2a-v1 (docs/howto/run-a-team.md)"
UPGRADE_TEXT = "this address is the socket of the gateway: connect by WebSocket, with the subprotocol a2a-v1"
UPGRADE: Header = (b"upgrade", b"websocket")


def is_of_gateway(path: str) -> bool:
    """True if only the gateway answers HTTP requests at a path, of those outside of the native API.

    `/health` and `/agents` are pages, too.
    """
    if path in SOCKET_PATHS or path == STATUS_PATH:
        return True
    return path.startswith(f"{STATUS_PATH}/") or is_agent_protocol(path)


async def refuse_off(send: Send) -> None:
    """Answer an HTTP request on a hub without the gateway."""
    await respond_refused(send, RequestRefused(404, "gateway_off", OFF_TEXT))


async def refuse_off_upgrade(receive: Receive, send: Send) -> None:
    """Answer an upgrade on a hub without the gateway."""
    await refuse_upgrade(receive, send, 404, "gateway_off", OFF_TEXT)


async def demand_upgrade(send: Send) -> None:
    """Answer an HTTP request at the address of a socket."""
    await respond_refused(send, RequestRefused(426, "upgrade_required", UPGRADE_TEXT, UPGRADE))
