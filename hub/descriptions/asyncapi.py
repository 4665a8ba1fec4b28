"""The AsyncAPI document of the sockets, written from the structs of their frames."""

from collections.abc import Collection
from functools import cache
from typing import Any
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from hub.descriptions.described import SOCKETS
from hub.descriptions.gateway_frames import add_gateway
from hub.descriptions.shapes import SCHEMES, Json, schemas_of
from kit.describe import Socket

VERSION = "0.4.0"


@cache
def asyncapi() -> Json:
    """The whole document; it is the same as long as the process lives."""
    document: Json = {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Clawbridge sockets",
            "version": VERSION,
            "description": "One JSON text message a frame, each with its `type`. Unknown fields are ignored.",
        },
        "defaultContentType": "application/json",
        "servers": {"hub": _server(urlsplit(settings.PUBLIC_URL))},
        "channels": {},
        "operations": {},
        "components": {"messages": {}, "schemas": {}, "securitySchemes": SCHEMES},
    }
    for socket in SOCKETS:
        _add(document, socket)
    add_gateway(document)
    return document


def _server(public: SplitResult) -> Json:
    server = {"host": public.netloc, "protocol": "wss" if public.scheme == "https" else "ws"}
    return server | ({"pathname": public.path} if public.path else {})


def _add(document: Json, socket: Socket) -> None:
    """One socket: a channel, its frames as messages, and an operation for each direction, seen from the hub."""
    frames = [*dict.fromkeys([*socket.from_client, *socket.to_client])]
    payloads = [shape for shapes in socket.payloads.values() for shape in shapes]
    written, components = schemas_of([*frames, *payloads], prefix=f"{socket.name}.")
    schemas = dict(zip([*frames, *payloads], written, strict=True))
    for frame, shapes in socket.payloads.items():
        known = {"anyOf": [*(schemas[shape] for shape in shapes), {}]}
        components[f"{socket.name}.{frame.__name__}"]["properties"]["payload"] = known
    document["components"]["schemas"] |= components
    for frame in frames:
        document["components"]["messages"][_key(socket, frame)] = _message(frame, schemas[frame])
    document["channels"][socket.name] = {
        "address": socket.path,
        "summary": socket.summary,
        "messages": {name_of(socket, frame): _ref("components/messages", _key(socket, frame)) for frame in frames},
    }
    security = [_ref("components/securitySchemes", name) for name in socket.security]
    for action, told in {"receive": socket.from_client, "send": socket.to_client}.items():
        document["operations"][f"{socket.name}.{action}"] = _operation(socket, action, told) | {
            "security": security
        }


def _operation(socket: Socket, action: str, frames: Collection[type[Any]]) -> Json:
    summary = "What the hub takes." if action == "receive" else "What the hub sends."
    messages = [_ref(f"channels/{socket.name}/messages", name_of(socket, frame)) for frame in frames]
    return {"action": action, "channel": _ref("channels", socket.name), "summary": summary, "messages": messages}


def _message(frame: type[Any], schema: Json) -> Json:
    summary, _, rest = _told_by_wire_names(frame).partition("\n")
    written = {"name": tag_of(frame), "title": frame.__name__, "summary": summary, "payload": schema}
    return written | ({"description": rest.strip()} if rest.strip() else {})


def _told_by_wire_names(frame: type[Any]) -> str:
    """The docstring, with each field as the wire names it."""
    text = (frame.__doc__ or "").strip()
    for name, wire_name in zip(frame.__struct_fields__, frame.__struct_encode_fields__, strict=True):
        text = text.replace(f"`{name}`", f"`{wire_name}`")
    return text


def tag_of(frame: type[Any]) -> str:
    """The `type` of a frame on the wire."""
    return str(frame.__struct_config__.tag)


def name_of(socket: Socket, frame: type[Any]) -> str:
    """A frame's name among those of its socket: its `type`, unless the hub sends another frame of that type."""
    tag = tag_of(frame)
    is_twin = frame not in socket.to_client and tag in map(tag_of, socket.to_client)
    return f"{tag}-received" if is_twin else tag


def _key(socket: Socket, frame: type[Any]) -> str:
    return f"{socket.name}.{name_of(socket, frame)}"


def _ref(place: str, name: str) -> Json:
    return {"$ref": f"#/{place}/{name}"}
