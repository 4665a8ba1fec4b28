"""The frames of `/channel`, one JSON text message each (docs/reference/frames.md).

Unknown fields are ignored: clients are newer and older than the hub.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from agents.links.channel import request_frames
from agents.links.channel.frame import Frame, Id, Name
from agents.links.channel.task_frames import TaskArtifact, TaskStatus, read_artifact, read_status
from agents.pieces import Part
from kit import strict_json
from kit.iso import iso
from kit.strict_json import BadShape, NotJson


class Register(Frame, frozen=True, tag="register"):
    """The first frame. `session_id`: the session to come back to; `token`: fallback for the header.

    `features`: what the agent takes beyond the first frames; names the hub does not know are ignored.
    """

    host: Name | None = None
    cwd: Name | None = None
    os_user: Name | None = None
    pid: Annotated[int, Meta(ge=0, le=2**53)] | None = None
    channel_version: Name | None = None
    session_id: Name | None = None
    routing_name: Name | None = None
    delete_on_disconnect: bool = False
    token: Name | None = None
    features: Annotated[list[Name], Meta(max_length=100)] | None = None


class Pong(Frame, frozen=True, tag="pong"):
    """Answer to a ping."""

    ts: Any = None


class ChatEvent(Frame, frozen=True, tag="chat_event"):
    """`event_type` reply, reply_chunk, task_status or task_artifact, with the payload of that name.

    Other types are accepted.
    """

    event_type: Name
    payload: msgspec.Raw
    ts: Any = None


class TailEvent(Frame, frozen=True, tag="tail_event"):
    """What the agent's program reports of itself. `Stop` ends its turn."""

    event_type: Name
    payload: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"null"))
    ts: Any = None


class Reply(Struct, frozen=True, rename="camel"):
    """Payload of a whole reply. `direct`: no more than an answer, for callers who take one without a task."""

    chat_id: Id
    text: str
    direct: bool = False


class ReplyChunk(Struct, frozen=True, rename="camel"):
    """Payload of a piece of a reply; the last one is `done`."""

    chat_id: Id
    text: str
    done: bool = False


class Welcome(Frame, frozen=True, tag="welcome"):
    """The connection is registered. `features`: what this hub takes beyond the first frames."""

    session_id: str
    routing_name: str
    channel_token_name: str
    features: list[str] = msgspec.field(default_factory=list)


class Ping(Frame, frozen=True, tag="ping"):
    """Every 25 s; any frame back shows life."""

    ts: str


class Prompt(Frame, frozen=True, omit_defaults=True, tag="prompt"):
    """A question to answer under its chat id. `text` holds all of it that is text.

    `task_id`, `context_id`: of the A2A task; what answers a request for input is another prompt with the same.
    `message_id`: the A2A caller's own id of the message, which may come again. `parts`: the whole message, when it
    holds more than text. `traceparent`: W3C Trace Context.
    """

    chat_id: str
    text: str
    asker_user: str
    task_id: str = ""
    context_id: str = ""
    parts: list[Part] = msgspec.field(default_factory=list)
    traceparent: str = ""
    message_id: str = ""


class Cancel(Frame, frozen=True, tag="cancel"):
    """Nobody wants the answer to that prompt any more. Only for an agent with the feature `cancel`."""

    chat_id: str


class Bye(Frame, frozen=True, tag="bye"):
    """The hub is about to close; `retry` says whether to come back."""

    reason: str
    retry: bool


class Error(Frame, frozen=True, tag="error"):
    """auth_failed and token_revoked end the connection; every other code leaves it open."""

    code: str
    message: str


FROM_AGENT: dict[str, type[Frame]] = {
    "register": Register,
    "pong": Pong,
    "chat_event": ChatEvent,
    "tail_event": TailEvent,
    **{str(frame.__struct_config__.tag): frame for frame in request_frames.FROM_AGENT},
}
TO_AGENT: tuple[type[Frame], ...] = (Welcome, Ping, Prompt, Cancel, *request_frames.TO_AGENT, Bye, Error)


class BadFrame(Exception):
    """A message that is no frame; `error` is what to tell the agent, the connection stays."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code)
        self.error = Error(code=code, message=message)


MAX_LEVELS = strict_json.MAX_DEPTH + 1  # those of a payload, and the frame around it


class _Head(Struct, frozen=True):
    type: Name


_head = msgspec.json.Decoder(_Head).decode
_decoders = {name: msgspec.json.Decoder(frame).decode for name, frame in FROM_AGENT.items()}
Saying = Reply | ReplyChunk | TaskStatus | TaskArtifact
_sayings: dict[str, Callable[[msgspec.Raw], Saying]] = {
    "reply": msgspec.json.Decoder(Reply).decode,
    "reply_chunk": msgspec.json.Decoder(ReplyChunk).decode,
    "task_status": read_status,
    "task_artifact": read_artifact,
}
encode = msgspec.json.Encoder().encode


def decode(text: str) -> Frame:
    """One message as a frame.

    Raises:
        BadFrame: not JSON that a sound program sends, no `type`, an unknown type, or fields of the wrong shape.
    """
    try:
        strict_json.parse(text, max_depth=MAX_LEVELS, max_brackets=None)
    except BadShape as bad:
        raise BadFrame("bad_frame", str(bad)) from None
    except NotJson:
        raise BadFrame("bad_frame", "not one JSON object") from None
    try:
        name = _head(text).type
        if name not in _decoders:
            raise BadFrame("unknown_type", f"this hub has no frame {name[:60]!r}")
        return _decoders[name](text)
    except msgspec.ValidationError as wrong:
        raise BadFrame("bad_frame", str(wrong)[:300]) from None
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise BadFrame("bad_frame", "not one JSON object") from None


def saying_of(event: ChatEvent) -> Saying | None:
    """The piece or the end of a reply in a chat event, None when it is of another type.

    Raises:
        BadFrame: the payload is not of that type's shape.
    """
    read = _sayings.get(event.event_type)
    if read is None:
        return None
    try:
        return read(event.payload)
    except (msgspec.DecodeError, RecursionError, ValueError) as wrong:
        raise BadFrame("bad_frame", f"payload: {wrong}"[:300]) from None


def now() -> str:
    """The time of a frame: ISO 8601, UTC."""
    return iso(datetime.now(UTC))
