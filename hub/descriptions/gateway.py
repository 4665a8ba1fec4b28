"""The socket of the gateway for the AsyncAPI document, written from the tables that check frames.

A frame is the envelope, which all have in common, and the fields of its type. The texts say what each frame and
error means; tests compare their names with the registry of frame types and the error codes.
"""

from collections.abc import Sequence
from typing import Any

from gateway.wire.errors import GatewayErrorCode
from gateway.wire.frame_types import (
    AGENT_NAME,
    ENVELOPE_FIELDS,
    FRAME_TYPES,
    HANDLE,
    MAX_ID_CHARS,
    STATUSES,
    VOTES,
    FrameField,
    is_agent_name,
    is_id,
    is_target,
)
from hub.descriptions.schemas import Json
from kit.describe import BEARER, CHANNEL_TOKEN

RECEIVED: dict[str, str] = {
    "message": "A message to an agent. With `metadata.requiresResponse` it is a turn, and its reply is awaited.",
    "status": "Without content: asks for the statuses of all agents. With `status`: an agent says how it is.",
    "error": "An agent could not answer the message that `metadata.correlationId` names. It is never answered.",
    "event": "Something happened; the gateway passes it on to the subscribers of its channel.",
    "handshake": "`advertise`: what the client takes. Again replaces what it said before.",
    "discovery": "Asks for the agents that the client can find, for one of them, or for services.",
    "subscribe": "Asks for the frames of a channel, about all agents or those that `agents` names.",
    "unsubscribe": "Ends a subscription, wholly or for some agents.",
    "ping": "Asks for a `pong`.",
    "pong": "Answers a `ping`.",
    "workspace": "Asks for workspaces of agents.",
    "auth": "Signs in with a token.",
    "disconnect": "Ends the connection; the gateway closes it.",
    "proposal": "Puts a proposal to the voters of the team.",
    "vote": "Votes on a proposal. A later vote replaces it as long as the proposal is open.",
    "request": "Calls a service of the gateway.",
    "response": "Answers a message or a request by its `metadata.correlationId`.",
    "broadcast": "Sends a message to all connected agents of the team.",
}
_ACTION = FrameField("content.action", "a string", is_required=True)
_PROPOSAL_ID = FrameField("content.proposalId", "a string", is_required=True)
SENT: dict[str, tuple[str, tuple[FrameField, ...]]] = {
    "message": (
        "A message to an agent, or the reply to a message of the client.",
        (
            FrameField("content.role", "a string", is_required=True),
            FrameField("content.content", "a string or an object", is_required=True),
        ),
    ),
    "status": (
        "The statuses of agents, or the new status of one.",
        (FrameField("content.agent", "a string"), FrameField("content.status", "a string", legal=STATUSES)),
    ),
    "error": (
        "A frame was refused, or a message was not answered; its ids are in the metadata.",
        (FrameField("error", "a string", is_required=True), FrameField("content", "an object", is_required=True)),
    ),
    "event": (
        "Something happened: to a message of the client, or in a channel that it subscribed to.",
        (FrameField("event", "a string"), FrameField("content.event", "a string")),
    ),
    "handshake": (
        "Acknowledges the handshake, and names the agents that the client may send to.",
        (
            _ACTION,
            FrameField("content.clientId", "a string", is_required=True),
            FrameField("content.availableAgents", "an array of strings", is_required=True),
            FrameField("content.protocolVersion", "a string", is_required=True),
        ),
    ),
    "discovery": ("The agents or services that were asked for.", ()),
    "subscribe": ("Acknowledges a subscription.", ()),
    "unsubscribe": ("Acknowledges the end of a subscription.", ()),
    "pong": (
        "Answers a `ping`, with what it said of its sender.",
        (FrameField("content.heartbeat", "an object"),),
    ),
    "workspace": ("The workspaces that were asked for.", ()),
    "auth-response": (
        "Whether the token was taken.",
        (
            FrameField(
                "content.status", "a string", is_required=True, legal=frozenset({"authenticated", "rejected"})
            ),
            FrameField("content.agent", "a string"),
            FrameField("content.role", "a string"),
        ),
    ),
    "disconnect": (
        "The last frame before the gateway closes the connection.",
        (FrameField("content.reason", "a string", is_required=True), FrameField("content.message", "a string")),
    ),
    "proposal": (
        "A proposal for a voter, or for the agent that breaks its tie.",
        (
            _PROPOSAL_ID,
            FrameField("content.proposal", "a string", is_required=True),
            FrameField("content.reasoning", "a string"),
            FrameField("content.deadline", "a number", is_required=True),
        ),
    ),
    "vote": (
        "A vote, for subscribers of the proposal.",
        (_PROPOSAL_ID, FrameField("content.vote", "a string", is_required=True, legal=VOTES)),
    ),
    "decision": (
        "The decision on a proposal, once.",
        (
            _PROPOSAL_ID,
            FrameField("content.result", "a string", is_required=True, legal=frozenset({"approved", "rejected"})),
            FrameField("content.votes", "an object", is_required=True),
            FrameField("content.consensus", "a boolean", is_required=True),
            FrameField("content.missing", "an array of strings"),
            FrameField("content.unanimous", "a boolean"),
        ),
    ),
    "response": (
        "The result of a service, or why there is none.",
        (FrameField("content.result", ""), FrameField("content.error", "an object")),
    ),
    "broadcast": ("A message to all connected agents of the team.", ()),
}
ERRORS: dict[GatewayErrorCode, str] = {
    GatewayErrorCode.CONNECTION_REFUSED: "the hub takes no more connections of this user or agent",
    GatewayErrorCode.CONNECTION_TIMEOUT: "no token came in time",
    GatewayErrorCode.CONNECTION_RESET: "the other end is gone",
    GatewayErrorCode.PROTOCOL_ERROR: "a binary frame, a frame over 1 MiB, another version, or too many errors",
    GatewayErrorCode.RATE_LIMITED: "too many frames or messages; retryAfterMs says how long to wait",
    GatewayErrorCode.INVALID_JSON: "the frame is not one JSON object",
    GatewayErrorCode.MISSING_FIELD: "a required field is missing",
    GatewayErrorCode.INVALID_TYPE: "a field has a value of another kind",
    GatewayErrorCode.UNKNOWN_TYPE: "there is no such type, or this hub does not serve it",
    GatewayErrorCode.INVALID_CONTENT: "a field has a value that is not allowed here",
    GatewayErrorCode.AGENT_NOT_FOUND: "there is no such agent, or it is not open to the sender",
    GatewayErrorCode.AGENT_OFFLINE: "the agent is not connected, and the message does not wait",
    GatewayErrorCode.AGENT_BUSY: "the agent works for another caller, and the message does not wait",
    GatewayErrorCode.AGENT_ERROR: "the agent failed, or did not answer in time",
    GatewayErrorCode.SESSION_NOT_FOUND: "there is no such session",
    GatewayErrorCode.SESSION_EXPIRED: "the session takes no more entries",
    GatewayErrorCode.SESSION_LOCKED: "another writer has the session",
    GatewayErrorCode.SESSION_CORRUPT: "the session cannot be read",
    GatewayErrorCode.AUTH_REQUIRED: "sign in first",
    GatewayErrorCode.AUTH_FAILED: "the token or the signature is not valid",
    GatewayErrorCode.TOKEN_EXPIRED: "the token has expired",
    GatewayErrorCode.PERMISSION_DENIED: "the sender may not do this",
}


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


def _message(type_name: str, fields: Sequence[FrameField], summary: str) -> Json:
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


def _error() -> Json:
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
        "description": "; ".join(f"{int(code)} {code.name}: {text}" for code, text in ERRORS.items()),
    }
