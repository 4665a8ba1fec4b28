"""The hub's JSON frames: text in, frozen values out, and back. The module does no I/O.

The frames are those of the `/channel` wire. Frames this client has no use for decode to None.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from clawbridge.connect.reply_parts import (
    Artifact,
    Decision,
    ProgramPermissionRequest,
    ReplyEnd,
    Status,
    Usage,
    text_of,
)

MAX_SHOWN_CHARS = 500
FEATURES = ["cancel"]
NOT_DECIDED = "the request was not decided in time"


class UnreadableFrame(ValueError):
    """A frame is not JSON, or lacks a field it needs."""


@dataclass(frozen=True, kw_only=True)
class AgentHost:
    """The machine and process of the agent, as the hub shows them to the owner."""

    host: str
    cwd: str
    os_user: str | None
    pid: int


@dataclass(frozen=True, kw_only=True)
class Welcome:
    """The hub accepted the agent; `session_id` brings it back to the same session later.

    `routing_name` is without the @ it has on the wire. `features`: what the hub takes besides text.
    """

    session_id: str
    routing_name: str
    features: frozenset[str] = frozenset()

    @property
    def takes_more_than_text(self) -> bool:
        """True if notes, artifacts and ends of other kinds can be sent as such."""
        return {"task_status", "task_artifact"} <= self.features


@dataclass(frozen=True)
class PingFrame:
    """The hub asks whether the agent lives; `ts` goes back as it came."""

    ts: object


@dataclass(frozen=True, kw_only=True)
class Question:
    """Something an agent is asked; `asker` is the login of who asks, where the hub tells.

    `task_id`, `context_id`: A2A's; what answers an `InputRequired` is a question with the same `task_id`.
    `message_id`: what the A2A caller called the message; it may come again.
    `parts`: the whole message as A2A parts, where it holds more than text. `traceparent`: W3C Trace Context.
    """

    chat_id: str
    text: str
    asker: str | None = None
    task_id: str = ""
    context_id: str = ""
    message_id: str = ""
    parts: list[Any] = field(default_factory=list)
    traceparent: str = ""


@dataclass(frozen=True)
class CancelFrame:
    """No caller waits for the answer to that question any more."""

    chat_id: str


@dataclass(frozen=True, kw_only=True)
class DecisionFrame:
    """The decision on a permission request of this agent."""

    request_id: str
    decision: Decision


@dataclass(frozen=True, kw_only=True)
class ErrorFrame:
    """An error that the hub reports."""

    code: str
    message: str


@dataclass(frozen=True, kw_only=True)
class ByeFrame:
    """The hub is about to close the socket."""

    reason: str
    retry: bool


HubFrame = Welcome | PingFrame | Question | CancelFrame | DecisionFrame | ErrorFrame | ByeFrame
Fields = Mapping[str, Any]


def decode(raw: str | bytes) -> HubFrame | None:
    """Read one frame of the hub; None stands for a type this client does not know.

    Raises:
        UnreadableFrame: not a JSON object, or a known type without a field it needs.
    """
    fields = read_object(raw)
    read = READERS.get(text_of(fields, "type"))
    return read(fields) if read else None


def read_object(raw: str | bytes) -> dict[str, Any]:
    """The members of a frame of any kind.

    Raises:
        UnreadableFrame: not a JSON object.
    """
    try:
        fields = json.loads(raw)
    except (ValueError, RecursionError):
        raise UnreadableFrame("not JSON") from None
    if not isinstance(fields, dict):
        raise UnreadableFrame("not an object")
    return fields


def register(host: AgentHost, *, version: str, session_id: str | None, name: str | None, now: datetime) -> str:
    """Encode the first frame of a connection; `session_id` asks for the session of an earlier welcome."""
    frame: dict[str, object] = {
        "type": "register",
        "host": host.host,
        "cwd": host.cwd,
        "osUser": host.os_user,
        "pid": host.pid,
        "channelVersion": version,
        "sessionId": session_id,
        "features": FEATURES,
        "ts": stamp(now),
    }
    return _encode(frame if name is None else {**frame, "routingName": name})


def pong(ping: PingFrame) -> str:
    """Encode the answer to a ping."""
    return _encode({"type": "pong", "ts": ping.ts})


def reply(chat_id: str, text: str, *, usage: Usage | None = None, now: datetime) -> str:
    """Encode a whole reply."""
    return _chat_event("reply", {"chatId": chat_id, "text": text, **_used(usage)}, now)


def reply_chunk(chat_id: str, text: str, *, done: bool, usage: Usage | None = None, now: datetime) -> str:
    """Encode a piece of a reply; the piece with `done` is the last."""
    return _chat_event("reply_chunk", {"chatId": chat_id, "text": text, "done": done, **_used(usage)}, now)


def task_status(chat_id: str, part: Status | ReplyEnd, *, usage: Usage | None = None, now: datetime) -> str:
    """Encode a note, or an end that is not plain completion."""
    return _chat_event("task_status", {"chatId": chat_id, **_members(part), **_used(usage)}, now)


def task_artifact(chat_id: str, artifact: Artifact, *, now: datetime) -> str:
    """Encode an artifact, or more of one."""
    return _chat_event("task_artifact", {"chatId": chat_id, **_members(artifact)}, now)


def permission_request(chat_id: str, request_id: str, asked: ProgramPermissionRequest, *, now: datetime) -> str:
    """Encode the request to use a tool, for the question of that chat id."""
    named = {"requestId": request_id, "chatId": chat_id, "tool": asked.tool, "inputPreview": asked.input_preview}
    return _encode({"type": "permission_request", **named, "ts": stamp(now)})


def size_of(part: Status | Artifact | ReplyEnd) -> int:
    """The bytes of its reply that a part takes."""
    return len(_encode(_members(part)).encode())


def stamp(now: datetime) -> str:
    """Write an aware UTC time as the wire does: ISO-8601, milliseconds, `Z`."""
    return now.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _chat_event(event_type: str, payload: dict[str, object], now: datetime) -> str:
    return _encode({"type": "chat_event", "eventType": event_type, "payload": payload, "ts": stamp(now)})


def _members(part: Status | Artifact | ReplyEnd) -> dict[str, object]:
    if isinstance(part, ReplyEnd):
        return {"state": part.state, "text": part.text}
    if isinstance(part, Status):
        return {"state": "working", "text": part.text, **_present(metadata=part.metadata)}
    more = _present(
        name=part.name,
        description=part.description,
        metadata=part.metadata,
        append=part.append,
        lastChunk=part.last_chunk,
    )
    return {"artifactId": part.artifact_id, "parts": list(part.parts), **more}


def _used(usage: Usage | None) -> dict[str, object]:
    if usage is None:
        return {}
    named = {"inputTokens": usage.input_tokens, "outputTokens": usage.output_tokens, "costUsd": usage.cost_usd}
    return {"usage": {name: value for name, value in named.items() if value is not None}}


def _present(**members: object) -> dict[str, object]:
    return {name: value for name, value in members.items() if value}


def _encode(frame: dict[str, object]) -> str:
    return json.dumps(frame, ensure_ascii=False, separators=(",", ":"))


def _text(fields: Fields, name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise UnreadableFrame(f"{name} is not a string")
    return value


def _shown(fields: Fields, name: str) -> str:
    value = str(fields.get(name, ""))[:MAX_SHOWN_CHARS]
    return "".join(char if char.isprintable() else " " for char in value)  # it ends up on a terminal


def _welcome(fields: Fields) -> Welcome:
    name = _shown(fields, "routingName").removeprefix("@")
    features = fields.get("features")
    known = [one for one in features if isinstance(one, str)] if isinstance(features, list) else ()
    return Welcome(session_id=_text(fields, "sessionId"), routing_name=name, features=frozenset(known))


def _question(fields: Fields) -> Question:
    asker, parts = fields.get("askerUser"), fields.get("parts")
    return Question(
        chat_id=_text(fields, "chatId"),
        text=_text(fields, "text"),
        asker=asker if isinstance(asker, str) else None,
        task_id=text_of(fields, "taskId"),
        context_id=text_of(fields, "contextId"),
        message_id=text_of(fields, "messageId"),
        parts=parts if isinstance(parts, list) else [],
        traceparent=text_of(fields, "traceparent"),
    )


def _permission_response(fields: Fields) -> DecisionFrame:
    decided = _text(fields, "decision")
    message = text_of(fields, "message") or (NOT_DECIDED if decided == "expired" else "")
    return DecisionFrame(request_id=_text(fields, "requestId"), decision=Decision(decided == "allow", message))


READERS: dict[str, Callable[[Fields], HubFrame]] = {
    "welcome": _welcome,
    "ping": lambda fields: PingFrame(fields.get("ts")),
    "prompt": _question,
    "cancel": lambda fields: CancelFrame(_text(fields, "chatId")),
    "permission_response": _permission_response,
    "error": lambda fields: ErrorFrame(code=_shown(fields, "code"), message=_shown(fields, "message")),
    "bye": lambda fields: ByeFrame(reason=_shown(fields, "reason"), retry=fields.get("retry") is not False),
}
