"""Writes a batch's transcript events, clones of files and webhook deliveries; makes the messages for watchers."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import F, Q
from msgspec import Raw, Struct, field
from msgspec.structs import replace

from agents.core.errors import Denied
from agents.core.ledger.database import Database, StatementResult
from agents.core.ledger.statements import INSERT_EVENTS, SUBSCRIBED, EventRow
from agents.core.ledger.texts import Statement, statement
from agents.core.ledger.work import Result
from agents.core.types import Ask, AskSource, OpenTurn, TurnEnding
from agents.models import File
from agents.models.choices import Outcome
from agents.transcript.announcements import (
    AddressedMessage,
    LiveFrame,
    SessionAudience,
    encode,
    load_session_audiences,
    seen_event,
)
from agents.transcript.mentions import MAX_FILES, clone_mentioned_files, mentions, readable, rewrite
from agents.transcript.recording import NewEvent, as_payload, payload_of
from webhooks.service import outbox
from webhooks.service.outbox import OutboxEvent

MAX_FILES_LOOKED_UP = 500  # a reply of 1 MiB can name many more files
# On PostgreSQL an operator can attach while a batch is written, so any session may be watched at the commit.
_WATCHED = Statement("EXISTS (SELECT 1 FROM agents_attachment)", "true")
LISTENERS = statement(f"SELECT {{watched}}, ({SUBSCRIBED})", watched=_WATCHED)
# On PostgreSQL this fails the transaction if a subscription is live, as `texts.checked` does.
EXPECT_NO_WEBHOOKS = Statement("", f"SELECT 1 / CAST(NOT ({SUBSCRIBED}) AS integer)")
_WATCHERS = statement("""
SELECT DISTINCT a.session_id, a.process_id, s.public_id
FROM agents_attachment a JOIN agents_session s ON s.id = a.session_id WHERE a.session_id = ANY(:ids)
""")


class BatchEvents(Struct):
    """Collects the transcript events and webhook events of a batch, and writes them.

    `is_watched`: an operator may watch a session. `is_subscribed`: a webhook subscription is live. `LISTENERS`
    reads both.
    """

    events: list[NewEvent] = field(default_factory=list)
    of_agents: list[tuple[int, str, str, dict[str, Any]]] = field(default_factory=list)
    is_watched: bool = False
    is_subscribed: bool = False

    def admitted(self, turn: OpenTurn) -> None:
        """Add the question to the transcripts of the asked session and of the asking session."""
        ask = turn.ask
        members = {"text": turn.text, "authorLogin": ask.caller_login, "chatId": ask.chat_id}
        payload = as_payload({"source": "operator", "surface": ask.surface, **members})
        self.events.append(NewEvent(ask.target.session_id, "chat", "prompt", payload, ask.traceparent))
        if ask.source is not None and ask.source.mirrors:
            self._add_at_source(ask, ask.source, "prompt", source="operator-route", **members)
        if self.is_subscribed:
            self._add_webhook_event(ask, "agent.dispatched", question=turn.text)

    def settled(self, turn: OpenTurn, ending: TurnEnding) -> None:
        """Add the reply to both transcripts; the text of a failure only to that of the asking session."""
        ok = ending.outcome is Outcome.COMPLETED
        if self.is_subscribed:
            self._add_webhook_event(
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
        ask, reply = turn.ask, {"text": ending.text, "chatId": turn.ask.chat_id}
        if ok:
            payload = as_payload(reply)
            self.events.append(NewEvent(ask.target.session_id, "chat", "reply", payload, ask.traceparent))
        if ask.source is not None and (ask.source.mirrors or ask.source.reports):
            failed = None if ok else ending.reason
            self._add_at_source(ask, ask.source, "reply", **reply, source="peer-reply", failed=failed)

    def denied(self, ask: Ask, denied: Denied) -> None:
        """Add the webhook event of a refusal, for the agent's owner."""
        if self.is_subscribed:
            self._add_webhook_event(
                ask, "agent.denied", question=ask.question, ok=False, deniedReason=denied.reason
            )

    def late(self, session_id: int, chat_id: str, text: str) -> None:
        """Add a reply that came after the end of its turn to the transcript; it has no other effect."""
        self.events.append(
            NewEvent(session_id, "chat", "reply", as_payload({"text": text, "chatId": chat_id, "late": True}))
        )

    @property
    def session_ids(self) -> set[int]:
        """The sessions of all collected events."""
        return {one.session_id for one in self.events} | {session_id for session_id, *_ in self.of_agents}

    def write(self, database: Database) -> StatementResult | None:
        """Write the events and, with a subscription, the webhook deliveries; returns the query for watchers.

        A row of the query: session id, id of a process whose operators watch the session, public id. The query
        runs after the commit: an operator who attaches later finds the events in the transcript.
        """
        if not self.events and not self.of_agents:
            return None
        # On PostgreSQL the statement sets the time, which may not have been fetched yet.
        ts = None if database.is_postgresql else database.stored_now
        rows = [EventRow(one.session_id, one.kind, one.type, one.payload, ts) for one in self.events]
        if self.is_subscribed:
            ids = sorted(database.insert_returning_ids(INSERT_EVENTS, rows)) if rows else []
            with database.for_django():
                outbox.record(self._webhook_events(ids, load_session_audiences(self.session_ids), database.now))
        elif rows:
            database.insert(INSERT_EVENTS, rows)
        return database.send_after_commit(_WATCHERS, ids=self.session_ids) if self.is_watched else None

    def announce(self, watchers: StatementResult, now: datetime, results: list[Result]) -> list[AddressedMessage]:
        """The messages for processes with watchers; call it after the commit. `watchers`: see `write`.

        The function sets the watching processes in the open turns of `results`: chunks are sent there too.
        """
        processes: dict[int, tuple[str, ...]] = {}
        public_ids: dict[int, str] = {}
        for session_id, process_id, public_id in watchers.fetchall():
            processes[session_id] = (*processes.get(session_id, ()), process_id)
            public_ids[session_id] = str(UUID(str(public_id)))
        for i, turn in enumerate(results):
            if isinstance(turn, OpenTurn) and (session_id := turn.ask.target.session_id) in processes:
                public_id = public_ids[session_id]
                results[i] = replace(turn, session_public_id=public_id, watchers=processes[session_id])
        messages: list[AddressedMessage] = []
        for one in self.events:
            for process_id in processes.get(one.session_id, ()):
                seen = seen_event(public_ids[one.session_id], one.kind, one.type, one.payload, now)
                messages.append((process_id, LiveFrame(one.session_id, Raw(encode(seen)))))
        return messages

    def _webhook_events(
        self, ids: Sequence[int], known: Mapping[int, SessionAudience], now: datetime
    ) -> list[OutboxEvent]:
        heard = [
            known[one.session_id].event(event_id, one.kind, one.type, one.payload, now, one.traceparent)
            for event_id, one in zip(ids, self.events, strict=True)
        ]
        return heard + [
            known[session_id].agent(type_, traceparent, **members)
            for session_id, type_, traceparent, members in self.of_agents
        ]

    def _add_at_source(self, ask: Ask, source: AskSource, type_: str, /, **members: Any) -> None:
        peer = {"peerLogin": source.peer_login, "peerSessionId": source.peer_session_id}
        payload = payload_of(**members, **peer)
        self.events.append(NewEvent(source.session_id, "chat", type_, payload, ask.traceparent))

    def _add_webhook_event(self, ask: Ask, type_: str, **members: Any) -> None:
        target = ask.target
        if target.agent_id is not None:
            who = {"handle": target.handle, "agentId": target.agent_id, "askerLogin": ask.caller_login}
            self.of_agents.append(
                (target.session_id, type_, ask.traceparent, {**who, "routeId": ask.chat_id, **members})
            )


def files_are_there(database: Database, ask: Ask) -> bool:
    """True if the caller can still read every file that the question names."""
    with database.for_django():
        return readable(ask.files, ask.caller_id).keys() >= set(ask.files)


def clone_files_for_target(database: Database, turn: OpenTurn) -> OpenTurn:
    """Clone the question's files into the asked session; returns the turn with the new file ids in its text.

    Raises:
        FilesRefused: a file was removed after `files_are_there`; the batch is tried again.
    """
    ask = turn.ask
    with database.for_django():
        ids = clone_mentioned_files(
            ask.target.session_id,
            ask.files,
            ask.caller_id,
            agent_id=ask.target.agent_id,
            chat_id=ask.chat_id,
            context_id=ask.context_id,
        )
    return replace(turn, text=rewrite(turn.text, ids))


def clone_files_for_source(database: Database, ask: Ask, source: AskSource, ending: TurnEnding) -> TurnEnding:
    """Clone the reply's files into the session that asked; returns the ending with the new file ids in its text.

    Only files of the answering session are cloned that its owner or the caller uploaded: the agent can name other
    files, also those of other callers, which the caller may not read. If there are more than MAX_FILES, only the
    first are cloned: a reply never fails to end its turn.
    """
    if ending.outcome is not Outcome.COMPLETED or "fileId=" not in ending.text:
        return ending
    with database.for_django():
        return _with_files_of_source(ask, source.session_id, ending)


def _with_files_of_source(ask: Ask, source_id: int, ending: TurnEnding) -> TurnEnding:
    named = mentions(ending.text)[:MAX_FILES_LOOKED_UP]
    open_to_caller = Q(uploader_id=F("session__owner_id")) | Q(uploader_id=ask.caller_id)
    own = File.objects.live().filter(open_to_caller, session_id=ask.target.session_id, pk__in=named)
    owners = dict(own.values_list("pk", "session__owner_id"))
    if not owners:
        return ending
    first = [number for number in named if number in owners][:MAX_FILES]
    ids = clone_mentioned_files(source_id, first, owners[first[0]])
    return replace(ending, text=rewrite(ending.text, ids))
