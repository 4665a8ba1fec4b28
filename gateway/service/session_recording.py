"""Adds messages and their replies to the sessions in which they belong, in batches in a thread (docs/adr/0153).

The database has each record before: a process that is killed loses none.
"""

import logging
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db import DatabaseError, transaction
from django.db.models import Count, F, Q, Sum

from agents.core.types import Ask, SettledTurn
from agents.core.waiting import RunningTurn
from agents.models.choices import Outcome
from gateway import limits
from gateway.models import SessionEntry, SessionLog
from gateway.service.messages import RoutedMessage
from gateway.service.seat_frames import content_of, reply_id
from gateway.service.session_entries import (
    LogEntry,
    PlacedEntry,
    drop,
    hold,
    make_row,
    read_orphaned_records,
    release,
    seal_content,
)
from gateway.service.session_rows import check_writable, find_ttl_s
from gateway.wire.errors import FrameRefused
from gateway.wire.frames import now_ms
from kit import batches, sql
from kit.batch_writer import RETRY_S, BatchWriter
from kit.clock import db_now

logger = logging.getLogger(__name__)

MAX_ENTRIES = 10_000  # of a session
MAX_SESSION_BYTES = 8 * 1024 * 1024
TRIMMED_AT_ONCE = 20
COMPACTED_ID = "compacted"


class _Key(NamedTuple):
    owner_id: int
    agent: str
    session_id: str


def write_records(records: Sequence[PlacedEntry]) -> None:
    """Add messages to the sessions of their agents, in this order; absent sessions are made.

    The same transaction deletes the `HeldEntry` rows of these messages.
    A session that has too many entries is compacted. A team that has too many sessions loses those to which
    nothing was added for longest, archived ones first.
    """
    now = db_now()
    # Before the transaction: while it runs, SQLite lets no turn be written.
    _write(records, _find_places(records, now), now)
    for owner_id in {record.place.owner_id for record in records}:
        _trim(owner_id, now)


def write_orphaned_records(process_id: str, *, is_alone: bool) -> int:
    """Write the records of killed processes to sessions; returns their number. See `read_orphaned_records`."""
    return sum(write_or_log(records) for records in read_orphaned_records(process_id, is_alone=is_alone))


def write_or_log(records: Sequence[PlacedEntry]) -> int:
    """Write records, one by one when one may be at fault; how many were written.

    A record that cannot be written is logged and deleted.

    Raises:
        OperationalError, InterfaceError, InternalError: the database is away; the entries are held.
    """
    try:
        write_records(records)
    except sql.DATABASE_UNAVAILABLE:
        raise
    except DatabaseError:
        if len(records) > 1:
            return sum(write_or_log([record]) for record in records)
        logger.exception("gateway.session_entry_not_written")
        drop([record.key for record in records])
        return 0
    return len(records)


@transaction.atomic
def _write(records: Sequence[PlacedEntry], places: Mapping[tuple[_Key, str], _Key], now: datetime) -> None:
    held = release([record.key for record in records])
    added: dict[_Key, list[PlacedEntry]] = {}
    for record in records:
        if record.key not in held:
            continue
        place = record.place
        for agent in place.agents:
            key = places[_Key(place.owner_id, agent, place.base_id), place.writer]
            added.setdefault(key, []).append(record)
    logs = _lock_logs(set(added), now)
    rows = {
        log.pk: [make_row(log.pk, log.session_id, one.entry, one.sealed) for one in added[key]]
        for key, log in logs.items()
    }
    SessionEntry.objects.bulk_create([row for of_log in rows.values() for row in of_log])
    _add_counts(logs.values(), rows, now)


def _add_counts(logs: Collection[SessionLog], rows: Mapping[int, Sequence[SessionEntry]], now: datetime) -> None:
    """Count the new entries of sessions: one statement for those that got as many, of as many bytes."""
    alike: dict[tuple[int, int], list[int]] = {}
    for log in logs:
        size = sum(row.bytes for row in rows[log.pk])
        alike.setdefault((len(rows[log.pk]), size), []).append(log.pk)
        if log.state == SessionLog.State.COMMITTED:  # the session has uncommitted entries again
            SessionLog.objects.filter(pk=log.pk).update(state=SessionLog.State.ACTIVE)
        log.entries, log.bytes = log.entries + len(rows[log.pk]), log.bytes + size
    for (entries, size), keys in alike.items():
        found = SessionLog.objects.filter(pk__in=keys)
        found.update(entries=F("entries") + entries, bytes=F("bytes") + size, last_entry_at=now)
    for log in logs:
        if log.entries > MAX_ENTRIES or log.bytes > MAX_SESSION_BYTES:
            compact(log.pk)


def compact(log_id: int) -> None:
    """Remove the oldest entries of a session until it has half of what it may; one entry tells how many went.

    Call it under the lock of the session's row.
    """
    log = SessionLog.objects.get(pk=log_id)
    rows = list(SessionEntry.objects.filter(log=log).order_by("pk").values_list("pk", "bytes", "entry_id"))
    first, entries, size = rows[0], len(rows), sum(row[1] for row in rows)
    gone: list[int] = []
    for key, row_bytes, _ in rows[:-1]:
        if entries <= MAX_ENTRIES // 2 and size <= MAX_SESSION_BYTES // 2:
            break
        gone.append(key)
        entries, size = entries - 1, size - row_bytes
    was_compacted = first[2] == COMPACTED_ID and log.compacted > 0
    count = log.compacted + len(gone) - was_compacted
    text = f"{count} earlier entries of this session were removed: it had too many"
    entry = LogEntry(timestamp_ms=now_ms(), role="system", content=text, id=COMPACTED_ID)
    summary = make_row(log.pk, log.session_id, entry, seal_content(text))
    summary.pk = first[0]  # in the place of the first: entries are in the order of their keys
    summary.save(force_update=True)
    SessionEntry.objects.filter(pk__in=gone[1:]).delete()
    log.entries, log.bytes, log.compacted = entries + 1, size + summary.bytes, count
    log.save(update_fields=["entries", "bytes", "compacted"])


def forget_old(kept_days: int) -> int:
    """Delete the sessions to which nothing was added for so many days; returns the number of rows."""
    before = db_now() - timedelta(days=kept_days)
    return batches.delete(SessionLog.objects.filter(last_entry_at__lt=before, created_at__lt=before), at_once=50)


def _find_places(records: Sequence[PlacedEntry], now: datetime) -> Mapping[tuple[_Key, str], _Key]:
    """The session for each first id and writer: a further one where the gateway's own takes no more entries."""
    places: dict[tuple[_Key, str], _Key] = {}
    chosen_by_gateway: set[tuple[_Key, str]] = set()
    for place in {record.place for record in records}:
        for agent in place.agents:
            key = _Key(place.owner_id, agent, place.base_id)
            places[key, place.writer] = key
            if not place.session_id:
                chosen_by_gateway.add((key, place.writer))
    firsts = _load_logs({key for key, _ in chosen_by_gateway})
    ttls = {owner_id: find_ttl_s(owner_id) for owner_id in {key.owner_id for key in firsts}}
    for key, writer in chosen_by_gateway:
        if key in firsts and not _is_writable(firsts[key], ttls[key.owner_id], writer, now):
            places[key, writer] = _find_open(key, writer, now)
    return places


def _load_logs(keys: set[_Key]) -> dict[_Key, SessionLog]:
    """The rows of these sessions that are there."""
    found = SessionLog.objects.filter(
        owner_id__in={key.owner_id for key in keys},
        agent__in={key.agent for key in keys},
        session_id__in={key.session_id for key in keys},
    )
    logs = {_Key(log.owner_id, log.agent, log.session_id): log for log in found}
    return {key: log for key, log in logs.items() if key in keys}


def _is_writable(log: SessionLog, ttl_s: int | None, writer: str, now: datetime) -> bool:
    try:
        check_writable(log, ttl_s, writer, now)
    except FrameRefused:
        return False
    return True


def _find_open(key: _Key, writer: str, now: datetime) -> _Key:
    """The newest session that the gateway keeps for a pair, or a new one when that takes no more entries."""
    named = Q(session_id=key.session_id) | Q(session_id__startswith=f"{key.session_id}-")
    log = SessionLog.objects.filter(named, owner_id=key.owner_id, agent=key.agent).order_by("-pk").first()
    if log is None:
        return key
    if _is_writable(log, find_ttl_s(key.owner_id), writer, now):
        return key._replace(session_id=log.session_id)
    return key._replace(session_id=f"{key.session_id}-{now_ms()}")


def _lock_logs(keys: set[_Key], now: datetime) -> dict[_Key, SessionLog]:
    """The rows of these sessions, made where they are not there, and locked in the order of their keys."""
    logs: dict[_Key, SessionLog] = {}
    while len(logs) < len(keys):  # again when one is deleted between the statements
        there = _load_logs(keys)
        SessionLog.objects.bulk_create(
            [
                SessionLog(**key._asdict(), created_at=now, last_entry_at=now)
                for key in sorted(keys - there.keys())
            ],
            ignore_conflicts=True,
        )
        wanted = [log.pk for log in _load_logs(keys).values()]
        found = SessionLog.objects.filter(pk__in=wanted).order_by("pk").select_for_update(no_key=True)
        logs = {_Key(log.owner_id, log.agent, log.session_id): log for log in found}
    return logs


def _trim(owner_id: int, now: datetime) -> None:
    logs = SessionLog.objects.filter(owner_id=owner_id)
    held = logs.aggregate(sessions=Count("pk"), size=Sum("bytes", default=0))
    sessions, size = held["sessions"], held["size"]
    most, most_bytes = limits.TEAM_SESSIONS.most, limits.TEAM_SESSIONS_TEXT.most
    if sessions <= most and size <= most_bytes:
        return
    archived = logs.filter(state=SessionLog.State.ARCHIVED).order_by("last_entry_at", "pk")
    others = logs.exclude(state=SessionLog.State.ARCHIVED).filter(last_entry_at__lt=now)
    oldest = [*archived[:TRIMMED_AT_ONCE], *others.order_by("last_entry_at", "pk")[:TRIMMED_AT_ONCE]]
    for log in oldest[:TRIMMED_AT_ONCE]:
        if sessions <= most and size <= most_bytes:
            return
        log.delete()
        sessions, size = sessions - 1, size - log.bytes


PAUSE_S = 0.25  # on SQLite each batch takes the one write lock, which turns need, too
MAX_WAITING_BYTES = 33_554_432
MAX_AT_ONCE = 200  # messages of a transaction


class SessionRecorder(BatchWriter[PlacedEntry]):
    """The messages of one process that are yet to be written; the size of an item is in bytes.

    A process that ends while the database is away leaves the rest to another process.
    """

    def __init__(
        self,
        process_id: str,
        write_records: Callable[[Sequence[PlacedEntry]], object] = write_or_log,
        retry_s: float = RETRY_S,
    ) -> None:
        super().__init__(
            "sessions",
            write_records,
            at_once=MAX_AT_ONCE,
            pause_s=PAUSE_S,
            most_waiting=MAX_WAITING_BYTES,
            retry_s=retry_s,
        )
        self.process_id = process_id


class Recording:
    """The entries of one message and its reply, in the sessions of the message. `key`: no other message has it.

    The message queue or the ledger runs the statement that `hold_message` makes, in the transaction of the
    message; then `add_message` passes the entry on to the recorder. `RecordedTurn` does the same with the reply.
    """

    def __init__(self, recorder: SessionRecorder, message: RoutedMessage, key: str) -> None:
        self.key = key
        self.routed = message
        self.process_id = recorder.process_id
        self._recorder = recorder
        self._message: PlacedEntry | None = None

    def hold_message(self) -> sql.Query | None:
        """Make the entry of the message; the statement that holds it, None when it belongs in no session."""
        envelope = self.routed.envelope
        role, stamp_ms = envelope.content.get("role", "user"), envelope.timestamp_ms or now_ms()
        self._message = self.place("message", role, envelope.said, envelope.id, stamp_ms)
        return hold(self._message, self.process_id) if self._message is not None else None

    async def add_message(self) -> None:
        """Pass the message on to the recorder, after the commit of its row."""
        if self._message is not None:
            await self.add(self._message)

    def place(self, part: str, role: str, content: object, entry_id: str, stamp_ms: int) -> PlacedEntry | None:
        """Make an entry; None when the message belongs in no session."""
        if self.routed.place is None:
            return None
        entry = LogEntry(timestamp_ms=stamp_ms, role=role, content=content, id=entry_id)
        return PlacedEntry(self.routed.place, entry, f"{self.key}-{part}", seal_content(content))

    async def add(self, entry: PlacedEntry) -> None:
        """Pass an entry on to the recorder, after the commit of its row."""
        self._recorder.put(entry, len(entry.sealed))
        await self._recorder.wait_for_room()


class RecordedTurn(RunningTurn):
    """The turn of a message; a reply that the sender wants becomes an entry of the sessions of the message."""

    def __init__(self, ask: Ask, recording: Recording) -> None:
        super().__init__(ask)
        self._recording = recording
        self._reply: PlacedEntry | None = None

    def extra_writes(self, settled: SettledTurn) -> Sequence[sql.Query]:
        """Make the entry of the reply; the statement that holds it."""
        recording, self._reply = self._recording, None
        if recording.routed.wants_response and settled.outcome is Outcome.COMPLETED:
            self._reply = recording.place("reply", "agent", content_of(self, settled), reply_id(self), now_ms())
        return [hold(self._reply, recording.process_id)] if self._reply is not None else []

    def keep_end(self, settled: SettledTurn) -> Coroutine[Any, Any, None] | None:
        """Pass the reply on to the recorder. The task that waits for the turn sends the reply."""
        if settled.has_extra_writes and self._reply is not None:
            return self._recording.add(self._reply)
        return None
