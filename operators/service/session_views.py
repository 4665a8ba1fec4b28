"""The views that operators have of a session: the attached users, and the lines of its transcript.

Attachments are rows that are deleted with their process. Payloads are JSON of any form from agents: a line shows
only texts from it, each of bounded length.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, cast
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet

from accounts.models import Membership
from agents.core.explanations import explain
from agents.models import Attachment, Event, File, OpMessage, PermissionRequest, Share, Turn
from agents.models.choices import Outcome
from agents.models.session import alive_since
from agents.transcript import permissions
from agents.transcript.access import find_session, role_of, sessions_visible_to
from agents.transcript.announcements import PermissionRequested, RecheckAccess
from agents.transcript.timeline import TimelineRow
from kit.clock import db_now
from operators.wire.errors import NoSuchSession
from operators.wire.frames import RoleWord

MAX_PENDING = 200


@dataclass(frozen=True, slots=True)
class Attached:
    """A row that says which session an operator watches. `is_first`: the operator had no other attachment."""

    attachment_id: int
    session_id: int
    public_id: str
    is_first: bool


@dataclass(frozen=True, slots=True)
class Attendance:
    """The logins attached to a session, and the processes that hold their sockets."""

    logins: list[str]
    processes: frozenset[str]


@transaction.atomic
def attach(public_id: UUID, user_id: int, process_id: str) -> Attached:
    """Store that this process shows a session to a user.

    Raises:
        NoSuchSession: the session is absent or hidden from the user.
    """
    session = find_session(public_id, user_id)
    if session is None:
        raise NoSuchSession
    is_first = not _live(session.pk).filter(user_id=user_id).exists()
    row = Attachment.objects.create(session=session, process_id=process_id, user_id=user_id)
    return Attached(row.pk, session.pk, str(session.public_id), is_first)


def find_role_name(session_id: int, user_id: int) -> RoleWord | None:
    """A user's role in a session as the wire writes it; None when the user may not see the session."""
    session = sessions_visible_to(user_id).filter(pk=session_id).first()
    return cast(RoleWord, role_of(session).word) if session else None


def detach(attached: Collection[Attached]) -> None:
    """Delete these attachments."""
    Attachment.objects.filter(pk__in=[one.attachment_id for one in attached]).delete()


def find_lost_views(process_id: str) -> list[RecheckAccess]:
    """The views of this process whose users may no longer see the session, because the message about that may be
    lost.
    """
    shared = Exists(Share.objects.filter(session_id=OuterRef("session_id"), user_id=OuterRef("user_id")))
    maintainers = Membership.objects.maintaining().filter(group=OuterRef("session__owner_id"))
    others = Attachment.objects.filter(process_id=process_id).exclude(session__owner_id=F("user_id"))
    lost = others.exclude(shared, session__owner__is_active=True).distinct()
    lost = lost.exclude(Exists(maintainers.filter(user=OuterRef("user_id"))))
    return [
        RecheckAccess(session_id, user_id) for session_id, user_id in lost.values_list("session_id", "user_id")
    ]


def load_attendance(session_id: int) -> Attendance:
    """The logins that are attached now, in order."""
    rows = _live(session_id).values_list("user__login", "process_id")
    return Attendance(sorted({login for login, _ in rows}), frozenset(process for _, process in rows))


def pending(session_id: int) -> list[PermissionRequested]:
    """The permission requests that wait for a decision, oldest first."""
    waiting = permissions.pending(session_id).select_related("session")
    return [permissions.shown(one.session, one) for one in waiting[:MAX_PENDING]]


def _live(session_id: int) -> QuerySet[Attachment]:
    return Attachment.objects.filter(session_id=session_id, process__beat_at__gt=alive_since(db_now()))


MAX_TEXT_CHARS = 8_000
MAX_DETAIL_CHARS = 3_000
MAX_WORD_CHARS = 120

Look = Literal["prompt", "reply", "aside", "op", "note", "permission"]
# The first of these members that a payload has.
ABOUT = ("tool_name", "message", "peerLogin", "text", "name", "artifactId")
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

    `event_id`: set when the text was cut. `turn`: the turn of a question or an answer. `is_shown`: whether the
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


def build_rows(moments: Sequence[TimelineRow], session_id: int) -> list[TranscriptRow]:
    """The lines of some moments of one session, oldest first.

    A permission request has its line where it was made, so that its decision moves no line.
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


def row_of(moment: TimelineRow) -> TranscriptRow:
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
    """The value of stored JSON; a payload that other programs wrote, and that is no JSON, is shown as text."""
    try:
        value = json.loads(payload)
    except (ValueError, RecursionError):
        value = payload
    return value if isinstance(value, dict) else {"value": value}
