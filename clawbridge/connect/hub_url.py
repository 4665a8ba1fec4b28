"""From what an owner types to what the socket needs; every `ValueError` here is fit to show."""

import re
from urllib.parse import urlsplit

SOCKET_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
TOKEN = re.compile(r"ck_live_[!-~]+")
NAME = re.compile(r"[a-z0-9-]+")


def channel_url(hub: str) -> str:
    """Give the address of the agents' socket on the hub with this public address.

    Raises:
        ValueError: `hub` is not an http, https, ws or wss address.
    """
    return f"{_socket_origin(hub)}/channel"


def gateway_url(hub: str) -> str:
    """Give the address of the gateway's socket; one that begins with `ws` is taken as it is.

    Raises:
        ValueError: `hub` is not an http, https, ws or wss address.
    """
    address = _socket_origin(hub)
    return address if hub.startswith("ws") else f"{address}/gateway"


def _socket_origin(hub: str) -> str:
    problem = f"hub {hub!r}: want an address such as https://hub.example"
    try:
        parts = urlsplit(hub)
        is_origin = bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise ValueError(problem) from None
    extras = (parts.username, parts.password, parts.query, parts.fragment)
    if not is_origin or any(extras) or parts.scheme not in SOCKET_SCHEMES:
        raise ValueError(problem)
    return f"{SOCKET_SCHEMES[parts.scheme]}://{parts.netloc}{parts.path.rstrip('/')}"


def checked_token(token: str) -> str:
    """Give the token back if it can be one; the error never shows it."""
    if not TOKEN.fullmatch(token):
        raise ValueError("token: want a channel token, which begins with ck_live_")
    return token


def checked_name(name: str) -> str:
    """Give the routing name back if the hub can take it."""
    if not NAME.fullmatch(name):
        raise ValueError(f"name {name!r}: want only a-z, 0-9 and '-', such as my-agent")
    return name
