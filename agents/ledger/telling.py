"""What a batch writes besides turns, for transcripts and webhooks; and whom to tell once it is committed."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from msgspec import Raw

from agents.announcing import Addressed
from agents.errors import Denied
from agents.live import encode, seen_event
from agents.post import Live
from agents.transcript.happenings import Scene, scenes
from agents.transcript.recording import NewEvent, payload_of
from agents.types import Ask, Ending, OpenTurn, Outcome
from kit import sql
from webhooks import outbox
from webhooks.outbox import Happening

_EVENTS = "INSERT INTO agents_event (session_id, kind, type, payload, ts)"
_WHO = sql.Query(f"SELECT EXISTS (SELECT 1 FROM agents_attachment), ({outbox.LISTENING})")
_WATCHERS = "SELECT DISTINCT session_id, process_id FROM agents_attachment WHERE session_id IN ({marks})"


@dataclass(slots=True)
class Notes:
    """What a batch decided and is to be written: turns and the budgets they spend, events, what webhooks hear."""

    events: list[NewEvent] = field(default_factory=list)
    of_agents: list[tuple[int, str, str, dict[str, Any]]] = field(default_factory=list)
    spending: sql.Query | None = None
    spenders: int = 0
    callers_spending: sql.Insert | None = None
    turns: sql.Insert | None = None

    def admitted(self, turn: OpenTurn) -> None:
        """The question goes to the transcript of the session asked, and of the one it was asked from."""
        ask = turn.ask
        members = {"text": turn.text, "authorLogin": ask.caller_login, "chatId": ask.chat_id}
        self._add(ask, ask.target.session_id, "prompt", source="operator", surface=ask.surface, **members)
        if ask.source is not None and ask.source.mirrors:
            self._add(ask, ask.source.session_id, "prompt", source="operator-route", **members, **_peer(ask))
        self._say(ask, "agent.dispatched", question=turn.text)

    def settled(self, turn: OpenTurn, ending: Ending) -> None:
        """So does the reply. Why an agent did not answer is in its own transcript: it said so by an event."""
        ok = ending.outcome is Outcome.COMPLETED
        self._say(
            turn.ask,
            "agent.replied",
            question=turn.text,
            ok=ok,
            reply=ending.text if ok else None,
            latencyMs=ending.latency_ms,
            deniedReason=None if ok else ending.reason,
        )
        if not ending.text:
            return
        ask, failed = turn.ask, None if ok else ending.reason
        if ok:
            self._add(ask, ask.target.session_id, "reply", text=ending.text, chatId=ask.chat_id)
        if ask.source is not None and (ask.source.mirrors or ask.source.reports):
            reply = {"text": ending.text, "chatId": ask.chat_id, "source": "peer-reply", "failed": failed}
            self._add(ask, ask.source.session_id, "reply", **reply, **_peer(ask))

    def denied(self, ask: Ask, denied: Denied) -> None:
        """A refusal is for the agent's owner to hear."""
        self._say(ask, "agent.denied", question=ask.question, ok=False, deniedReason=denied.reason)

    def late(self, session_id: int, chat_id: str, text: str) -> None:
        """A reply after the end: kept and shown, nothing else."""
        self._add(None, session_id, "reply", text=text, chatId=chat_id, late=True)

    @property
    def session_ids(self) -> set[int]:
        """The sessions all this is about."""
        return {one.session_id for one in self.events} | {session_id for session_id, *_ in self.of_agents}

    def _add(self, ask: Ask | None, session_id: int, type_: str, **members: Any) -> None:
        traceparent = ask.traceparent if ask else ""
        self.events.append(NewEvent(session_id, "chat", type_, payload_of(**members), traceparent))

    def _say(self, ask: Ask, type_: str, **members: Any) -> None:
        target = ask.target
        if target.agent_id is not None:
            who = {"handle": target.handle, "agentId": target.agent_id, "askerLogin": ask.caller_login}
            self.of_agents.append(
                (target.session_id, type_, ask.traceparent, {**who, "routeId": ask.chat_id, **members})
            )


@dataclass(frozen=True, slots=True)
class Told:
    """Whom to tell once the batch is committed, and which processes watch which session."""

    messages: Sequence[Addressed] = ()
    watchers: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    public_ids: Mapping[int, str] = field(default_factory=dict)


def write(notes: Notes, now: datetime) -> Told:
    """Write what a batch decided, PostgreSQL in one round trip: budgets, turns, events.

    Deliveries follow where anybody subscribed.
    """
    writes = [write for write in (notes.spending, notes.turns, notes.callers_spending) if write is not None]
    if not writes and not notes.session_ids:
        return Told()
    who = None if sql.shares_round_trips() else sql.rows(*_WHO)[0]
    events = _inserting(notes.events, sql.moment(now), with_ids=who is None or bool(who[1]))
    found = sql.write_each([*writes, *events, *([_WHO] if who is None else [])])
    if notes.spending is not None and len(found[0]) != notes.spenders:
        raise RuntimeError("a budget changed under the batch")
    is_watched, is_heard = who or found[-1][0]
    if not is_watched and not is_heard:
        return Told()
    known = scenes(notes.session_ids)
    if is_heard:
        ids = sorted(row[0] for row in found[len(writes)]) if events else []
        outbox.record(_heard(notes, ids, known, now))
    return _told(notes.events, known, now) if is_watched else Told()


def _inserting(events: Sequence[NewEvent], ts: object, *, with_ids: bool) -> list[sql.Insert]:
    rows = [(*_values(one), ts) for one in events]
    return [sql.Insert(_EVENTS, rows, "RETURNING id" if with_ids else "")] if events else []


def _values(event: NewEvent) -> tuple[int, str, str, str]:
    return event.session_id, event.kind, event.type, event.payload


def _heard(notes: Notes, ids: Sequence[int], known: Mapping[int, Scene], now: datetime) -> list[Happening]:
    heard = [
        known[one.session_id].event(event_id, one.kind, one.type, one.payload, now, one.traceparent)
        for event_id, one in zip(ids, notes.events, strict=True)
    ]
    return heard + [
        known[session_id].agent(type_, traceparent, **members)
        for session_id, type_, traceparent, members in notes.of_agents
    ]


def _told(events: Sequence[NewEvent], known: Mapping[int, Scene], now: datetime) -> Told:
    watchers = _watchers(known)
    public_ids = {session_id: scene.public_id for session_id, scene in known.items()}
    messages: list[Addressed] = []
    for one in events:
        for process_id in watchers.get(one.session_id, ()):
            seen = seen_event(public_ids[one.session_id], one.kind, one.type, one.payload, now)
            messages.append((process_id, Live(one.session_id, Raw(encode(seen)))))
    return Told(messages, watchers, public_ids)


def _watchers(session_ids: Collection[int]) -> dict[int, tuple[str, ...]]:
    watchers: dict[int, tuple[str, ...]] = {}
    for session_id, process_id in sql.rows(_WATCHERS.format(marks=sql.marks(session_ids)), list(session_ids)):
        watchers[session_id] = (*watchers.get(session_id, ()), process_id)
    return watchers


def _peer(ask: Ask) -> dict[str, str | None]:
    assert ask.source is not None  # noqa: S101  for the type checker
    return {"peerLogin": ask.source.peer_login, "peerSessionId": ask.source.peer_session_id}
