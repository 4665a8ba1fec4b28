"""Writes what agents said to their sessions, many messages at once, and keeps sessions within limits."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db import transaction
from django.db.models import F, Q

from gateway.errors import FrameRefused
from gateway.frames import now_ms
from gateway.models import SessionEntry, SessionLog
from gateway.sessions.access import MOST_SESSIONS, MOST_TEAM_BYTES, check_writable, count_held, find_ttl_s
from gateway.sessions.entries import Entry, Record, make_row, seal_content
from kit import batches
from kit.clock import db_now

MOST_ENTRIES = 10_000  # of a session
MOST_SESSION_BYTES = 8 * 1024 * 1024
TRIMMED_AT_ONCE = 20
COMPACTED_ID = "compacted"


class _Key(NamedTuple):
    owner_id: int
    agent: str
    session_id: str


def write_records(records: Sequence[Record]) -> None:
    """Add messages to the sessions of their agents, in this order; a session that is not there is made.

    A session that has too many entries is compacted. A team that has too many sessions loses those to which
    nothing was added for longest, archived ones first.
    """
    _write(records, [seal_content(record.entry.content) for record in records])


@transaction.atomic
def _write(records: Sequence[Record], sealed: Sequence[str]) -> None:
    now = db_now()
    places = _find_places(records, now)
    logs = _lock_logs(set(places.values()), now)
    rows: dict[int, list[SessionEntry]] = {}
    for record, content in zip(records, sealed, strict=True):
        place = record.place
        for agent in place.agents:
            log = logs[places[_Key(place.owner_id, agent, place.base_id), place.writer]]
            rows.setdefault(log.pk, []).append(make_row(log.pk, log.session_id, record.entry, content))
    SessionEntry.objects.bulk_create([row for added in rows.values() for row in added])
    for log in logs.values():
        add_counts(log, rows[log.pk], now)
    for owner_id in {record.place.owner_id for record in records}:
        _trim(owner_id, now)


def add_counts(log: SessionLog, added: Sequence[SessionEntry], now: datetime) -> None:
    """Count new entries of a session, and compact it when it has too many."""
    size = sum(row.bytes for row in added)
    # A session that was committed is open again: it has entries that were not.
    is_committed = log.state == SessionLog.State.COMMITTED
    reopened = {"state": SessionLog.State.ACTIVE} if is_committed else {}
    found = SessionLog.objects.filter(pk=log.pk)
    found.update(entries=F("entries") + len(added), bytes=F("bytes") + size, last_entry_at=now, **reopened)
    if log.entries + len(added) > MOST_ENTRIES or log.bytes + size > MOST_SESSION_BYTES:
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
        if entries <= MOST_ENTRIES // 2 and size <= MOST_SESSION_BYTES // 2:
            break
        gone.append(key)
        entries, size = entries - 1, size - row_bytes
    was_compacted = first[2] == COMPACTED_ID and log.compacted > 0
    count = log.compacted + len(gone) - was_compacted
    text = f"{count} earlier entries of this session were removed: it had too many"
    entry = Entry(timestamp_ms=now_ms(), role="system", content=text, id=COMPACTED_ID)
    summary = make_row(log.pk, log.session_id, entry, seal_content(text))
    summary.pk = first[0]  # in the place of the first: entries are in the order of their keys
    summary.save(force_update=True)
    SessionEntry.objects.filter(pk__in=gone[1:]).delete()
    log.entries, log.bytes, log.compacted = entries + 1, size + summary.bytes, count
    log.save(update_fields=["entries", "bytes", "compacted"])


def forget_old(kept_days: int) -> int:
    """Delete the sessions to which nothing was added for so many days; how many rows went."""
    before = db_now() - timedelta(days=kept_days)
    return batches.delete(SessionLog.objects.filter(last_entry_at__lt=before, created_at__lt=before), at_once=50)


def _find_places(records: Sequence[Record], now: datetime) -> Mapping[tuple[_Key, str], _Key]:
    """The session for each first id and writer: a further one where the gateway's own takes no more entries."""
    places: dict[tuple[_Key, str], _Key] = {}
    for place in {record.place for record in records}:
        for agent in place.agents:
            key = _Key(place.owner_id, agent, place.base_id)
            chosen = key if place.session_id else _find_open(key, place.writer, now)
            places[key, place.writer] = chosen
    return places


def _find_open(key: _Key, writer: str, now: datetime) -> _Key:
    """The newest session that the gateway keeps for a pair, or a new one when that takes no more entries."""
    named = Q(session_id=key.session_id) | Q(session_id__startswith=f"{key.session_id}-")
    log = SessionLog.objects.filter(named, owner_id=key.owner_id, agent=key.agent).order_by("-pk").first()
    if log is None:
        return key
    try:
        check_writable(log, find_ttl_s(key.owner_id), writer, now)
    except FrameRefused:
        return key._replace(session_id=f"{key.session_id}-{now_ms()}")
    return key._replace(session_id=log.session_id)


def _lock_logs(keys: set[_Key], now: datetime) -> dict[_Key, SessionLog]:
    """The rows of these sessions, made where they are not there, and locked in the order of their keys."""
    wanted = Q()
    for key in keys:
        wanted |= Q(**key._asdict())
    logs: dict[_Key, SessionLog] = {}
    while len(logs) < len(keys):  # again when one is deleted between the two statements
        SessionLog.objects.bulk_create(
            [SessionLog(**key._asdict(), created_at=now, last_entry_at=now) for key in sorted(keys)],
            ignore_conflicts=True,
        )
        found = SessionLog.objects.filter(wanted).order_by("pk").select_for_update(no_key=True)
        logs = {_Key(log.owner_id, log.agent, log.session_id): log for log in found}
    return logs


def _trim(owner_id: int, now: datetime) -> None:
    logs = SessionLog.objects.filter(owner_id=owner_id)
    sessions, size = count_held(logs)
    if sessions <= MOST_SESSIONS and size <= MOST_TEAM_BYTES:
        return
    archived = logs.filter(state=SessionLog.State.ARCHIVED).order_by("last_entry_at", "pk")
    others = logs.exclude(state=SessionLog.State.ARCHIVED).filter(last_entry_at__lt=now)
    oldest = [*archived[:TRIMMED_AT_ONCE], *others.order_by("last_entry_at", "pk")[:TRIMMED_AT_ONCE]]
    for log in oldest[:TRIMMED_AT_ONCE]:
        if sessions <= MOST_SESSIONS and size <= MOST_TEAM_BYTES:
            return
        log.delete()
        sessions, size = sessions - 1, size - log.bytes
