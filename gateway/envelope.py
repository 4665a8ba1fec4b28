"""The frames of `a2a-v1`: the registry of types, the fields of each, and the check of one frame. No I/O.

A frame is checked in the order of the protocol, and its first flaw answers: size, JSON, object, rate, type,
whether its sender is signed in, content, required fields, types of fields, their values.
"""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from agents.links.channel.protocol import size_of
from gateway.errors import ErrorCode, FrameRefused
from kit import strict_json
from kit.strict_json import BadShape, ForbiddenText, NotJson

Json = dict[str, Any]

MAX_FRAME_BYTES = 1_048_576
MAX_ID_CHARS = 128
MAX_NUMBER = 2**53
AGENT_NAME = re.compile(r"[a-z][a-z0-9-]{0,63}")
HANDLE = re.compile(r"@[A-Za-z0-9][A-Za-z0-9_.-]{0,63}/[a-z0-9][a-z0-9-]{0,79}")
ROLES = frozenset({"user", "assistant", "system", "agent"})
STATUSES = frozenset({"online", "offline", "busy", "idle", "error"})
VOTES = frozenset({"approve", "reject", "abstain"})
PRIORITIES = frozenset({"low", "normal", "high", "critical"})
DISCONNECT_REASONS = frozenset({"shutdown", "timeout", "error", "manual"})
ENVELOPE_KEYS = frozenset({"type", "content", "id", "agent", "from", "sessionId", "timestamp", "metadata"})
TOO_LARGE = 1009


class Envelope(Struct, frozen=True, kw_only=True):
    """A checked frame. Empty text: the frame has none.

    `timestamp_ms`: None without one. `extra`: the keys that the protocol does not name, passed on as they are.
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

    @property
    def correlation_id(self) -> str:
        """What ties it to another frame: also at the top level, where the prototype has it."""
        found = (
            self.metadata.get("correlationId") or self.extra.get("correlationId") or self.extra.get("inReplyTo")
        )
        return found if isinstance(found, str) and _is_id(found) else ""

    @property
    def wants_response(self) -> bool:
        """Whether its sender waits for a reply."""
        return self.metadata.get("requiresResponse") is True


def is_agent_name(text: str) -> bool:
    """Whether it is the name of an agent of a tenant."""
    return AGENT_NAME.fullmatch(text) is not None


def _is_target(text: str) -> bool:
    return is_agent_name(text) or HANDLE.fullmatch(text) is not None


def _is_id(text: str) -> bool:
    return 1 <= len(text) <= MAX_ID_CHARS and text.isprintable()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MAX_NUMBER


def _is_time(value: Any) -> bool:
    return _is_number(value) or (isinstance(value, str) and _read_iso(value) is not None)


def _is_filled(value: Any) -> bool:
    return not isinstance(value, str) or bool(value.strip())


def _is_past_zero(value: Any) -> bool:
    return bool(value > 0)


KINDS: dict[str, Callable[[Any], bool]] = {
    "a string": lambda value: isinstance(value, str),
    "a number": _is_number,
    "a boolean": lambda value: isinstance(value, bool),
    "an object": lambda value: isinstance(value, dict),
    "an array of strings": lambda value: isinstance(value, list) and all(isinstance(one, str) for one in value),
    "a string or an object": lambda value: isinstance(value, str | dict),
    "milliseconds, or a time as ISO 8601": _is_time,
}


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a frame, by its path. `legal`: which values it takes, of those that have its kind.

    `illegal`: the error for the others. `either`: it is required unless this other path is there.
    """

    path: str
    kind: str
    is_required: bool = False
    legal: Collection[str] | Callable[[Any], bool] | None = None
    illegal: ErrorCode = ErrorCode.INVALID_CONTENT
    either: str = ""

    def takes(self, value: Any) -> bool:
        """Whether a value of its kind is one that it takes."""
        if self.legal is None:
            return True
        return self.legal(value) if callable(self.legal) else value in self.legal


@dataclass(frozen=True, slots=True)
class FrameType:
    """A type of frames. `number`: its label in the registry, never on the wire.

    `for_gateway`: clients may send it. `before_auth`: also before they are signed in. `is_built`: this hub serves
    it.
    """

    name: str
    number: int
    fields: tuple[Field, ...] = ()
    needs_content: bool = True
    for_gateway: bool = True
    before_auth: bool = False
    is_built: bool = False


_ENVELOPE = (
    Field("id", "a string", legal=_is_id),
    Field("agent", "a string", legal=_is_target),
    Field("from", "a string", legal=_is_id),
    Field("sessionId", "a string", legal=_is_id),
    Field("timestamp", "milliseconds, or a time as ISO 8601"),
    Field("metadata", "an object"),
    Field("metadata.priority", "a string", legal=PRIORITIES, illegal=ErrorCode.INVALID_TYPE),
    Field("metadata.requiresResponse", "a boolean"),
    Field("metadata.threadId", "a string"),
    Field("metadata.parentId", "a string"),
    Field("metadata.ttl", "a number", legal=_is_past_zero, illegal=ErrorCode.INVALID_TYPE),
    Field("metadata.correlationId", "a string", legal=_is_id),
)
_CHANNEL = (
    Field("content.channel", "a string", is_required=True),
    Field("content.agents", "an array of strings"),
)


def _actions(*names: str) -> Field:
    return Field("content.action", "a string", is_required=True, legal=frozenset(names))


_ALL = (
    FrameType(
        "message",
        0x01,
        (
            Field("agent", "a string", is_required=True),
            Field("content.role", "a string", is_required=True, legal=ROLES),
            Field("content.content", "a string or an object", is_required=True, legal=_is_filled),
        ),
        is_built=True,
    ),
    FrameType(
        "status",
        0x02,
        (
            Field("content.status", "a string", legal=STATUSES),
            Field("content.agent", "a string", legal=is_agent_name),
        ),
        needs_content=False,
        is_built=True,
    ),
    FrameType("error", 0x03, needs_content=False, is_built=True),
    FrameType("event", 0x04, (Field("event", "a string", is_required=True, either="content.event"),)),
    FrameType(
        "handshake",
        0x10,
        (
            _actions("advertise", "acknowledge"),
            Field("content.capabilities", "an object"),
            Field("content.capabilities.supportedMessageTypes", "an array of strings"),
            Field("content.capabilities.supportedAgents", "an array of strings"),
            Field("content.capabilities.version", "a string"),
        ),
        before_auth=True,
        is_built=True,
    ),
    FrameType(
        "discovery",
        0x11,
        (_actions("list", "get", "services"), Field("content.name", "a string", legal=_is_target)),
        is_built=True,
    ),
    FrameType("subscribe", 0x12, _CHANNEL),
    FrameType("unsubscribe", 0x13, _CHANNEL),
    FrameType("ping", 0x14, needs_content=False, before_auth=True, is_built=True),
    FrameType("pong", 0x15, needs_content=False, before_auth=True, is_built=True),
    FrameType("workspace", 0x16, (_actions("list", "get"),)),
    FrameType(
        "auth",
        0x20,
        (Field("content.token", "a string", is_required=True, legal=_is_filled),),
        before_auth=True,
        is_built=True,
    ),
    FrameType("auth-response", 0x21, for_gateway=False, is_built=True),
    FrameType(
        "disconnect",
        0x22,
        (Field("content.reason", "a string", is_required=True, legal=DISCONNECT_REASONS),),
        before_auth=True,
        is_built=True,
    ),
    FrameType(
        "proposal",
        0x30,
        (
            Field("content.proposal", "a string", is_required=True, legal=_is_filled),
            Field("content.reasoning", "a string"),
            Field("content.deadline", "a number"),
        ),
    ),
    FrameType("decision", 0x31, for_gateway=False),
    FrameType(
        "vote",
        0x32,
        (
            Field("content.vote", "a string", is_required=True, legal=VOTES),
            Field("content.proposalId", "a string"),
            Field("content.confidence", "a number"),
        ),
    ),
    FrameType(
        "request",
        0x33,
        (Field("content.service", "a string", is_required=True), Field("content.params", "an object")),
    ),
    FrameType(
        "response",
        0x34,
        (Field("content.result", "", is_required=True, either="content.error"),),
        is_built=True,
    ),
    FrameType("broadcast", 0x35, (Field("content.message", "a string or an object", is_required=True),)),
)
FRAME_TYPES = {one.name: one for one in _ALL}
_MISSING = object()


def read_object(text: str) -> Json:
    """A message of a client as an object.

    Raises:
        FrameRefused: 1004 when it is too large, 2001, 2003, 2005.
    """
    if size_of(text) > MAX_FRAME_BYTES:
        wide = f"a frame holds at most {MAX_FRAME_BYTES} bytes"
        raise FrameRefused(ErrorCode.PROTOCOL_ERROR, wide, close_code=TOO_LARGE)
    try:
        value = strict_json.parse(text, max_brackets=None)
        strict_json.check_strings(text, value)
    except (NotJson, BadShape) as bad:
        raise FrameRefused(ErrorCode.INVALID_JSON, str(bad)) from None
    except ForbiddenText as forbidden:
        raise FrameRefused(ErrorCode.INVALID_CONTENT, str(forbidden), field="$") from None
    if not isinstance(value, dict):
        raise FrameRefused(ErrorCode.INVALID_TYPE, "a frame is an object", field="$")
    return value


def read_type(frame: Json) -> FrameType:
    """The type of a frame.

    Raises:
        FrameRefused: 2002, 2003, 2004.
    """
    name = frame.get("type", "")
    if not isinstance(name, str):
        raise FrameRefused(ErrorCode.INVALID_TYPE, "type: want a string", field="type")
    if not name:
        raise FrameRefused(ErrorCode.MISSING_FIELD, "type is missing", field="type")
    if name not in FRAME_TYPES:
        raise FrameRefused(ErrorCode.UNKNOWN_TYPE, f"there is no frame of type {name[:60]!r}", field="type")
    return FRAME_TYPES[name]


def check_frame(frame: Json, type_: FrameType) -> Envelope:
    """The envelope of a frame whose type is known.

    Raises:
        FrameRefused: 2002, 2003, 2005.
    """
    if "content" not in frame and type_.needs_content:
        raise FrameRefused(ErrorCode.MISSING_FIELD, "content is missing", field="content")
    if not isinstance(frame.get("content", {}), dict):
        raise FrameRefused(ErrorCode.INVALID_TYPE, "content: want an object", field="content")
    fields = (*type_.fields, *_ENVELOPE)
    for field in fields:
        if field.is_required and _find(frame, field.path) is _MISSING and not _has_other(frame, field):
            raise FrameRefused(ErrorCode.MISSING_FIELD, f"{field.path} is missing", field=field.path)
    present = [(field, value) for field in fields if (value := _find(frame, field.path)) is not _MISSING]
    for field, value in present:
        if field.kind and not KINDS[field.kind](value):
            raise FrameRefused(ErrorCode.INVALID_TYPE, f"{field.path}: want {field.kind}", field=field.path)
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
        timestamp_ms=_in_ms(frame.get("timestamp")),
        extra={key: value for key, value in frame.items() if key not in ENVELOPE_KEYS},
    )


def name_frame(refused: FrameRefused, frame: Json) -> FrameRefused:
    """Note in a refusal which frame it is about, as far as its ids can be read."""
    metadata = frame.get("metadata")
    found = metadata.get("correlationId") if isinstance(metadata, dict) else None
    found = found or frame.get("correlationId")
    refused.correlation_id = found if isinstance(found, str) and _is_id(found) else ""
    refused.frame_id = frame["id"] if isinstance(frame.get("id"), str) and _is_id(frame["id"]) else ""
    return refused


def _find(frame: Json, path: str) -> Any:
    value: Any = frame
    for key in path.split("."):
        if not isinstance(value, dict) or key not in value:
            return _MISSING
        value = value[key]
    return value


def _has_other(frame: Json, field: Field) -> bool:
    return bool(field.either) and _find(frame, field.either) is not _MISSING


def _wanted(field: Field) -> str:
    if isinstance(field.legal, frozenset):
        return f"want one of {', '.join(sorted(field.legal))}"
    return "this value is not allowed"


def _in_ms(value: Any) -> int | None:
    if value is None:
        return None
    moment = _read_iso(value) if isinstance(value, str) else None
    return int(moment.timestamp() * 1000) if moment else int(value)


def _read_iso(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
