"""Sessions as services and REST show them, and the parameters that they take."""

from typing import Any

from gateway.models import SessionLog
from gateway.service.sessions.rows import LONGEST_LOCK, MOST_LISTED, Archived, EntryPage, SessionPage
from gateway.wire.errors import ErrorCode, FrameRefused
from gateway.wire.frame_types import is_agent_name, is_id
from gateway.wire.frames import Json
from kit.clock import unix_ms

LONGEST_LOCK_MS = int(LONGEST_LOCK.total_seconds() * 1000)
DEFAULT_LISTED = 100


def show_session(log: SessionLog) -> Json:
    """One session. Times are Unix milliseconds."""
    shown: Json = {
        "id": log.session_id,
        "agent": log.agent,
        "entries": log.entries,
        "createdAt": unix_ms(log.created_at),
        "lastActivity": unix_ms(log.last_entry_at),
        "state": log.state,
    }
    more = {"importedFrom": log.imported_from, "compacted": log.compacted}
    return shown | {key: value for key, value in more.items() if value}


def show_sessions(found: SessionPage) -> Json:
    """Sessions of a list."""
    return {"sessions": [show_session(log) for log in found.logs], **_next(found.next_after)}


def show_entries(found: EntryPage) -> Json:
    """Entries of a session."""
    log = found.log
    entries = [entry.show(log.session_id) for _, entry in found.entries]
    return {"session": show_session(log), "entries": entries, **_next(found.next_after)}


def show_archived(done: Archived) -> Json:
    """The result of archiving."""
    skipped = [{"id": log.session_id, "agent": log.agent, "reason": reason} for log, reason in done.skipped]
    return {"archived": [show_session(log) for log in done.archived], "skipped": skipped}


def read_agent(params: Json, default: str = "") -> str:
    """The name of an agent; `default` when there is none.

    Raises:
        FrameRefused: 2002, 2003, 2005.
    """
    name = read_text(params, "agent", default)
    if not is_agent_name(name):
        raise FrameRefused(ErrorCode.INVALID_CONTENT, "agent: want the name of an agent", field="agent")
    return name


def read_id(params: Json) -> str:
    """The id of a session.

    Raises:
        FrameRefused: 2002, 2003, 2005.
    """
    session_id = read_text(params, "sessionId")
    if not is_id(session_id):
        text = "sessionId: want 1 to 128 printable characters"
        raise FrameRefused(ErrorCode.INVALID_CONTENT, text, field="sessionId")
    return session_id


def read_text(params: Json, name: str, default: str = "") -> str:
    """A text.

    Raises:
        FrameRefused: 2002 when it is absent without a default; 2003.
    """
    value: Any = params.get(name, default or None)
    if value is None:
        raise FrameRefused(ErrorCode.MISSING_FIELD, f"{name} is missing", field=name)
    if not isinstance(value, str):
        raise FrameRefused(ErrorCode.INVALID_TYPE, f"{name}: want a string", field=name)
    return value


def read_number(params: Json, name: str, default: int, most: int) -> int:
    """A whole number from 0 to `most`.

    Raises:
        FrameRefused: 2003, 2005.
    """
    value: Any = params.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise FrameRefused(ErrorCode.INVALID_TYPE, f"{name}: want a whole number", field=name)
    if not 0 <= value <= most:
        raise FrameRefused(ErrorCode.INVALID_CONTENT, f"{name}: want 0 to {most}", field=name)
    return value


def read_limit(params: Json) -> int:
    """How many rows a page has, at least 1.

    Raises:
        FrameRefused: 2003, 2005.
    """
    return max(1, read_number(params, "limit", DEFAULT_LISTED, MOST_LISTED))


def _next(after: int) -> Json:
    return {"next": after} if after else {}
