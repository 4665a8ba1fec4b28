"""The hub's JSON frames: text in, frozen values out, and back. No I/O.

The frames are those of the `/channel` wire. Frames this client has no use for decode to None.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

MAX_SHOWN_CHARS = 500


class BadFrame(ValueError):
    """A frame is not JSON, or lacks a field it needs."""


@dataclass(frozen=True, kw_only=True)
class Host:
    """Where the agent runs, as the hub shows it to the owner."""

    host: str
    cwd: str
    os_user: str | None
    pid: int


@dataclass(frozen=True, kw_only=True)
class Welcome:
    """The hub accepted the agent; `session_id` brings it back to the same session later.

    `routing_name` is without the @ it has on the wire.
    """

    session_id: str
    routing_name: str


@dataclass(frozen=True)
class Ping:
    """The hub asks whether the agent lives; `ts` goes back as it came."""

    ts: object


@dataclass(frozen=True, kw_only=True)
class Question:
    """Something an agent is asked; `asker` is the login of who asks, where the hub tells."""

    chat_id: str
    text: str
    asker: str | None = None


@dataclass(frozen=True, kw_only=True)
class HubError:
    """The hub did not like something."""

    code: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Bye:
    """The hub is about to close the socket."""

    reason: str
    retry: bool


HubFrame = Welcome | Ping | Question | HubError | Bye
Fields = Mapping[str, Any]


def decode(raw: str | bytes) -> HubFrame | None:
    """Read one frame of the hub; None stands for a type this client does not know.

    Raises:
        BadFrame: not a JSON object, or a known type without a field it needs.
    """
    try:
        fields = json.loads(raw)
    except (ValueError, RecursionError):
        raise BadFrame("not JSON") from None
    if not isinstance(fields, dict):
        raise BadFrame("not an object")
    kind = fields.get("type")
    read = READERS.get(kind) if isinstance(kind, str) else None
    return read(fields) if read else None


def register(host: Host, *, version: str, session_id: str | None, name: str | None, now: datetime) -> str:
    """Encode the first frame of a connection; `session_id` asks for the session of an earlier welcome."""
    frame: dict[str, object] = {
        "type": "register",
        "host": host.host,
        "cwd": host.cwd,
        "osUser": host.os_user,
        "pid": host.pid,
        "channelVersion": version,
        "sessionId": session_id,
        "ts": stamp(now),
    }
    return _encode(frame if name is None else {**frame, "routingName": name})


def pong(ping: Ping) -> str:
    """Encode the answer to a ping."""
    return _encode({"type": "pong", "ts": ping.ts})


def reply(chat_id: str, text: str, *, now: datetime) -> str:
    """Encode a whole reply."""
    return _chat_event("reply", {"chatId": chat_id, "text": text}, now)


def reply_chunk(chat_id: str, text: str, *, done: bool, now: datetime) -> str:
    """Encode a piece of a reply; the piece with `done` is the last."""
    return _chat_event("reply_chunk", {"chatId": chat_id, "text": text, "done": done}, now)


def stamp(now: datetime) -> str:
    """Write an aware UTC time as the wire does: ISO-8601, milliseconds, `Z`."""
    return now.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _chat_event(event_type: str, payload: dict[str, object], now: datetime) -> str:
    return _encode({"type": "chat_event", "eventType": event_type, "payload": payload, "ts": stamp(now)})


def _encode(frame: dict[str, object]) -> str:
    return json.dumps(frame, ensure_ascii=False, separators=(",", ":"))


def _text(fields: Fields, name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise BadFrame(f"{name} is not a string")
    return value


def _shown(fields: Fields, name: str) -> str:
    value = str(fields.get(name, ""))[:MAX_SHOWN_CHARS]
    return "".join(char if char.isprintable() else " " for char in value)  # it ends up on a terminal


def _welcome(fields: Fields) -> Welcome:
    name = _shown(fields, "routingName").removeprefix("@")
    return Welcome(session_id=_text(fields, "sessionId"), routing_name=name)


def _question(fields: Fields) -> Question:
    asker = fields.get("askerUser")
    return Question(
        chat_id=_text(fields, "chatId"),
        text=_text(fields, "text"),
        asker=asker if isinstance(asker, str) else None,
    )


READERS: dict[str, Callable[[Fields], HubFrame]] = {
    "welcome": _welcome,
    "ping": lambda fields: Ping(fields.get("ts")),
    "prompt": _question,
    "error": lambda fields: HubError(code=_shown(fields, "code"), message=_shown(fields, "message")),
    "bye": lambda fields: Bye(reason=_shown(fields, "reason"), retry=fields.get("retry") is not False),
}
