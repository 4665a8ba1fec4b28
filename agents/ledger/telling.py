"""What a batch writes besides turns, for transcripts and webhooks; and whom to tell once it is committed."""

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from msgspec import Raw

from agents.announcing import Addressed
from agents.live import encode, seen_event
from agents.post import Live
from agents.transcript.recording import NewEvent, payload_of
from agents.types import Ask, Ending, OpenTurn, Outcome
from kit import sql

_INSERT = "INSERT INTO agents_event (session_id, kind, type, payload, ts) VALUES (%s, %s, %s, %s, %s)"
_ANYBODY = "SELECT EXISTS (SELECT 1 FROM agents_attachment)"
_SESSIONS = "SELECT id, public_id FROM agents_session WHERE id IN ({marks})"
_WATCHERS = "SELECT DISTINCT session_id, process_id FROM agents_attachment WHERE session_id IN ({marks})"


@dataclass(slots=True)
class Notes:
    """What a batch has to say of itself."""

    events: list[NewEvent] = field(default_factory=list)

    def admitted(self, turn: OpenTurn) -> None:
        """The question goes to the transcript of the session asked, and of the one it was asked from."""
        ask = turn.ask
        members = {"text": turn.text, "authorLogin": ask.caller_login, "chatId": ask.chat_id}
        self._add(ask.target.session_id, "prompt", source="operator", surface=ask.surface, **members)
        if ask.source is not None and ask.source.mirrors:
            self._add(ask.source.session_id, "prompt", source="operator-route", **members, **_peer(ask))

    def settled(self, turn: OpenTurn, ending: Ending) -> None:
        """So does the reply."""
        if ending.outcome is not Outcome.COMPLETED or not ending.text:
            return
        ask = turn.ask
        self._add(ask.target.session_id, "reply", text=ending.text, chatId=ask.chat_id)
        if ask.source is not None and ask.source.mirrors:
            reply = {"text": ending.text, "chatId": ask.chat_id, "source": "peer-reply"}
            self._add(ask.source.session_id, "reply", **reply, **_peer(ask))

    def late(self, session_id: int, chat_id: str, text: str) -> None:
        """A reply after the end: kept and shown, nothing else."""
        self._add(session_id, "reply", text=text, chatId=chat_id, late=True)

    def _add(self, session_id: int, type_: str, **members: Any) -> None:
        self.events.append(NewEvent(session_id, "chat", type_, payload_of(**members)))


@dataclass(frozen=True, slots=True)
class Told:
    """Whom to tell once the batch is committed, and which processes watch which session."""

    messages: Sequence[Addressed] = ()
    watchers: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    public_ids: Mapping[int, str] = field(default_factory=dict)


def write(notes: Notes, now: datetime) -> Told:
    """Write the notes of a batch, in one statement while nobody watches or listens."""
    if not notes.events:
        return Told()
    ts = sql.moment(now)
    sql.run_many(_INSERT, [(one.session_id, one.kind, one.type, one.payload, ts) for one in notes.events])
    [[anybody]] = sql.rows(_ANYBODY)
    if not anybody:
        return Told()
    public_ids, watchers = _facts({one.session_id for one in notes.events})
    messages: list[Addressed] = []
    for one in notes.events:
        for process_id in watchers.get(one.session_id, ()):
            seen = seen_event(public_ids[one.session_id], one.kind, one.type, one.payload, now)
            messages.append((process_id, Live(one.session_id, Raw(encode(seen)))))
    return Told(messages, watchers, public_ids)


def _facts(session_ids: Collection[int]) -> tuple[dict[int, str], dict[int, tuple[str, ...]]]:
    marks, values = sql.marks(session_ids), list(session_ids)
    sessions, attached = sql.rows_of_each(
        [sql.Query(_SESSIONS.format(marks=marks), values), sql.Query(_WATCHERS.format(marks=marks), values)]
    )
    watchers: dict[int, tuple[str, ...]] = {}
    for session_id, process_id in attached:
        watchers[session_id] = (*watchers.get(session_id, ()), process_id)
    return {row[0]: str(uuid.UUID(str(row[1]))) for row in sessions}, watchers


def _peer(ask: Ask) -> dict[str, str | None]:
    assert ask.source is not None  # noqa: S101  for the type checker
    return {"peerLogin": ask.source.peer_login, "peerSessionId": ask.source.peer_session_id}
