"""Renders the rows of a transcript: a bubble with its author, a permission request, or a line with details.

Payloads are whatever agents send: only texts come out of here, each of bounded length.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from agents.core.explanations import explain
from agents.models import Event, File, OpMessage, PermissionRequest, Turn
from agents.models.choices import Outcome
from agents.transcript.timeline import Moment
from kit.clock import db_now

MAX_TEXT_CHARS = 8_000
MAX_DETAIL_CHARS = 3_000
MAX_WORD_CHARS = 120

Look = Literal["prompt", "reply", "aside", "op", "note", "permission"]
ABOUT = ("tool_name", "message", "peerLogin", "text", "name", "artifactId")  # the first that is there
REPLIES = {"reply": "reply", "assistant_text": "aside"}
TITLES = {
    "PreToolUse": "Tool call",
    "PostToolUse": "Tool result",
    "task_artifact": "Artifact",
    "task_status": "Status",
}


@dataclass(slots=True, kw_only=True)
class TranscriptRow:
    """One line of the page. `look`: a bubble of an author, a permission request, or a note.

    `event_id`: set when the text was cut. `turn`: whose question or answer it is. `is_shown`: whether the
    question of an answer is on the same page. `state`: of a permission request, or why a question has no answer.
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
    turn: Turn | None = None
    is_shown: bool = False
    state: str = ""
    request_id: str = ""


def build_rows(moments: Sequence[Moment], session_id: int) -> list[TranscriptRow]:
    """The lines of some moments of one session, oldest first.

    A request has its line before it is decided, so that the decision moves none.
    """
    rows = [row_of(moment) for moment in moments]
    chat_ids = {row.chat_id for row in rows if row.chat_id}
    fields = ("chat_id", "outcome", "reason", "depth")
    found = Turn.objects.filter(session=session_id, chat_id__in=chat_ids).only(*fields) if chat_ids else ()
    turns = {turn.chat_id: turn for turn in found}
    asked: set[str] = set()
    for row in rows:
        if (turn := turns.get(row.chat_id)) is not None:
            row.turn, row.is_shown = turn, row.chat_id in asked
            if row.look == "prompt":
                asked.add(row.chat_id)
                row.state = _state_of(turn)
    return rows


def row_of(moment: Moment) -> TranscriptRow:
    """The line of a moment."""
    match moment.row:
        case Event() as event:
            return _event(event)
        case PermissionRequest() as asked:
            return row_of_request(asked)
        case OpMessage() as said:
            text, _ = _cut(said.text, MAX_TEXT_CHARS)
            return TranscriptRow(id=f"m{said.pk}", ts=said.ts, look="op", who=f"@{said.author.login}", text=text)
        case File() as file:
            text = f"@{file.uploader.login} uploaded {file.filename} ({file.size} bytes)"
            return TranscriptRow(id=f"f{file.pk}", ts=file.uploaded_at, look="note", title="file", text=text)


def row_of_request(asked: PermissionRequest) -> TranscriptRow:
    """The line of a permission request."""
    undecided = "waiting" if asked.expires_at > db_now() else "expired"
    status = undecided if asked.status == PermissionRequest.Status.PENDING else asked.status
    by = f" by @{asked.resolver.login}" if asked.resolver else ""
    return TranscriptRow(
        id=f"p{asked.pk}",
        ts=asked.requested_at,
        look="permission",
        title=asked.tool,
        details=_cut(asked.input_preview, MAX_TEXT_CHARS)[0],
        state=f"{status}{by}",
        request_id=asked.request_id,
    )


def _state_of(turn: Turn) -> str:
    if turn.outcome in (None, Outcome.COMPLETED) and not turn.reason:
        return ""
    return explain(turn.outcome, turn.reason, depth=turn.depth).owner


def _event(event: Event) -> TranscriptRow:
    payload = _read(event.payload)
    is_chat = event.kind == Event.Kind.CHAT
    if is_chat and event.type == "prompt":
        return _bubble(event, "prompt", _asker(payload), payload)
    if is_chat and event.type in REPLIES:
        return _bubble(event, "aside" if event.type == "assistant_text" else "reply", _answerer(payload), payload)
    return _note(event, payload)


def _bubble(event: Event, look: Look, who: str, payload: Mapping[str, Any]) -> TranscriptRow:
    text, was_cut = _cut(_word(payload, "text") or _word(payload, "prompt"), MAX_TEXT_CHARS)
    return TranscriptRow(
        id=f"e{event.pk}",
        ts=event.ts,
        look=look,
        who=who,
        text=text,
        chat_id=_word(payload, "chatId")[:MAX_WORD_CHARS],
        event_id=event.pk if was_cut else None,
    )


def _note(event: Event, payload: Mapping[str, Any]) -> TranscriptRow:
    details, was_cut = _cut(json.dumps(payload, indent=1, ensure_ascii=False) if payload else "", MAX_DETAIL_CHARS)
    about = [next(filter(None, (_word(payload, name) for name in ABOUT)), "")]
    if event.type == "PreToolUse" and isinstance(called := payload.get("tool_input"), dict):
        about += [value for value in called.values() if isinstance(value, str)][:1]  # the file, or the command
    return TranscriptRow(
        id=f"e{event.pk}",
        ts=event.ts,
        look="note",
        title=TITLES.get(event.type, event.type),
        text=_cut(" ".join(filter(None, about)), MAX_WORD_CHARS)[0],
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
