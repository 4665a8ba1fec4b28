"""Exports a session, and imports the sessions of a file: all of them or none."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from django.db import transaction
from msgspec import Struct

from gateway import limits
from gateway.models import SessionEntry, SessionLog
from gateway.service.sessions.access import SessionUser, check_agent, get_session
from gateway.service.sessions.entries import make_row, seal_content
from gateway.service.sessions.jsonl import ReadSession, read_file, write_export
from gateway.service.sessions.rows import read_entries
from gateway.service.sessions.writing import MOST_ENTRIES, MOST_SESSION_BYTES
from gateway.wire.errors import ErrorCode, FrameRefused
from kit.clock import db_now, unix_ms
from kit.ids import unguessable

MAX_FILE_BYTES = 10_485_760
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ReadySession(Struct, frozen=True):
    """A session of a file, with its entries as rows that have no log yet."""

    read: ReadSession
    rows: Sequence[SessionEntry]

    @property
    def size(self) -> int:
        """In bytes, as exported."""
        return sum(row.bytes for row in self.rows)


def export_session(user: SessionUser, agent: str, session_id: str) -> bytes:
    """A session as `session.jsonl` with a header.

    Raises:
        FrameRefused: 3001, 5004, 4001, 4004.
    """
    log = get_session(user, agent, session_id)
    return write_export(agent, session_id, read_entries(log))


def import_sessions(user: SessionUser, agent: str, data: bytes, index: bytes = b"") -> list[SessionLog]:
    """Import the sessions of a file for an agent, as committed ones; those whose id is taken get a new one.

    Raises:
        FrameRefused: 3001, 5004, 4004; 2005 when it is too much. Nothing was imported.
    """
    check_agent(user, agent)
    if len(data) + len(index) > MAX_FILE_BYTES:
        raise FrameRefused(
            ErrorCode.INVALID_CONTENT, f"a file has at most {MAX_FILE_BYTES} bytes", reason="too_large"
        )
    ready = [_prepare(read) for read in read_file(data, agent, index)]
    if not ready:
        raise FrameRefused(ErrorCode.SESSION_CORRUPT, "the file has no whole line")
    with transaction.atomic():
        limits.TEAM_SESSIONS.check(user.owner_id, len(ready))
        limits.TEAM_SESSIONS_TEXT.check(user.owner_id, sum(one.size for one in ready))
        now = db_now()
        return [_import(user, agent, one, now) for one in ready]


def _prepare(read: ReadSession) -> ReadySession:
    rows = [make_row(0, read.session_id, entry, seal_content(entry.content)) for entry in read.entries]
    one = ReadySession(read, rows)
    if len(rows) > MOST_ENTRIES or one.size > MOST_SESSION_BYTES:
        text = f"a session has at most {MOST_ENTRIES} entries, and {MOST_SESSION_BYTES} bytes"
        raise FrameRefused(ErrorCode.INVALID_CONTENT, text, reason="too_large")
    return one


def _import(user: SessionUser, agent: str, one: ReadySession, now: datetime) -> SessionLog:
    values = {
        "state": SessionLog.State.COMMITTED,
        "entries": len(one.rows),
        "bytes": one.size,
        "created_at": now,
        "committed_at": now,
        "last_entry_at": _last_entry_at(one, now),
        "imported_from": f"{one.read.agent}:{one.read.session_id}",
    }
    for session_id in (one.read.session_id, unguessable("s-")):
        log, is_new = SessionLog.objects.get_or_create(
            owner_id=user.owner_id, agent=agent, session_id=session_id, defaults=values
        )
        if is_new:
            break
    for row in one.rows:
        row.log = log
    SessionEntry.objects.bulk_create(one.rows, batch_size=500)
    return log


def _last_entry_at(one: ReadySession, now: datetime) -> datetime:
    """When the session got its last entry, as the entry says: between 1970 and now."""
    if not one.rows:
        return now
    return _EPOCH + timedelta(milliseconds=min(max(one.rows[-1].timestamp_ms, 0), unix_ms(now)))
