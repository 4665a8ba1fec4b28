"""Finds sessions and changes their state. Each function is one transaction at most."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q
from msgspec import Struct

from gateway import limits
from gateway.models import SessionEntry, SessionLog
from gateway.service.sessions.access import SessionUser, check_agent, get_session
from gateway.service.sessions.entries import Entry, read_row
from gateway.wire.errors import ErrorCode, FrameRefused
from kit.clock import db_now
from kit.ids import unguessable

MOST_LISTED = 500
PAGE_BYTES = 524_288
LONGEST_LOCK = timedelta(minutes=5)
READ_TRIES = 3
REPORTED = 200  # sessions that one call archives or reports

_AGE = re.compile(r"([0-9]{1,6})([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class SessionPage(Struct, frozen=True):
    """Sessions of a list. `next_after`: from where the next page goes on, 0: there is none."""

    logs: Sequence[SessionLog]
    next_after: int


class EntryPage(Struct, frozen=True):
    """Entries of a session, each with its position. `next_after`: the last one's, 0: these are the last."""

    log: SessionLog
    entries: Sequence[tuple[int, Entry]]
    next_after: int


class Archived(Struct, frozen=True):
    """The result of archiving. `skipped`: at most REPORTED sessions with each reason, `active` or `locked`."""

    archived: Sequence[SessionLog]
    skipped: Sequence[tuple[SessionLog, str]]


@transaction.atomic
def create_session(user: SessionUser, agent: str, session_id: str = "", lock_ms: int = 0) -> SessionLog:
    """A new, empty session. `session_id` empty: it gets an id. `lock_ms`: the user is its one writer so long.

    Raises:
        FrameRefused: 3001, 5004; 2005 when the id is taken, or the team has as many sessions as it may.
    """
    check_agent(user, agent)
    limits.TEAM_SESSIONS.check(user.owner_id)
    limits.TEAM_SESSIONS_TEXT.check(user.owner_id, 0)
    session_id = session_id or unguessable("s-")
    now = db_now()
    log, is_new = SessionLog.objects.get_or_create(
        owner_id=user.owner_id,
        agent=agent,
        session_id=session_id,
        defaults={
            "created_at": now,
            "last_entry_at": now,
            "locked_by": user.writer if lock_ms else "",
            "locked_until": _lock_until(lock_ms, now),
        },
    )
    if not is_new:
        text = "the agent has a session of that id"
        raise FrameRefused(ErrorCode.INVALID_CONTENT, text, field="sessionId", reason="id_taken")
    return log


def list_sessions(
    user: SessionUser, agent: str = "", *, archived: bool = False, limit: int = 100, after: int = 0
) -> SessionPage:
    """The sessions of an agent, or of all that the user may see, oldest first; archived ones only if wanted.

    Raises:
        FrameRefused: 3001, 5004.
    """
    agent = agent or user.agent
    if agent:
        check_agent(user, agent)
    found = SessionLog.objects.filter(owner_id=user.owner_id, **({"agent": agent} if agent else {}))
    if not archived:
        found = found.exclude(state=SessionLog.State.ARCHIVED)
    rows = list(found.filter(pk__gt=after).order_by("pk")[: limit + 1])
    return SessionPage(rows[:limit], rows[limit - 1].pk if len(rows) > limit else 0)


def get_entries(user: SessionUser, agent: str, session_id: str, *, limit: int = 100, after: int = 0) -> EntryPage:
    """Entries of a session in the order in which they were written, at most about PAGE_BYTES.

    Raises:
        FrameRefused: 3001, 5004, 4001, 4004.
    """
    log = get_session(user, agent, session_id)
    taken: list[tuple[int, Entry]] = []
    size = 0
    rows = list(SessionEntry.objects.filter(log=log, pk__gt=after).order_by("pk")[: limit + 1])
    for row in rows[:limit]:
        size += row.bytes
        if taken and size > PAGE_BYTES:
            break
        taken.append((row.pk, read_row(row)))
    return EntryPage(log, taken, taken[-1][0] if len(taken) < len(rows) else 0)


def commit_session(user: SessionUser, agent: str, session_id: str, lock_ms: int = 0) -> SessionLog:
    """Check that a session is whole, and mark it as committed; again is fine. Sets the lock, or ends it.

    Raises:
        FrameRefused: 3001, 5004, 4001, 4003, 4004.
    """
    read_entries(get_session(user, agent, session_id))
    with transaction.atomic():
        log = get_session(user, agent, session_id, writes=True)
        now = db_now()
        if log.state == SessionLog.State.ACTIVE:
            log.state, log.committed_at = SessionLog.State.COMMITTED, now
        log.locked_until = _lock_until(lock_ms, now)
        log.locked_by = user.writer if lock_ms else ""
        log.save(update_fields=["state", "committed_at", "locked_by", "locked_until"])
    return log


@transaction.atomic
def archive_session(user: SessionUser, agent: str, session_id: str) -> SessionLog:
    """Archive one session, whatever its age; again is fine.

    Raises:
        FrameRefused: 3001, 5004, 4001, 4003.
    """
    log = get_session(user, agent, session_id, writes=True)
    _archive([log], db_now())
    return log


@transaction.atomic
def archive_older(user: SessionUser, agent: str, older_than: timedelta) -> Archived:
    """Archive the sessions whose last entry is older, of an agent or of all that the user may see.

    Raises:
        FrameRefused: 3001, 5004.
    """
    agent = agent or user.agent
    if agent:
        check_agent(user, agent)
    now = db_now()
    found = SessionLog.objects.filter(owner_id=user.owner_id, **({"agent": agent} if agent else {}))
    kept = found.exclude(state=SessionLog.State.ARCHIVED).order_by("last_entry_at", "pk")
    old = kept.filter(last_entry_at__lt=now - older_than)
    locked = _locked_for(user, now)
    young = kept.exclude(last_entry_at__lt=now - older_than)
    skipped = [(log, "locked") for log in old.filter(locked)[:REPORTED]]
    skipped += [(log, "active") for log in young[: REPORTED - len(skipped)]]
    done = list(old.exclude(locked).select_for_update()[:REPORTED])
    _archive(done, now)
    return Archived(done, skipped)


@transaction.atomic
def delete_session(user: SessionUser, agent: str, session_id: str) -> None:
    """Delete a session with its entries.

    Raises:
        FrameRefused: 3001, 5004, 4001, 4003.
    """
    get_session(user, agent, session_id, writes=True).delete()


def read_entries(log: SessionLog) -> list[Entry]:
    """The entries that a session had when its row was read, in order.

    Raises:
        FrameRefused: 4004, one cannot be read, or some are missing.
    """
    for _ in range(READ_TRIES):
        rows = list(SessionEntry.objects.filter(log=log).order_by("pk")[: log.entries])
        if len(rows) == log.entries:
            return [read_row(row) for row in rows]
        # It was compacted meanwhile, if the numbers agree the next time.
        log.refresh_from_db(fields=["entries", "compacted"])
    text = "this session has not as many entries as were written"
    raise FrameRefused(ErrorCode.SESSION_CORRUPT, text, reason="entries_missing")


def read_age(text: str) -> timedelta:
    """An age such as `7d`: a whole number of s, m, h, d or w.

    Raises:
        FrameRefused: 2005.
    """
    found = _AGE.fullmatch(text)
    if found is None or not int(found[1]):
        wanted = "olderThan: want a number above 0 and a unit of s, m, h, d or w, such as 7d"
        raise FrameRefused(ErrorCode.INVALID_CONTENT, wanted, field="olderThan")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def _lock_until(lock_ms: int, now: datetime) -> datetime | None:
    return now + min(timedelta(milliseconds=lock_ms), LONGEST_LOCK) if lock_ms else None


def _locked_for(user: SessionUser, now: datetime) -> Q:
    return Q(locked_until__gt=now) & ~Q(locked_by=user.writer)


def _archive(logs: Sequence[SessionLog], now: datetime) -> None:
    archived = SessionLog.objects.filter(pk__in=[log.pk for log in logs]).exclude(state=SessionLog.State.ARCHIVED)
    archived.update(state=SessionLog.State.ARCHIVED, archived_at=now, locked_by="", locked_until=None)
    for log in logs:
        log.state = SessionLog.State.ARCHIVED
