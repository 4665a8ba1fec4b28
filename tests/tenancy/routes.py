"""The addresses that the hub serves, read from the code: names as `rules.py` spells them."""

import re
from collections.abc import Iterator

from a2a_bridge.wire.versions import DIALECTS
from gateway.surface import fipa
from gateway.surface.agent_protocol import ROUTES as AGENT_PROTOCOL
from gateway.wire.frame_types import FRAME_TYPES
from hub.descriptions.asyncapi import GATEWAY_SOCKET, SOCKETS
from hub.descriptions.openapi import OPERATIONS
from mcp_server.surface.agnt_tools import AGNT_TOOLS
from mcp_server.surface.server import TOOLS
from tests.routes import routes

VERBS = ("get", "post", "put", "patch", "delete")
TEAM_MODEL = "/agent/{agent_name}"  # of `openai_api.surface.team_agents`
CONVERTED = re.compile(r"<(?:\w+:)?(\w+)>")
NAMED_GROUP = re.compile(r"\(\?P<(\w+)>[^)]*\)")
ADMIN = "/admin/"


def served() -> set[str]:
    """Every address with its HTTP method, every page, frame, method of the bridge and tool of MCP."""
    return {*_django(), *_operations(), *_undescribed(), *_frames(), *_methods(), *_tools()}


def _undescribed() -> Iterator[str]:
    """Addresses that `hub/asgi.py` serves, which neither Django's resolver nor OpenAPI has."""
    yield f"POST {fipa.PATH}"
    yield from (f"POST {TEAM_MODEL}{form}" for form in ("", "/chat/completions", "/v1/chat/completions"))
    for pattern, _, creates in AGENT_PROTOCOL:
        path = NAMED_GROUP.sub(r"{\1}", pattern.pattern)
        yield from (f"{verb} {path}" for verb in ("GET", *(["POST"] if creates else [])))


def _tools() -> Iterator[str]:
    yield from (f"TOOL {name}" for name in TOOLS)
    yield from (f"TOOL OF A KEY {name}" for name in AGNT_TOOLS)


def _methods() -> Iterator[str]:
    return (f"METHOD {dialect.name} {name}" for dialect in DIALECTS for name in dialect.methods)


def _operations() -> Iterator[str]:
    return (f"{one.method.upper()} {one.path}" for one in OPERATIONS)


def _frames() -> Iterator[str]:
    for socket in SOCKETS:
        yield from (f"{socket.path} {frame.__struct_config__.tag}" for frame in socket.from_client)
    yield from (f"/{GATEWAY_SOCKET} {name}" for name, one in FRAME_TYPES.items() if one.taken)


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
