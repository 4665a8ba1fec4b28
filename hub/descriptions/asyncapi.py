"""The AsyncAPI document of the sockets, written from the structs of their frames, or the tables of the gateway."""

from collections.abc import Collection, Sequence
from functools import cache
from typing import Any
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from agents.links.channel.socket import SOCKET as CHANNEL
from gateway.wire.errors import GatewayErrorCode
from gateway.wire.frame_types import (
    AGENT_NAME,
    ENVELOPE_FIELDS,
    FRAME_TYPES,
    HANDLE,
    MAX_ID_CHARS,
    FrameField,
    FrameType,
    is_agent_name,
    is_id,
    is_target,
)
from hub.descriptions.schemas import SCHEMES, Json, schemas_of
from kit.describe import BEARER, CHANNEL_TOKEN, DescribedSocket
from operators.wire.frames import SOCKET as CLI

VERSION = "0.4.0"
SOCKETS: tuple[DescribedSocket, ...] = (CHANNEL, CLI)
GATEWAY_SOCKET = "gateway"
ENVELOPE = f"{GATEWAY_SOCKET}.Envelope"
ERROR = f"{GATEWAY_SOCKET}.Error"
GATEWAY_SUMMARY = "The protocol a2a-v1 of OpenClaw teams, with GATEWAY=1: also at /ws, /a2a and /."
SCHEMAS: dict[str, Json] = {
    "a string": {"type": "string"},
    "a number": {"type": "number"},
    "a boolean": {"type": "boolean"},
    "an object": {"type": "object"},
    "an array of strings": {"type": "array", "items": {"type": "string"}},
    "a string or an object": {"anyOf": [{"type": "string"}, {"type": "object"}]},
    "milliseconds, or a time as ISO 8601": {"anyOf": [{"type": "number"}, {"type": "string"}]},
}
_CHECKS: dict[Any, Json] = {
    is_id: {"minLength": 1, "maxLength": MAX_ID_CHARS},
    is_agent_name: {"pattern": f"^{AGENT_NAME.pattern}$"},
    is_target: {"pattern": f"^({AGENT_NAME.pattern}|{HANDLE.pattern})$"},
}


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
    document["components"]["schemas"] |= _gateway_schemas()
    received, sent = _gateway_messages()
    _add(document, GATEWAY_SOCKET, "/gateway", GATEWAY_SUMMARY, (CHANNEL_TOKEN, BEARER), received, sent)


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


def _gateway_schemas() -> Json:
    """The components that the messages refer to."""
    return {ENVELOPE: _object_of(ENVELOPE_FIELDS), ERROR: _describe_error()}


def _gateway_messages() -> tuple[Json, Json]:
    """The frames that the hub takes, and those that it sends, as messages by name."""
    every = FRAME_TYPES.values()
    received = {name_of_type(one): _describe_frame(one.name, one.fields, one.taken) for one in every if one.taken}
    return received, {one.name: _describe_frame(one.name, one.sent_fields, one.sent) for one in every if one.sent}


def name_of_type(frame_type: FrameType) -> str:
    """The name of the message for a frame from a client; a frame that the hub sends has the name of its type."""
    return f"{frame_type.name}-received" if frame_type.sent else frame_type.name


def _describe_frame(type_name: str, fields: Sequence[FrameField], summary: str) -> Json:
    own = _object_of(fields)
    own["properties"] = {"type": {"const": type_name}, **own["properties"]}
    own["required"] = ["type", *own.get("required", ())]
    if type_name == "error":
        own["properties"]["content"] = {"$ref": f"#/components/schemas/{ERROR}"}
    payload = {"allOf": [{"$ref": f"#/components/schemas/{ENVELOPE}"}, own]}
    return {"name": type_name, "title": type_name, "summary": summary, "payload": payload}


def _object_of(fields: Sequence[FrameField]) -> Json:
    """An object with these fields, those of objects inside it by their paths.

    Other members are allowed everywhere.
    """
    found: Json = {"type": "object", "properties": {}}
    for field in fields:
        *places, name = field.path.split(".")
        inner = found
        for place in places:
            if field.is_required and not field.either:
                _require(inner, place)
            inner = inner["properties"].setdefault(place, {"type": "object", "properties": {}})
            inner.setdefault("properties", {})
        inner["properties"][name] = schema_of_field(field)
        if field.is_required and not field.either:
            _require(inner, name)
    return found


def _require(schema: Json, name: str) -> None:
    names = schema.setdefault("required", [])
    if name not in names:
        names.append(name)


def schema_of_field(field: FrameField) -> Json:
    """The schema of one field: its kind, and the values that it takes as far as a schema can say it."""
    schema: Json = dict(SCHEMAS.get(field.kind, {}))
    if callable(field.legal):
        schema |= _CHECKS.get(field.legal, {})
    elif field.legal is not None:
        schema["enum"] = sorted(field.legal)
    if field.either:
        schema["description"] = f"required, unless {field.either} is there"
    return schema


def _describe_error() -> Json:
    return {
        "type": "object",
        "properties": {
            "error": {"enum": [code.name for code in GatewayErrorCode], "description": "the name of the code"},
            "code": {"enum": [int(code) for code in GatewayErrorCode]},
            "message": {"type": "string", "description": "a sentence for people"},
            "reason": {"type": "string", "description": "more than the code says, for programs"},
            "field": {"type": "string", "description": "the path of what is wrong in the frame"},
            "retryAfterMs": {"type": "number", "description": "how long to wait, with 1005"},
        },
        "description": "; ".join(f"{int(code)} {code.name}: {code.meaning}" for code in GatewayErrorCode),
    }
