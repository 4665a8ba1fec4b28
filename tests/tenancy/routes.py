"""The addresses that the hub serves, read from the code: names as `rules.py` spells them."""

import re
from collections.abc import Iterator

from a2a_bridge.wire.versions import DIALECTS
from hub.descriptions.asyncapi import SOCKETS
from hub.descriptions.openapi import OPERATIONS
from mcp_server.surface.server import TOOLS
from tests.routes import routes

VERBS = ("get", "post", "put", "patch", "delete")
CONVERTED = re.compile(r"<(?:\w+:)?(\w+)>")
ADMIN = "/admin/"


def served() -> set[str]:
    """Every address with its HTTP method, every page, frame, method of the bridge and tool of MCP."""
    return {*_django(), *_operations(), *_frames(), *_methods(), *_tools()}


def _tools() -> Iterator[str]:
    return (f"TOOL {name}" for name in TOOLS)


def _methods() -> Iterator[str]:
    return (f"METHOD {dialect.name} {name}" for dialect in DIALECTS for name in dialect.methods)


def _operations() -> Iterator[str]:
    return (f"{one.method.upper()} {one.path}" for one in OPERATIONS)


def _frames() -> Iterator[str]:
    for socket in SOCKETS:
        yield from (f"{socket.path} {frame.__struct_config__.tag}" for frame in socket.from_client)


def _django() -> Iterator[str]:
    described = {one.path for one in OPERATIONS}
    for address, pattern in routes():
        path = CONVERTED.sub(r"{\1}", address)
        view = getattr(pattern.callback, "cls", None)
        if path.startswith(ADMIN):
            yield f"PAGE {ADMIN}…"
        elif view is not None:
            yield from (f"{verb.upper()} {path}" for verb in VERBS if hasattr(view, verb))
        elif path not in described:
            yield f"PAGE {path}"
