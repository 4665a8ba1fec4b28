"""The registry of frame types of `a2a-v1`: the fields of each, their values, and the names of channels.

The module does no I/O.
"""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from accounts.authn import SEAT_NAME
from gateway.wire.errors import GatewayErrorCode
from kit.clock import iso, unix_ms

MAX_ID_CHARS = 128
MAX_WORD_CHARS = 32
MAX_NUMBER = 2**53
AGENT_NAME = SEAT_NAME
HANDLE = re.compile(r"@[A-Za-z0-9][A-Za-z0-9_.-]{0,63}/[a-z0-9][a-z0-9-]{0,79}")
ROLES = frozenset({"user", "assistant", "system", "agent"})
STATUSES = frozenset({"online", "offline", "busy", "idle", "error"})
VOTES = frozenset({"approve", "reject", "abstain"})
PRIORITIES = frozenset({"low", "normal", "high", "critical"})
DISCONNECT_REASONS = frozenset({"shutdown", "timeout", "error", "manual"})
STATUS = "agent:status"
GENERAL = "agent:a2a"
MESSAGES = "agent:message"
ACTIVITY = "agent:activity"
PLAIN = frozenset({STATUS, GENERAL, MESSAGES, ACTIVITY})


def is_agent_name(text: str) -> bool:
    """True if it is the name of an agent of a tenant."""
    return AGENT_NAME.fullmatch(text) is not None


def is_target(text: str) -> bool:
    """True if it can name the recipient of a frame: an agent of a tenant, or a handle."""
    return is_agent_name(text) or HANDLE.fullmatch(text) is not None


def is_id(text: str) -> bool:
    """True if a frame may have it as an id."""
    return 1 <= len(text) <= MAX_ID_CHARS and text.isprintable()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MAX_NUMBER


def _is_filled(value: Any) -> bool:
    return not isinstance(value, str) or bool(value.strip())


def read_iso(text: str) -> datetime | None:
    """The moment that a text names in ISO 8601, in UTC where it names no zone; None when it names none."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def read_time_ms(value: Any) -> int | None:
    """The time of a frame in milliseconds: given so, or as ISO 8601; None for another value."""
    if isinstance(value, str):
        moment = read_iso(value)
        return unix_ms(moment) if moment else None
    return int(value) if _is_number(value) else None


def show_time(timestamp_ms: Any) -> str | None:
    """A time in milliseconds as ISO 8601; None for a value that is none, or that no calendar has."""
    try:
        return iso(datetime.fromtimestamp(timestamp_ms / 1000, UTC))
    except (TypeError, OverflowError, OSError, ValueError):
        return None


KINDS: dict[str, Callable[[Any], bool]] = {
    "a string": lambda value: isinstance(value, str),
    "a number": _is_number,
    "a boolean": lambda value: isinstance(value, bool),
    "an object": lambda value: isinstance(value, dict),
    "an array of strings": lambda value: isinstance(value, list) and all(isinstance(one, str) for one in value),
    "a string or an object": lambda value: isinstance(value, str | dict),
    "milliseconds, or a time as ISO 8601": lambda value: read_time_ms(value) is not None,
}


@dataclass(frozen=True, slots=True)
class FrameField:
    """A field of a frame, by its path. `legal`: which values it takes, of those that have its kind.

    `illegal`: the error for the others. `either`: it is required unless this other path is there.
    `keys`: the parts of the path.
    """

    path: str
    kind: str
    is_required: bool = False
    legal: Collection[str] | Callable[[Any], bool] | None = None
    illegal: GatewayErrorCode = GatewayErrorCode.INVALID_CONTENT
    either: str = ""
    keys: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "keys", tuple(self.path.split(".")))

    def takes(self, value: Any) -> bool:
        """True if a value of its kind is one that it takes."""
        if self.legal is None:
            return True
        return self.legal(value) if callable(self.legal) else value in self.legal


@dataclass(frozen=True, slots=True)
class FrameType:
    """A type of frames. `number`: its label in the registry, never on the wire.

    `for_gateway`: clients may send it. `before_auth`: also before they are signed in.
    """

    name: str
    number: int
    fields: tuple[FrameField, ...] = ()
    needs_content: bool = True
    for_gateway: bool = True
    before_auth: bool = False

    # Joined once, because each frame is checked by them: those of a frame with metadata, and those of one without.
    all_fields: tuple[FrameField, ...] = field(init=False)
    plain_fields: tuple[FrameField, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "all_fields", self.fields + ENVELOPE_FIELDS)
        plain = tuple(one for one in self.all_fields if one.keys[0] != "metadata")
        object.__setattr__(self, "plain_fields", plain)


ENVELOPE_FIELDS = (
    FrameField("id", "a string", legal=is_id),
    FrameField("agent", "a string", legal=is_target),
    FrameField("from", "a string", legal=is_id),
    FrameField("sessionId", "a string", legal=is_id),
    FrameField("timestamp", "milliseconds, or a time as ISO 8601"),
    FrameField("metadata", "an object"),
    FrameField("metadata.priority", "a string", legal=PRIORITIES, illegal=GatewayErrorCode.INVALID_TYPE),
    FrameField("metadata.requiresResponse", "a boolean"),
    FrameField("metadata.threadId", "a string"),
    FrameField("metadata.parentId", "a string"),
    FrameField(
        "metadata.ttl", "a number", legal=lambda seconds: seconds > 0, illegal=GatewayErrorCode.INVALID_TYPE
    ),
    FrameField("metadata.correlationId", "a string", legal=is_id),
)
_CHANNEL = (
    FrameField("content.channel", "a string", is_required=True),
    FrameField("content.agents", "an array of strings"),
)


def _actions(*names: str) -> FrameField:
    return FrameField("content.action", "a string", is_required=True, legal=frozenset(names))


_ALL = (
    FrameType(
        "message",
        0x01,
        (
            FrameField("agent", "a string", is_required=True),
            FrameField("content.role", "a string", is_required=True, legal=ROLES),
            FrameField("content.content", "a string or an object", is_required=True, legal=_is_filled),
        ),
    ),
    FrameType(
        "status",
        0x02,
        (
            FrameField("content.status", "a string", legal=STATUSES),
            FrameField("content.agent", "a string", legal=is_agent_name),
        ),
        needs_content=False,
    ),
    FrameType("error", 0x03, needs_content=False),
    FrameType("event", 0x04, (FrameField("event", "a string", is_required=True, either="content.event"),)),
    FrameType(
        "handshake",
        0x10,
        (
            _actions("advertise", "acknowledge"),
            FrameField("content.capabilities", "an object"),
            FrameField("content.capabilities.supportedMessageTypes", "an array of strings"),
            FrameField("content.capabilities.supportedAgents", "an array of strings"),
            FrameField("content.capabilities.version", "a string"),
        ),
        before_auth=True,
    ),
    FrameType(
        "discovery",
        0x11,
        (_actions("list", "get", "services"), FrameField("content.name", "a string", legal=is_target)),
    ),
    FrameType("subscribe", 0x12, _CHANNEL),
    FrameType("unsubscribe", 0x13, _CHANNEL),
    FrameType("ping", 0x14, needs_content=False, before_auth=True),
    FrameType("pong", 0x15, needs_content=False, before_auth=True),
    FrameType(
        "workspace", 0x16, (_actions("list", "get"), FrameField("content.name", "a string", legal=is_target))
    ),
    FrameType(
        "auth",
        0x20,
        (FrameField("content.token", "a string", is_required=True, legal=_is_filled),),
        before_auth=True,
    ),
    FrameType("auth-response", 0x21, for_gateway=False),
    FrameType(
        "disconnect",
        0x22,
        (FrameField("content.reason", "a string", is_required=True, legal=DISCONNECT_REASONS),),
        before_auth=True,
    ),
    FrameType(
        "proposal",
        0x30,
        (
            FrameField("content.proposal", "a string", is_required=True, legal=_is_filled),
            FrameField("content.reasoning", "a string"),
            FrameField("content.deadline", "a number"),
            FrameField(
                "content.category",
                "a string",
                legal=lambda word: len(word) <= MAX_WORD_CHARS and word.isprintable(),
            ),
        ),
    ),
    FrameType("decision", 0x31, for_gateway=False),
    FrameType(
        "vote",
        0x32,
        (
            FrameField("content.vote", "a string", is_required=True, legal=VOTES),
            FrameField("content.proposalId", "a string", legal=is_id),
            FrameField("content.reasoning", "a string"),
            FrameField("content.confidence", "a number", legal=lambda share: 0 <= share <= 1),
        ),
    ),
    FrameType(
        "request",
        0x33,
        (FrameField("content.service", "a string", is_required=True), FrameField("content.params", "an object")),
    ),
    FrameType(
        "response",
        0x34,
        (FrameField("content.result", "", is_required=True, either="content.error"),),
    ),
    FrameType("broadcast", 0x35, (FrameField("content.message", "a string or an object", is_required=True),)),
)
FRAME_TYPES = {one.name: one for one in _ALL}


def inbox_channel(agent: str) -> str:
    """The channel of what one agent is sent."""
    return f"agent:{agent}:inbox"


def find_inbox_agent(channel: str) -> str:
    """The agent whose inbox a channel is; empty for other channels."""
    start, _, rest = channel.partition(":")
    name, _, end = rest.partition(":")
    return name if (start, end) == ("agent", "inbox") and AGENT_NAME.fullmatch(name) else ""


def proposal_channel(proposal_id: str) -> str:
    """The channel of the votes and the decision on a proposal."""
    return f"triad:{proposal_id}"


def find_proposal_id(channel: str) -> str:
    """The proposal whose channel it is; empty for other channels."""
    start, _, proposal_id = channel.partition(":")
    return proposal_id if start == "triad" and is_id(proposal_id) else ""


def is_channel(name: str) -> bool:
    """True if clients may name the channel."""
    return name in PLAIN or bool(find_inbox_agent(name)) or bool(find_proposal_id(name))
