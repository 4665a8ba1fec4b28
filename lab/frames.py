"""The frames that agents send on `/channel`, as JSON objects (docs/reference/frames.md)."""

from typing import Any

Json = dict[str, Any]


def register(*, session_id: str | None, **fields: Any) -> Json:
    """The first frame. `session_id`: that of an earlier welcome, to be the same session again."""
    return {"type": "register", "osUser": None, "sessionId": session_id, **fields}


def reply(chat_id: str, text: str, **more: Any) -> Json:
    """The whole answer to a prompt; `more`: optional members, such as `usage`."""
    return chat_event("reply", chatId=chat_id, text=text, **more)


def chunk(chat_id: str, text: str, *, done: bool = False) -> Json:
    """A piece of an answer; the last is `done`."""
    return chat_event("reply_chunk", chatId=chat_id, text=text, done=done)


def chat_event(event_type: str, **payload: Any) -> Json:
    """An event of a chat, of any type."""
    return {"type": "chat_event", "eventType": event_type, "payload": payload, "ts": None}


def pong(ping: Json) -> Json:
    """The answer to a ping."""
    return {"type": "pong", "ts": ping["ts"]}
