"""The registry of frame types of `a2a-v1`: what each says, its fields, and their values.

The module does no I/O.
"""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

from accounts.authn import SEAT_NAME
from gateway.wire.errors import GatewayErrorCode
from kit.clock import unix_ms

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
    kind: str = "a string"
    legal: Collection[str] | Callable[[Any], bool] | None = None
    is_required: bool = False
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


required = partial(FrameField, is_required=True)


@dataclass(frozen=True, slots=True)
class FrameType:
    """A type of frames. `number`: its label in the registry, never on the wire.

    `taken`: what a client says by it; empty: clients may not send it. `fields`: what is checked of it. `sent`,
    `sent_fields`: the same of the frames that the hub sends. `before_auth`: clients may send it before they are
    signed in.
    """

    name: str
    number: int
    taken: str = ""
    fields: tuple[FrameField, ...] = ()
    sent: str = ""
    sent_fields: tuple[FrameField, ...] = ()
    needs_content: bool = True
    before_auth: bool = False

    # Joined once, because each frame is checked by them: those of a frame with metadata, and those of one without.
    all_fields: tuple[FrameField, ...] = field(init=False)
    plain_fields: tuple[FrameField, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "all_fields", self.fields + ENVELOPE_FIELDS)
        plain = tuple(one for one in self.all_fields if one.keys[0] != "metadata")
        object.__setattr__(self, "plain_fields", plain)


ENVELOPE_FIELDS = (
    FrameField("id", legal=is_id),
    FrameField("agent", legal=is_target),
    FrameField("from", legal=is_id),
    FrameField("sessionId", legal=is_id),
    FrameField("timestamp", "milliseconds, or a time as ISO 8601"),
    FrameField("metadata", "an object"),
    FrameField("metadata.priority", legal=PRIORITIES, illegal=GatewayErrorCode.INVALID_TYPE),
    FrameField("metadata.requiresResponse", "a boolean"),
    FrameField("metadata.threadId"),
    FrameField("metadata.parentId"),
    FrameField("metadata.ttl", "a number", lambda seconds: seconds > 0, illegal=GatewayErrorCode.INVALID_TYPE),
    FrameField("metadata.correlationId", legal=is_id),
)
_CHANNEL = (required("content.channel"), FrameField("content.agents", "an array of strings"))
_PROPOSAL_ID = required("content.proposalId")


def _actions(*names: str) -> FrameField:
    return required("content.action", legal=frozenset(names))


def _is_word(text: str) -> bool:
    return len(text) <= MAX_WORD_CHARS and text.isprintable()


_ALL = (
    FrameType(
        "message",
        0x01,
        "A message to an agent. With `metadata.requiresResponse` it is a turn, and its reply is awaited.",
        (
            required("agent"),
            required("content.role", legal=ROLES),
            required("content.content", "a string or an object", _is_filled),
        ),
        "A message to an agent, or the reply to a message of the client.",
        (required("content.role"), required("content.content", "a string or an object")),
    ),
    FrameType(
        "status",
        0x02,
        "Without content: asks for the statuses of all agents. With `status`: an agent says how it is.",
        (FrameField("content.status", legal=STATUSES), FrameField("content.agent", legal=is_agent_name)),
        "The statuses of agents, or the new status of one.",
        (FrameField("content.agent"), FrameField("content.status", legal=STATUSES)),
        needs_content=False,
    ),
    FrameType(
        "error",
        0x03,
        "An agent could not answer the message that `metadata.correlationId` names. It is never answered.",
        (),
        "A frame was refused, or a message was not answered; its ids are in the metadata.",
        (required("error"), required("content", "an object")),
        needs_content=False,
    ),
    FrameType(
        "event",
        0x04,
        "Something happened; the gateway passes it on to the subscribers of its channel.",
        (required("event", either="content.event"),),
        "Something happened: to a message of the client, or in a channel that it subscribed to.",
        (FrameField("event"), FrameField("content.event")),
    ),
    FrameType(
        "handshake",
        0x10,
        "`advertise`: what the client takes. Again replaces what it said before.",
        (
            _actions("advertise", "acknowledge"),
            FrameField("content.capabilities", "an object"),
            FrameField("content.capabilities.supportedMessageTypes", "an array of strings"),
            FrameField("content.capabilities.supportedAgents", "an array of strings"),
            FrameField("content.capabilities.version"),
        ),
        "Acknowledges the handshake, and names the agents that the client may send to.",
        (
            required("content.action"),
            required("content.clientId"),
            required("content.availableAgents", "an array of strings"),
            required("content.protocolVersion"),
        ),
        before_auth=True,
    ),
    FrameType(
        "discovery",
        0x11,
        "Asks for the agents that the client can find, for one of them, or for services.",
        (_actions("list", "get", "services"), FrameField("content.name", legal=is_target)),
        "The agents or services that were asked for.",
    ),
    FrameType(
        "subscribe",
        0x12,
        "Asks for the frames of a channel, about all agents or those that `agents` names.",
        _CHANNEL,
        "Acknowledges a subscription.",
    ),
    FrameType(
        "unsubscribe",
        0x13,
        "Ends a subscription, wholly or for some agents.",
        _CHANNEL,
        "Acknowledges the end of a subscription.",
    ),
    FrameType("ping", 0x14, "Asks for a `pong`.", needs_content=False, before_auth=True),
    FrameType(
        "pong",
        0x15,
        "Answers a `ping`.",
        (),
        "Answers a `ping`, with what it said of its sender.",
        (FrameField("content.heartbeat", "an object"),),
        needs_content=False,
        before_auth=True,
    ),
    FrameType(
        "workspace",
        0x16,
        "Asks for workspaces of agents.",
        (_actions("list", "get"), FrameField("content.name", legal=is_target)),
        "The workspaces that were asked for.",
    ),
    FrameType(
        "auth", 0x20, "Signs in with a token.", (required("content.token", legal=_is_filled),), before_auth=True
    ),
    FrameType(
        "auth-response",
        0x21,
        sent="Whether the token was taken.",
        sent_fields=(
            required("content.status", legal=frozenset({"authenticated", "rejected"})),
            FrameField("content.agent"),
            FrameField("content.role"),
        ),
    ),
    FrameType(
        "disconnect",
        0x22,
        "Ends the connection; the gateway closes it.",
        (required("content.reason", legal=DISCONNECT_REASONS),),
        "The last frame before the gateway closes the connection.",
        (required("content.reason"), FrameField("content.message")),
        before_auth=True,
    ),
    FrameType(
        "proposal",
        0x30,
        "Puts a proposal to the voters of the team.",
        (
            required("content.proposal", legal=_is_filled),
            FrameField("content.reasoning"),
            FrameField("content.deadline", "a number"),
            FrameField("content.category", legal=_is_word),
        ),
        "A proposal for a voter, or for the agent that breaks its tie.",
        (
            _PROPOSAL_ID,
            required("content.proposal"),
            FrameField("content.reasoning"),
            required("content.deadline", "a number"),
        ),
    ),
    FrameType(
        "decision",
        0x31,
        sent="The decision on a proposal, once.",
        sent_fields=(
            _PROPOSAL_ID,
            required("content.result", legal=frozenset({"approved", "rejected"})),
            required("content.votes", "an object"),
            required("content.consensus", "a boolean"),
            FrameField("content.missing", "an array of strings"),
            FrameField("content.unanimous", "a boolean"),
        ),
    ),
    FrameType(
        "vote",
        0x32,
        "Votes on a proposal. A later vote replaces it as long as the proposal is open.",
        (
            required("content.vote", legal=VOTES),
            FrameField("content.proposalId", legal=is_id),
            FrameField("content.reasoning"),
            FrameField("content.confidence", "a number", lambda share: 0 <= share <= 1),
        ),
        "A vote, for subscribers of the proposal.",
        (_PROPOSAL_ID, required("content.vote", legal=VOTES)),
    ),
    FrameType(
        "request",
        0x33,
        "Calls a service of the gateway.",
        (required("content.service"), FrameField("content.params", "an object")),
    ),
    FrameType(
        "response",
        0x34,
        "Answers a message or a request by its `metadata.correlationId`.",
        (required("content.result", "", either="content.error"),),
        "The result of a service, or why there is none.",
        (FrameField("content.result", ""), FrameField("content.error", "an object")),
    ),
    FrameType(
        "broadcast",
        0x35,
        "Sends a message to all connected agents of the team.",
        (required("content.message", "a string or an object"),),
        "A message to all connected agents of the team.",
    ),
)
FRAME_TYPES = {one.name: one for one in _ALL}
