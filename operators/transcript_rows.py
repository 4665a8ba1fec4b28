"""Renders the rows of a transcript on a page: a speech bubble with its author, or a line with details.

Payloads are whatever agents send: only texts come out of here, each of bounded length.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from agents.models import Event, File, OpMessage
from agents.transcript.timeline import Moment

MAX_TEXT_CHARS = 8_000
MAX_DETAIL_CHARS = 3_000
MAX_WORD_CHARS = 120

Look = Literal["prompt", "reply", "aside", "op", "note"]
ABOUT = ("tool_name", "message", "peerLogin", "text", "name", "artifactId")  # the first that is there
REPLIES = {"reply": "reply", "assistant_text": "aside"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the page. `look`: a speech bubble of an author, or a note.

    `event_id`: set when the text was cut.
    """

    id: str
    ts: datetime
    look: Look
    who: str = ""
    title: str = ""
    text: str = ""
    details: str = ""
    chat_id: str = ""
    event_id: int | None = None


def row_of(moment: Moment) -> Row:
    """A moment as its line."""
    match moment.row:
        case Event() as event:
            return _event(event)
        case OpMessage() as said:
            text, _ = _cut(said.text, MAX_TEXT_CHARS)
            return Row(id=f"m{said.pk}", ts=said.ts, look="op", who=f"@{said.author.login}", text=text)
        case File() as file:
            text = f"@{file.uploader.login} uploaded {file.filename} ({file.size} bytes)"
            return Row(id=f"f{file.pk}", ts=file.uploaded_at, look="note", title="file", text=text)


def _event(event: Event) -> Row:
    payload = _read(event.payload)
    is_chat = event.kind == Event.Kind.CHAT
    if is_chat and event.type == "prompt":
        return _bubble(event, "prompt", _asker(payload), payload)
    if is_chat and event.type in REPLIES:
        return _bubble(event, "aside" if event.type == "assistant_text" else "reply", _answerer(payload), payload)
    return _note(event, payload)


def _bubble(event: Event, look: Look, who: str, payload: Mapping[str, Any]) -> Row:
    text, was_cut = _cut(_word(payload, "text") or _word(payload, "prompt"), MAX_TEXT_CHARS)
    return Row(
        id=f"e{event.pk}",
        ts=event.ts,
        look=look,
        who=who,
        text=text,
        chat_id=_word(payload, "chatId")[:MAX_WORD_CHARS],
        event_id=event.pk if was_cut else None,
    )


def _note(event: Event, payload: Mapping[str, Any]) -> Row:
    details, was_cut = _cut(json.dumps(payload, indent=1, ensure_ascii=False) if payload else "", MAX_DETAIL_CHARS)
    about = next(filter(None, (_word(payload, name) for name in ABOUT)), "")
    return Row(
        id=f"e{event.pk}",
        ts=event.ts,
        look="note",
        title=event.type,
        text=_cut(about, MAX_WORD_CHARS)[0],
        details=details,
        event_id=event.pk if was_cut else None,
    )


def _asker(payload: Mapping[str, Any]) -> str:
    author, peer = _word(payload, "authorLogin"), _peer(payload)
    if author:
        return f"@{author} to {peer}" if peer and payload.get("source") == "operator-route" else f"@{author}"
    return peer or "at its terminal"


def _answerer(payload: Mapping[str, Any]) -> str:
    return _peer(payload) or "agent"


def _peer(payload: Mapping[str, Any]) -> str:
    login = _word(payload, "peerLogin")
    return f"@{login}" if login else ""


def _word(payload: Mapping[str, Any], name: str) -> str:
    value = payload.get(name)
    return value if isinstance(value, str) else ""


def _cut(text: str, at_most: int) -> tuple[str, bool]:
    return (text, False) if len(text) <= at_most else (f"{text[:at_most]}…", True)


def _read(payload: str) -> Mapping[str, Any]:
    """The stored JSON; what other programs wrote into the table is shown as text."""
    try:
        value = json.loads(payload)
    except (ValueError, RecursionError):
        value = payload
    return value if isinstance(value, dict) else {"value": value}
