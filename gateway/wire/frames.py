"""The frames of `a2a-v1`: reads and checks those of clients, and makes those that the gateway sends.

A frame is checked in the order of the protocol, and its first flaw answers: size, JSON, object, rate, type,
whether its sender is signed in, content, required fields, types of fields, their values.
"""

import hmac
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import rfc8785
from msgspec import Struct
from msgspec.structs import replace

from agents.transcript.pieces import size_of
from gateway.wire.errors import FrameRefused, GatewayErrorCode, bad_content, bad_type, missing
from gateway.wire.frame_types import FRAME_TYPES, KINDS, FrameField, FrameType, is_id, read_time_ms
from kit import strict_json
from kit.clock import iso
from kit.ids import unguessable
from kit.strict_json import BadShape, ForbiddenText, NotJson

Json = dict[str, Any]

VERSION = "1.0.0"  # of the protocol
MAX_FRAME_BYTES = 1_048_576
ENVELOPE_KEYS = frozenset({"type", "content", "id", "agent", "from", "sessionId", "timestamp", "metadata"})
TOO_LARGE = 1009
LONGEST_TTL_S = 30 * 24 * 3600.0  # a longer `ttl` of a message is cut to this
_MISSING = object()
GATEWAY = "gateway"


class Envelope(Struct, frozen=True, kw_only=True):
    """A checked frame. Empty text: the frame has none.

    `timestamp_ms`: None without one. `extra`: the keys that the protocol does not name, passed on as they are.
    `frame`: the whole frame as it was sent.
    """

    type: str
    content: Json
    metadata: Json
    id: str = ""
    agent: str = ""
    sender: str = ""
    session_id: str = ""
    timestamp_ms: int | None = None
    extra: Json
    frame: Json = {}

    @property
    def correlation_id(self) -> str:
        """The id that ties it to another frame: also at the top level, where the prototype has it."""
        found = (
            self.metadata.get("correlationId") or self.extra.get("correlationId") or self.extra.get("inReplyTo")
        )
        return found if isinstance(found, str) and is_id(found) else ""

    @property
    def wants_response(self) -> bool:
        """True if its sender waits for a reply."""
        return self.type == "request" or self.metadata.get("requiresResponse") is True

    @property
    def said(self) -> str | Json:
        """The words of a message; of another frame all of its content."""
        content: str | Json = self.content["content"] if self.type == "message" else self.content
        return content


def read_object(text: str) -> Json:
    """A message of a client as an object.

    Raises:
        FrameRefused: 1004 when it is too large, 2001, 2003, 2005.
    """
    if size_of(text) > MAX_FRAME_BYTES:
        wide = f"a frame holds at most {MAX_FRAME_BYTES} bytes"
        raise FrameRefused(GatewayErrorCode.PROTOCOL_ERROR, wide, close_code=TOO_LARGE)
    try:
        value = strict_json.read(text, max_brackets=None)
    except (NotJson, BadShape) as bad:
        raise FrameRefused(GatewayErrorCode.INVALID_JSON, str(bad)) from None
    except ForbiddenText as forbidden:
        raise bad_content(str(forbidden), field="$") from None
    if not isinstance(value, dict):
        raise bad_type("a frame is an object", field="$")
    return value


def read_type(frame: Json) -> FrameType:
    """The type of a frame.

    Raises:
        FrameRefused: 2002, 2003, 2004.
    """
    name = frame.get("type", "")
    if not isinstance(name, str):
        raise bad_type("type: want a string", field="type")
    if not name:
        raise missing("type is missing", field="type")
    if name not in FRAME_TYPES:
        raise FrameRefused(GatewayErrorCode.UNKNOWN_TYPE, f"there is no frame of type {name[:60]!r}", field="type")
    return FRAME_TYPES[name]


def check_frame(frame: Json, type_: FrameType) -> Envelope:
    """The envelope of a frame whose type is known.

    Raises:
        FrameRefused: 2002, 2003, 2005.
    """
    if "content" not in frame and type_.needs_content:
        raise missing("content is missing", field="content")
    if not isinstance(frame.get("content", {}), dict):
        raise bad_type("content: want an object", field="content")
    fields = type_.all_fields if "metadata" in frame else type_.plain_fields
    found = [(field, _find(frame, field.keys)) for field in fields]
    for field, value in found:
        if value is not _MISSING or not field.is_required:
            continue
        if not field.either or _find(frame, field.either.split(".")) is _MISSING:
            raise missing(f"{field.path} is missing", field=field.path)
    present = [one for one in found if one[1] is not _MISSING]
    for field, value in present:
        if field.kind and not KINDS[field.kind](value):
            raise bad_type(f"{field.path}: want {field.kind}", field=field.path)
    for field, value in present:
        if not field.takes(value):
            raise FrameRefused(field.illegal, f"{field.path}: {_wanted(field)}", field=field.path)
    return Envelope(
        type=type_.name,
        content=frame.get("content", {}),
        metadata=frame.get("metadata", {}),
        id=frame.get("id", ""),
        agent=frame.get("agent", ""),
        sender=frame.get("from", ""),
        session_id=frame.get("sessionId", ""),
        timestamp_ms=read_time_ms(frame.get("timestamp")),
        extra={key: value for key, value in frame.items() if key not in ENVELOPE_KEYS},
        frame=frame,
    )


def name_frame(refused: FrameRefused, frame: Json) -> FrameRefused:
    """Note in a refusal which frame it is about, as far as its ids can be read."""
    metadata = frame.get("metadata")
    found = metadata.get("correlationId") if isinstance(metadata, dict) else None
    found = found or frame.get("correlationId")
    refused.correlation_id = found if isinstance(found, str) and is_id(found) else ""
    type_name = frame.get("type")
    refused.frame_type = type_name if isinstance(type_name, str) and type_name in FRAME_TYPES else ""
    refused.frame_id = frame["id"] if isinstance(frame.get("id"), str) and is_id(frame["id"]) else ""
    return refused


def read_text(given: Mapping[str, Any], field: str, *, is_required: bool = False) -> str:
    """A text of a message of another protocol; empty if it is absent.

    Raises:
        FrameRefused: 2002, 2003.
    """
    value = given.get(field)
    if value is not None and not isinstance(value, str):
        raise bad_type(f"{field}: want a string", field=field)
    if is_required and not value:
        raise missing(f"{field} is missing", field=field)
    return value or ""


def kept_in(metadata: Json, key: str) -> Json:
    """The members that a frame keeps of a message of another protocol; a client may have sent another value under
    that key.
    """
    kept = metadata.get(key)
    return kept if isinstance(kept, dict) else {}


def _find(frame: Json, keys: Sequence[str]) -> Any:
    value: Any = frame
    for key in keys:
        value = value.get(key, _MISSING) if isinstance(value, dict) else _MISSING
    return value


def _wanted(field: FrameField) -> str:
    if isinstance(field.legal, frozenset):
        return f"want one of {', '.join(sorted(field.legal))}"
    return "this value is not allowed"


def encode(frame: Json) -> bytes:
    """Encode a frame as JSON."""
    return msgspec.json.encode(frame)


def now_ms() -> int:
    """The time as the protocol writes it: Unix milliseconds."""
    return time.time_ns() // 1_000_000


def show_time(timestamp_ms: Any) -> str | None:
    """A time in milliseconds as ISO 8601; None for a value that is none, or that no calendar has."""
    try:
        return iso(datetime.fromtimestamp(timestamp_ms / 1000, UTC))
    except (TypeError, OverflowError, OSError, ValueError):
        return None


def new_id() -> str:
    """An id for a frame that came without one."""
    return unguessable("msg-")


def stamp(envelope: Envelope) -> Envelope:
    """The envelope with an id and a time, where its sender gave none."""
    if envelope.id and envelope.timestamp_ms is not None:
        return envelope
    stamped_ms = now_ms() if envelope.timestamp_ms is None else envelope.timestamp_ms
    return replace(envelope, id=envelope.id or new_id(), timestamp_ms=stamped_ms)


def make_frame(type_name: str, content: Json, metadata: Json | None = None, **fields: Any) -> Json:
    """A frame of the gateway itself, with its time."""
    frame = {"type": type_name, "from": GATEWAY, "timestamp": now_ms(), **fields, "content": content}
    return {**frame, "metadata": metadata} if metadata else frame


def answer_frame(envelope: Envelope, type_name: str, content: Json) -> Json:
    """A frame that answers another, with the ids of that one."""
    return make_frame(type_name, content, _about(envelope.correlation_id, envelope.id))


def event_frame(event: str, content: Json, metadata: Json | None = None, **fields: Any) -> Json:
    """An event; its name stands beside `content` and in it, as both registries have it."""
    return make_frame("event", {"event": event, **content}, metadata, event=event, **fields)


def describe_error(refused: FrameRefused) -> Json:
    """An error as the content of a frame shows it."""
    shown: Json = {"error": refused.code.name, "code": int(refused.code), "message": str(refused)}
    more = {"reason": refused.reason, "field": refused.field, "retryAfterMs": refused.retry_after_ms}
    return shown | {key: value for key, value in more.items() if value}


def error_frame(refused: FrameRefused) -> Json:
    """An error; its name stands beside `content` and in it, as both registries have it."""
    metadata = _about(refused.correlation_id, refused.frame_id)
    return make_frame("error", describe_error(refused), metadata, error=refused.code.name)


def acknowledge_frame(client_id: str, agents: Sequence[str]) -> Json:
    """The answer to an advertised handshake."""
    content = {
        "action": "acknowledge",
        "clientId": client_id,
        "availableAgents": list(agents),
        "protocolVersion": VERSION,
    }
    return make_frame("handshake", content)


def pong_frame(ping: Json, correlation_id: str) -> Json:
    """The answer to a ping, with what the ping says of its sender."""
    received_at = now_ms()
    content: Json = {}
    if "heartbeat" in ping:
        content["heartbeat"] = {"received": received_at, "agentHeartbeat": ping["heartbeat"]}
    return make_frame("pong", content, {"correlationId": correlation_id} if correlation_id else None)


def disconnect_frame(reason: str, message: str = "", *, code: str = "") -> Json:
    """The last frame before the gateway closes. `code`: for programs, where `reason` does not say enough."""
    more = {"message": message, "code": code}
    return make_frame("disconnect", {"reason": reason} | {key: value for key, value in more.items() if value})


def auth_frame(status: str, **more: Any) -> Json:
    """The answer to `auth`: `authenticated` or `rejected`."""
    return make_frame("auth-response", {"status": status, **more})


def _about(correlation_id: str, parent_id: str) -> Json:
    about = {"correlationId": correlation_id, "parentId": parent_id}
    return {key: value for key, value in about.items() if value}


ALG = "HMAC-SHA256"  # of signatures


def is_signed(frame: Json, keys: Mapping[str, bytes]) -> bool:
    """True if one of these keys made the signature of a frame."""
    signature = frame.get("metadata", {}).get("signature")
    if not isinstance(signature, dict) or signature.get("alg") != ALG:
        return False
    key_id, value = signature.get("keyId"), signature.get("value")
    if not isinstance(key_id, str) or not isinstance(value, str) or key_id not in keys:
        return False
    try:
        expected = make_signature(frame, keys[key_id])
    except rfc8785.CanonicalizationError:  # numbers that not every program reads alike
        return False
    return hmac.compare_digest(expected.encode(), value.encode("utf-8", "surrogatepass"))


def make_signature(frame: Json, key: bytes) -> str:
    """The value of a frame's signature, in hex.

    Raises:
        rfc8785.CanonicalizationError: it has no canonical form.
    """
    return hmac.digest(key, canonicalize(frame), "sha256").hex()


def canonicalize(frame: Json) -> bytes:
    """A frame without its signature as RFC 8785 has it: sorted keys, no spaces, numbers as in JavaScript."""
    metadata = frame.get("metadata")
    if isinstance(metadata, dict) and "signature" in metadata:
        frame = frame | {"metadata": {key: value for key, value in metadata.items() if key != "signature"}}
    return rfc8785.dumps(frame)
