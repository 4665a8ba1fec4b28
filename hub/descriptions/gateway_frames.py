"""The socket of the gateway for the AsyncAPI document, written from the tables that check frames.

A frame is the envelope, which all have in common, and the fields of its type.
"""

from collections.abc import Sequence
from typing import Any

from gateway.wire.errors import ErrorCode
from gateway.wire.frame_types import (
    AGENT_NAME,
    ENVELOPE_FIELDS,
    FRAME_TYPES,
    HANDLE,
    MAX_ID_CHARS,
    Field,
    is_agent_name,
    is_id,
    is_target,
)
from hub.descriptions.gateway_texts import ERRORS, RECEIVED, SENT
from hub.descriptions.shapes import Json
from kit.describe import BEARER, CHANNEL_TOKEN

NAME = "gateway"
ADDRESS = "/gateway"
ENVELOPE = f"{NAME}.Envelope"
ERROR = f"{NAME}.Error"
SECURITY = (CHANNEL_TOKEN, BEARER)
SUMMARY = "The protocol a2a-v1 of OpenClaw teams, with GATEWAY=1: also at /ws, /a2a and /."
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


def schemas() -> Json:
    """The components that the messages refer to."""
    return {ENVELOPE: _object_of(ENVELOPE_FIELDS), ERROR: _error()}


def messages() -> tuple[Json, Json]:
    """The frames that the hub takes, and those that it sends, as messages by name."""
    received = {name_of(name): _message(name, FRAME_TYPES[name].fields, text) for name, text in RECEIVED.items()}
    return received, {name: _message(name, fields, text) for name, (text, fields) in SENT.items()}


def name_of(type_name: str) -> str:
    """The name of the message for a frame from a client; a frame that the hub sends has the name of its type."""
    return f"{type_name}-received" if type_name in SENT else type_name


def _message(type_name: str, fields: Sequence[Field], summary: str) -> Json:
    own = _object_of(fields)
    own["properties"] = {"type": {"const": type_name}, **own["properties"]}
    own["required"] = ["type", *own.get("required", ())]
    if type_name == "error":
        own["properties"]["content"] = {"$ref": f"#/components/schemas/{ERROR}"}
    payload = {"allOf": [{"$ref": f"#/components/schemas/{ENVELOPE}"}, own]}
    return {"name": type_name, "title": type_name, "summary": summary, "payload": payload}


def _object_of(fields: Sequence[Field]) -> Json:
    """An object with these fields, those of objects inside it by their paths. Others are allowed everywhere."""
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


def schema_of_field(field: Field) -> Json:
    """The schema of one field: its kind, and the values that it takes as far as a schema can say it."""
    schema: Json = dict(SCHEMAS.get(field.kind, {}))
    if callable(field.legal):
        schema |= _CHECKS.get(field.legal, {})
    elif field.legal is not None:
        schema["enum"] = sorted(field.legal)
    if field.either:
        schema["description"] = f"required, unless {field.either} is there"
    return schema


def _error() -> Json:
    return {
        "type": "object",
        "properties": {
            "error": {"enum": [code.name for code in ErrorCode], "description": "the name of the code"},
            "code": {"enum": [int(code) for code in ErrorCode]},
            "message": {"type": "string", "description": "a sentence for people"},
            "reason": {"type": "string", "description": "more than the code says, for programs"},
            "field": {"type": "string", "description": "the path of what is wrong in the frame"},
            "retryAfterMs": {"type": "number", "description": "how long to wait, with 1005"},
        },
        "description": "; ".join(f"{int(code)} {code.name}: {text}" for code, text in ERRORS.items()),
    }
