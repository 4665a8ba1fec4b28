"""Exports a session as `session.jsonl`, and imports the sessions of a file: all of them or none.

An export is one session: a header with the number of its entries and the SHA-256 of their lines, then the lines. A
plain file has no header, and may hold several sessions; its last line may be torn.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import msgspec
from django.db import transaction
from msgspec import Struct

from gateway import limits
from gateway.models import SessionEntry, SessionLog
from gateway.service.session_entries import LogEntry, make_row, seal_content
from gateway.service.session_recording import MAX_ENTRIES, MAX_SESSION_BYTES
from gateway.service.session_rows import SessionUser, check_agent, get_session, read_entries
from gateway.wire.errors import FrameRefused, GatewayErrorCode, bad_content
from gateway.wire.frame_types import ROLES, is_agent_name, is_id, read_time_ms
from kit import strict_json
from kit.clock import db_now, unix_ms
from kit.ids import unguessable
from kit.strict_json import UnreadableText

EXPORT_VERSION = 1
MAX_LINE_BYTES = 1_048_576
MAX_SESSIONS = 1_000  # of a file
MAX_LINES = 200_000  # lines of a file: ten million empty lines would take a gigabyte of memory
MAX_FILE_BYTES = 10_485_760
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ReadSession(Struct, frozen=True):
    """A session of a file: whose it was and its id there, and its entries, of those with the same id the first."""

    agent: str
    session_id: str
    entries: Sequence[LogEntry]


def write_export(agent: str, session_id: str, entries: Sequence[LogEntry]) -> bytes:
    """A session as an export."""
    lines = b"".join(entry.line(session_id) for entry in entries)
    header = {
        "export": EXPORT_VERSION,
        "agent": agent,
        "sessionId": session_id,
        "entries": len(entries),
        "sha256": sha256(lines).hexdigest(),
    }
    return msgspec.json.encode(header) + b"\n" + lines


def read_file(data: bytes, agent: str, index: bytes = b"") -> list[ReadSession]:
    """The sessions of an export or of a plain file. `index`: the `sessions.json` that belongs to the file.

    A plain file does not say whose it is: it counts as the file of `agent`. Lines without a session id get the one
    that the index has under the key `agent:{agent}:main`.

    Raises:
        FrameRefused: 4004, a line is wrong: nothing of the file counts; 2005, it has too many.
    """
    if data.count(b"\n") > MAX_LINES:
        raise bad_content(f"a file has at most {MAX_LINES} lines", reason="too_large")
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    last = lines.pop()  # empty, unless the file ends in the middle of a line
    first = _read_line(lines[0], 1) if lines else None
    if isinstance(first, dict) and "export" in first:
        if last.strip():
            raise _corrupt("the last line has no end", len(lines) + 1)
        return [_read_export(first, lines[1:])]
    source, session_id = _read_index(index, agent)
    numbered = list(enumerate(lines, 1))
    if last.strip() and (torn := _read_torn(last)) is not None:
        numbered.append((len(lines) + 1, torn))
    return _group(source, _read_lines(numbered, session_id))


def _read_export(header: Mapping[str, Any], lines: Sequence[bytes]) -> ReadSession:
    if header["export"] != EXPORT_VERSION or isinstance(header["export"], bool):
        raise _corrupt(f"export: this hub reads version {EXPORT_VERSION}", 1)
    agent, session_id = header.get("agent"), header.get("sessionId")
    if not isinstance(agent, str) or not is_agent_name(agent):
        raise _corrupt("agent: want the name of an agent", 1)
    if not isinstance(session_id, str) or not is_id(session_id):
        raise _corrupt("sessionId: want 1 to 128 printable characters", 1)
    if header.get("entries") != len(lines) or isinstance(header["entries"], bool):
        raise _corrupt("entries: the file has another number of them", 1)
    if header.get("sha256") != sha256(b"".join(line + b"\n" for line in lines)).hexdigest():
        raise _corrupt("sha256: the entries were changed", 1)
    read = list(_read_lines(list(enumerate(lines, 2)), session_id))
    for number, (found, _) in enumerate(read, 2):
        if found != session_id:
            raise _corrupt("sessionId: an export is one session", number)
    return ReadSession(agent, session_id, _without_twins([entry for _, entry in read]))


def _read_index(index: bytes, agent: str) -> tuple[str, str]:
    """The agent of the file, and the session id of lines that have none; without an index there is no such id."""
    if not index:
        return agent, ""
    entries = _read_line(index, 0)
    if not isinstance(entries, dict):
        raise _corrupt("the index is no object", 0)
    mains = {key.split(":")[1]: entry for key, entry in entries.items() if _is_main(key)}
    source = agent if agent in mains else next(iter(mains), "")
    found = mains.get(source)
    session_id = found.get("sessionId") if isinstance(found, dict) else found
    if len(mains) > 1 and source != agent:
        raise _corrupt(f"the index has several agents, and none is {agent}", 0)
    if not isinstance(session_id, str) or not is_id(session_id):
        raise _corrupt(f"the index has no session id at agent:{agent}:main", 0)
    return source, session_id


def _is_main(key: str) -> bool:
    parts = key.split(":")
    return len(parts) == 3 and parts[0] == "agent" and parts[2] == "main" and is_agent_name(parts[1])


def _read_torn(line: bytes) -> bytes | None:
    """The last line, if only its line end is missing; None if a crash cut the line off."""
    try:
        _read_line(line, 0)
    except FrameRefused:
        return None
    return line


def _read_lines(lines: Sequence[tuple[int, bytes]], session_id: str) -> Iterator[tuple[str, LogEntry]]:
    """The session id and entry of each line; `session_id`: of lines without one."""
    for number, line in lines:
        value = _read_line(line, number)
        if not isinstance(value, dict):
            raise _corrupt("a line is an object", number)
        found = value.get("sessionId", session_id or None)
        if not isinstance(found, str) or not is_id(found):
            raise _corrupt("sessionId: want 1 to 128 printable characters", number)
        yield found, _read_entry(value, number)


def _read_entry(value: Mapping[str, Any], number: int) -> LogEntry:
    entry_id = value.get("id", "")
    if not isinstance(entry_id, str) or (entry_id and not is_id(entry_id)):
        raise _corrupt("id: want 1 to 128 printable characters", number)
    if not isinstance(role := value.get("role"), str) or role not in ROLES:
        raise _corrupt(f"role: want one of {', '.join(sorted(ROLES))}", number)
    if not isinstance(content := value.get("content"), str | dict):
        raise _corrupt("content: want a string or an object", number)
    timestamp_ms = read_time_ms(value.get("timestamp"))
    if timestamp_ms is None:
        raise _corrupt("timestamp: want milliseconds, or a time as ISO 8601", number)
    return LogEntry(timestamp_ms=timestamp_ms, role=role, content=content, id=entry_id)


def _read_line(line: bytes, number: int) -> Any:
    if len(line) > MAX_LINE_BYTES:
        raise _corrupt(f"a line has at most {MAX_LINE_BYTES} bytes", number)
    try:
        return strict_json.read(line)
    except UnreadableText as wrong:
        raise _corrupt(str(wrong), number) from None


def _group(agent: str, read: Iterator[tuple[str, LogEntry]]) -> list[ReadSession]:
    sessions: dict[str, list[LogEntry]] = {}
    for session_id, entry in read:
        sessions.setdefault(session_id, []).append(entry)
        if len(sessions) > MAX_SESSIONS:
            raise bad_content(f"a file has at most {MAX_SESSIONS} sessions")
    return [ReadSession(agent, key, _without_twins(entries)) for key, entries in sessions.items()]


def _without_twins(entries: Sequence[LogEntry]) -> list[LogEntry]:
    kept: dict[str | int, LogEntry] = {}
    for index, entry in enumerate(entries):
        kept.setdefault(entry.id or index, entry)
    return list(kept.values())


def _corrupt(text: str, number: int) -> FrameRefused:
    field = f"line {number}" if number else "index"
    return FrameRefused(GatewayErrorCode.SESSION_CORRUPT, f"{field}: {text}", field=field)


class ReadySession(Struct, frozen=True):
    """A session of a file, with its entries as rows that have no log yet."""

    read: ReadSession
    rows: Sequence[SessionEntry]

    @property
    def size(self) -> int:
        """The size of the export in bytes."""
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
        FrameRefused: 3001, 5004, 4004; 2005 when it is too much. The hub imported nothing.
    """
    check_agent(user, agent)
    if len(data) + len(index) > MAX_FILE_BYTES:
        raise bad_content(f"a file has at most {MAX_FILE_BYTES} bytes", reason="too_large")
    ready = [_prepare(read) for read in read_file(data, agent, index)]
    if not ready:
        raise FrameRefused(GatewayErrorCode.SESSION_CORRUPT, "the file has no whole line")
    with transaction.atomic():
        limits.TEAM_SESSIONS.check(user.owner_id, len(ready))
        limits.TEAM_SESSIONS_TEXT.check(user.owner_id, sum(one.size for one in ready))
        now = db_now()
        return [_import(user, agent, one, now) for one in ready]


def _prepare(read: ReadSession) -> ReadySession:
    rows = [make_row(0, read.session_id, entry, seal_content(entry.content)) for entry in read.entries]
    one = ReadySession(read, rows)
    if len(rows) > MAX_ENTRIES or one.size > MAX_SESSION_BYTES:
        text = f"a session has at most {MAX_ENTRIES} entries, and {MAX_SESSION_BYTES} bytes"
        raise bad_content(text, reason="too_large")
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
