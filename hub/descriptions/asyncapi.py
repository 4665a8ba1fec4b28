"""The AsyncAPI document of the sockets, written from the structs of their frames."""

from collections.abc import Collection
from functools import cache
from typing import Any
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from agents.links.channel.socket import SOCKET as CHANNEL
from hub.descriptions import gateway as gateway
from hub.descriptions.schemas import SCHEMES, Json, schemas_of
from kit.describe import DescribedSocket
from operators.wire.frames import SOCKET as CLI

VERSION = "0.4.0"
SOCKETS: tuple[DescribedSocket, ...] = (CHANNEL, CLI)


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
        _add_structs(document, socket)
    _add_gateway(document)
    return document


def _server(public: SplitResult) -> Json:
    server = {"host": public.netloc, "protocol": "wss" if public.scheme == "https" else "ws"}
    return server | ({"pathname": public.path} if public.path else {})


def _add_structs(document: Json, socket: DescribedSocket) -> None:
    """A socket whose frames are structs."""
    frames = [*dict.fromkeys([*socket.from_client, *socket.to_client])]
    payloads = [shape for shapes in socket.payloads.values() for shape in shapes]
    written, components = schemas_of([*frames, *payloads], prefix=f"{socket.name}.")
    schemas = dict(zip([*frames, *payloads], written, strict=True))
    for frame, shapes in socket.payloads.items():
        known = {"anyOf": [*(schemas[shape] for shape in shapes), {}]}
        components[f"{socket.name}.{frame.__name__}"]["properties"]["payload"] = known
    received, sent = (
        {name_of(socket, frame): _message(frame, schemas[frame]) for frame in told}
        for told in (socket.from_client, socket.to_client)
    )
    document["components"]["schemas"] |= components
    _add(document, socket.name, socket.path, socket.summary, socket.security, received, sent)


def _add_gateway(document: Json) -> None:
    """The socket of the gateway, whose frames are checked by tables."""
    document["components"]["schemas"] |= gateway.schemas()
    received, sent = gateway.messages()
    _add(document, gateway.NAME, gateway.ADDRESS, gateway.SUMMARY, gateway.SECURITY, received, sent)


def _add(
    document: Json, name: str, address: str, summary: str, schemes: Collection[str], received: Json, sent: Json
) -> None:
    """One socket: a channel, its frames as messages, and an operation for each direction, seen from the hub."""
    every = received | sent
    document["components"]["messages"] |= {f"{name}.{key}": message for key, message in every.items()}
    document["channels"][name] = {
        "address": address,
        "summary": summary,
        "messages": {key: _ref("components/messages", f"{name}.{key}") for key in every},
    }
    security = [_ref("components/securitySchemes", scheme) for scheme in schemes]
    for action, told, verb in (("receive", received, "takes"), ("send", sent, "sends")):
        document["operations"][f"{name}.{action}"] = {
            "action": action,
            "channel": _ref("channels", name),
            "summary": f"What the hub {verb}.",
            "messages": [_ref(f"channels/{name}/messages", key) for key in told],
            "security": security,
        }


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


def name_of(socket: DescribedSocket, frame: type[Any]) -> str:
    """A frame's name among those of its socket: its `type`, unless the hub sends another frame of that type."""
    tag = tag_of(frame)
    is_twin = frame not in socket.to_client and tag in map(tag_of, socket.to_client)
    return f"{tag}-received" if is_twin else tag


def _ref(place: str, name: str) -> Json:
    return {"$ref": f"#/{place}/{name}"}
