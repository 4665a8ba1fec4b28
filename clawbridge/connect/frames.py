"""The frames of `/channel`: what the connector reads of them, and those that it sends. The module does no I/O."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from clawbridge.connect.reply_parts import (
    Artifact,
    Decision,
    Json,
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


def read_text(fields: Json, name: str) -> str:
    """A member that must be a text.

    Raises:
        UnreadableFrame: it is none.
    """
    value = fields.get(name)
    if not isinstance(value, str):
        raise UnreadableFrame(f"{name} is not a string")
    return value


def read_shown(fields: Json, name: str) -> str:
    """A member as a text for a terminal: at most 500 characters, all of them printable."""
    value = str(fields.get(name, ""))[:MAX_SHOWN_CHARS]
    return "".join(char if char.isprintable() else " " for char in value)


def read_welcome(fields: Json) -> Welcome:
    """The welcome of a frame. Raises UnreadableFrame."""
    name, features = read_shown(fields, "routingName").removeprefix("@"), fields.get("features")
    known = [one for one in features if isinstance(one, str)] if isinstance(features, list) else ()
    return Welcome(session_id=read_text(fields, "sessionId"), routing_name=name, features=frozenset(known))


def read_question(fields: Json) -> Question:
    """The question of a frame. Raises UnreadableFrame."""
    asker, parts = fields.get("askerUser"), fields.get("parts")
    return Question(
        chat_id=read_text(fields, "chatId"),
        text=read_text(fields, "text"),
        asker=asker if isinstance(asker, str) else None,
        task_id=text_of(fields, "taskId"),
        context_id=text_of(fields, "contextId"),
        message_id=text_of(fields, "messageId"),
        parts=parts if isinstance(parts, list) else [],
        traceparent=text_of(fields, "traceparent"),
    )


def read_decision(fields: Json) -> Decision:
    """The decision on a permission request of this agent. Raises UnreadableFrame."""
    decided = read_text(fields, "decision")
    message = text_of(fields, "message") or (NOT_DECIDED if decided == "expired" else "")
    return Decision(decided == "allow", message)


def register(host: Json, *, version: str, session_id: str | None, name: str | None) -> str:
    """Encode the first frame of a connection; `session_id` asks for the session of an earlier welcome."""
    named = {} if name is None else {"routingName": name}
    agent = {"channelVersion": version, "sessionId": session_id, "features": FEATURES, **named}
    return _encode({"type": "register", **host, **agent, "ts": _now()})


def pong(ts: object) -> str:
    """Encode the answer to a ping; `ts` goes back as it came."""
    return _encode({"type": "pong", "ts": ts})


def reply(chat_id: str, text: str, *, usage: Usage | None = None) -> str:
    """Encode a whole reply."""
    return _chat_event("reply", {"chatId": chat_id, "text": text, **_used(usage)})


def reply_chunk(chat_id: str, text: str, *, done: bool, usage: Usage | None = None) -> str:
    """Encode a piece of a reply; the piece with `done` is the last."""
    return _chat_event("reply_chunk", {"chatId": chat_id, "text": text, "done": done, **_used(usage)})


def task_status(chat_id: str, part: Status | ReplyEnd, *, usage: Usage | None = None) -> str:
    """Encode a note, or an end that is not plain completion."""
    return _chat_event("task_status", {"chatId": chat_id, **_members(part), **_used(usage)})


def task_artifact(chat_id: str, artifact: Artifact) -> str:
    """Encode an artifact, or more of one."""
    return _chat_event("task_artifact", {"chatId": chat_id, **_members(artifact)})


def permission_request(chat_id: str, request_id: str, asked: ProgramPermissionRequest) -> str:
    """Encode the request to use a tool, for the question of that chat id."""
    named = {"requestId": request_id, "chatId": chat_id, "tool": asked.tool, "inputPreview": asked.input_preview}
    return _encode({"type": "permission_request", **named, "ts": _now()})


def size_of(part: Status | Artifact | ReplyEnd) -> int:
    """The bytes of its reply that a part takes."""
    return len(_encode(_members(part)).encode())


def _now() -> str:
    """The time as the wire has it: ISO-8601, milliseconds, `Z`."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _chat_event(event_type: str, payload: dict[str, object]) -> str:
    return _encode({"type": "chat_event", "eventType": event_type, "payload": payload, "ts": _now()})


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
