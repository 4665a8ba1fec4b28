"""The sessions of a team: who may read and change them, whether they take entries, and their states.

Each function is one transaction at most.
"""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q, QuerySet
from msgspec import Struct

from agents.models import Session
from gateway import limits
from gateway.models import SessionEntry, SessionLog, TeamAgent, TeamPolicy
from gateway.service.seat import GATEWAY_LINK
from gateway.service.session_entries import LogEntry, Place, read_row
from gateway.wire.errors import NOT_FOUND, FrameRefused, GatewayErrorCode, bad_content, forbidden
from gateway.wire.frames import Json
from kit.clock import db_now, unix_ms
from kit.ids import unguessable

MAX_LISTED = 500
PAGE_BYTES = 524_288
LONGEST_LOCK = timedelta(minutes=5)
READ_TRIES = 3
REPORTED = 200  # sessions that one call archives or reports

_AGE = re.compile(r"([0-9]{1,6})([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class SessionUser(Struct, frozen=True):
    """A reader and writer of a team's sessions. `agent`: the agent with these sessions; empty: all."""

    owner_id: int
    login: str
    agent: str = ""

    @property
    def writer(self) -> str:
        """The name of the client as a writer of a session: only that writer may change a session that it
        locked.
        """
        return self.agent or f"@{self.login}"


def check_agent(user: SessionUser, agent: str) -> None:
    """Refuse an agent that the team does not have, or whose sessions are not the user's.

    Raises:
        FrameRefused: 3001, 5004.
    """
    if user.agent:
        if agent == user.agent:
            return
        if _is_known(user.owner_id, agent):
            raise forbidden("an agent reads and changes its own sessions alone")
    elif _is_known(user.owner_id, agent):
        return
    raise FrameRefused(GatewayErrorCode.AGENT_NOT_FOUND, NOT_FOUND)


def get_session(user: SessionUser, agent: str, session_id: str, *, writes: bool = False) -> SessionLog:
    """A session; `writes`: locked until the transaction ends.

    Raises:
        FrameRefused: 3001, 5004, 4001; 4003 when another writer locked a session that the user wants to change.
    """
    check_agent(user, agent)
    found = SessionLog.objects.filter(owner_id=user.owner_id, agent=agent, session_id=session_id)
    log = (found.select_for_update() if writes else found).first()
    if log is None:
        raise FrameRefused(
            GatewayErrorCode.SESSION_NOT_FOUND, "the agent has no session of that id", field="sessionId"
        )
    if writes and is_locked(log, user.writer, db_now()):
        raise locked_error()
    return log


def find_ttl_s(owner_id: int) -> int | None:
    """The seconds after its last entry for which a session of the team takes new entries; None: for ever."""
    policies = TeamPolicy.objects.filter(owner_id=owner_id)
    return policies.values_list("session_ttl_s", flat=True).first()


def check_sessions(place: Place) -> None:
    """Refuse a message for a session that takes no further entries.

    Raises:
        FrameRefused: 4002, 4003.
    """
    logs = list(
        SessionLog.objects.filter(owner_id=place.owner_id, agent__in=place.agents, session_id=place.session_id)
    )
    ttl_s = find_ttl_s(place.owner_id) if logs else None
    for log in logs:
        check_writable(log, ttl_s, place.writer, db_now())


def check_writable(log: SessionLog, ttl_s: int | None, writer: str, now: datetime) -> None:
    """Refuse a new entry in a session that takes none.

    Raises:
        FrameRefused: 4002, 4003.
    """
    if log.state == SessionLog.State.ARCHIVED:
        text = "this session is archived: it takes no further messages"
        raise FrameRefused(GatewayErrorCode.SESSION_EXPIRED, text, field="sessionId", reason="archived")
    if ttl_s is not None and log.last_entry_at + timedelta(seconds=ttl_s) <= now:
        text = "this session has expired: it takes no further messages"
        raise FrameRefused(GatewayErrorCode.SESSION_EXPIRED, text, field="sessionId")
    if is_locked(log, writer, now):
        raise locked_error()


def is_locked(log: SessionLog, writer: str, now: datetime) -> bool:
    """True if another writer locked it."""
    return log.locked_until is not None and log.locked_until > now and log.locked_by != writer


def locked_error() -> FrameRefused:
    """The error for a session that another writer locked."""
    return FrameRefused(
        GatewayErrorCode.SESSION_LOCKED, "another writer has locked this session", field="sessionId"
    )


def _is_known(owner_id: int, agent: str) -> bool:
    seats = Session.objects.filter(owner_id=owner_id, routing_name=agent, link=GATEWAY_LINK)
    enrolled = TeamAgent.objects.filter(owner_id=owner_id, name=agent)
    logs = SessionLog.objects.filter(owner_id=owner_id, agent=agent)
    return seats.exists() or enrolled.exists() or logs.exists()


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
        raise bad_content("the agent has a session of that id", field="sessionId", reason="id_taken")
    return log


def list_sessions(
    user: SessionUser, agent: str = "", *, archived: bool = False, limit: int = 100, after: int = 0
) -> Json:
    """The sessions of an agent, or of all that the user may see, oldest first; archived ones only if wanted.

    `next`: the value of `after` for the next page, if there is one.

    Raises:
        FrameRefused: 3001, 5004.
    """
    found = _find_sessions(user, agent)
    if not archived:
        found = found.exclude(state=SessionLog.State.ARCHIVED)
    rows = list(found.filter(pk__gt=after).order_by("pk")[: limit + 1])
    further = {"next": rows[limit - 1].pk} if len(rows) > limit else {}
    return {"sessions": [show_session(one) for one in rows[:limit]], **further}


def get_entries(user: SessionUser, agent: str, session_id: str, *, limit: int = 100, after: int = 0) -> Json:
    """Entries of a session in the order in which they were written, at most about PAGE_BYTES.

    `next`: see `list_sessions`.

    Raises:
        FrameRefused: 3001, 5004, 4001, 4004.
    """
    log = get_session(user, agent, session_id)
    entries: list[Json] = []
    size = last = 0
    rows = list(SessionEntry.objects.filter(log=log, pk__gt=after).order_by("pk")[: limit + 1])
    for row in rows[:limit]:
        size += row.bytes
        if entries and size > PAGE_BYTES:
            break
        entries.append(read_row(row).show(log.session_id))
        last = row.pk
    further = {"next": last} if len(entries) < len(rows) else {}
    return {"session": show_session(log), "entries": entries, **further}


def commit_session(user: SessionUser, agent: str, session_id: str, lock_ms: int = 0) -> SessionLog:
    """Check that a session is whole, and mark it as committed; a repeated call succeeds. Sets or ends the lock.

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
    """Archive one session, whatever its age; a repeated call succeeds.

    Raises:
        FrameRefused: 3001, 5004, 4001, 4003.
    """
    log = get_session(user, agent, session_id, writes=True)
    _archive([log], db_now())
    return log


@transaction.atomic
def archive_older(user: SessionUser, agent: str, older_than: timedelta) -> Json:
    """Archive the sessions whose last entry is older, of an agent or of all that the user may see.

    `skipped`: at most REPORTED sessions, each with its reason, `active` or `locked`.

    Raises:
        FrameRefused: 3001, 5004.
    """
    now = db_now()
    kept = _find_sessions(user, agent).exclude(state=SessionLog.State.ARCHIVED).order_by("last_entry_at", "pk")
    old = kept.filter(last_entry_at__lt=now - older_than)
    locked = Q(locked_until__gt=now) & ~Q(locked_by=user.writer)
    young = kept.exclude(last_entry_at__lt=now - older_than)
    skipped = [(log, "locked") for log in old.filter(locked)[:REPORTED]]
    skipped += [(log, "active") for log in young[: REPORTED - len(skipped)]]
    done = list(old.exclude(locked).select_for_update()[:REPORTED])
    _archive(done, now)
    shown = [{"id": log.session_id, "agent": log.agent, "reason": reason} for log, reason in skipped]
    return {"archived": [show_session(log) for log in done], "skipped": shown}


@transaction.atomic
def delete_session(user: SessionUser, agent: str, session_id: str) -> None:
    """Delete a session with its entries.

    Raises:
        FrameRefused: 3001, 5004, 4001, 4003.
    """
    get_session(user, agent, session_id, writes=True).delete()


def read_entries(log: SessionLog) -> list[LogEntry]:
    """The entries that a session had when its row was read, in order.

    Raises:
        FrameRefused: 4004, one cannot be read, or some are missing.
    """
    for _ in range(READ_TRIES):
        rows = list(SessionEntry.objects.filter(log=log).order_by("pk")[: log.entries])
        if len(rows) == log.entries:
            return [read_row(row) for row in rows]
        # If the numbers agree the next time, the log was compacted meanwhile.
        log.refresh_from_db(fields=["entries", "compacted"])
    text = "this session has not as many entries as were written"
    raise FrameRefused(GatewayErrorCode.SESSION_CORRUPT, text, reason="entries_missing")


def read_age(text: str) -> timedelta:
    """An age such as `7d`: a whole number of s, m, h, d or w.

    Raises:
        FrameRefused: 2005.
    """
    found = _AGE.fullmatch(text)
    if found is None or not int(found[1]):
        wanted = "olderThan: want a number above 0 and a unit of s, m, h, d or w, such as 7d"
        raise bad_content(wanted, field="olderThan")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def _find_sessions(user: SessionUser, agent: str) -> "QuerySet[SessionLog]":
    """The sessions of an agent, or of all that the user may see.

    Raises:
        FrameRefused: 3001, 5004.
    """
    agent = agent or user.agent
    if agent:
        check_agent(user, agent)
    return SessionLog.objects.filter(owner_id=user.owner_id, **({"agent": agent} if agent else {}))


def _lock_until(lock_ms: int, now: datetime) -> datetime | None:
    return now + min(timedelta(milliseconds=lock_ms), LONGEST_LOCK) if lock_ms else None


def _archive(logs: Sequence[SessionLog], now: datetime) -> None:
    archived = SessionLog.objects.filter(pk__in=[log.pk for log in logs]).exclude(state=SessionLog.State.ARCHIVED)
    archived.update(state=SessionLog.State.ARCHIVED, archived_at=now, locked_by="", locked_until=None)
    for log in logs:
        log.state = SessionLog.State.ARCHIVED
