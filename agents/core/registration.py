"""Registers an agent: binds its connection to a session; the newest connection wins.

And what a new session needs over any link: the owner has room for it, and it gets a name.
"""

import re
import uuid
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Q

from accounts import quotas
from accounts.quotas import QuotaExceeded
from agents.core import halt_rules
from agents.models import Connection, Session, Turn
from agents.models.choices import CHANNEL_LINK
from agents.settings import get_settings
from agents.transcript.recording import record_session_start
from kit.clock import db_now


class MayNotConnect(Exception):
    """The agent may not connect now; `code` is public. It may retry later."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """What an agent sent about itself when it connected."""

    user_id: int
    credential_id: int
    session_id: str | None
    routing_name: str | None
    host: str
    cwd: str
    os_user: str
    pid: int | None
    channel_version: str
    link: str = CHANNEL_LINK


@dataclass(frozen=True, slots=True, kw_only=True)
class Evicted:
    """The connection that the new one replaced. `same_program`: the same host and pid, so merely a reconnect."""

    process_id: str
    connection_id: int
    same_program: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """A connection as it now stands. `is_new`: so is its session."""

    connection_id: int
    session_id: int
    public_id: str
    routing_name: str
    is_new: bool
    evicted: Evicted | None


@transaction.atomic
def register_connection(registration: Registration, *, process_id: str) -> Registered:
    """Bind a connection to its session, a new one when none of the owner's has that id. The newest wins.

    Raises:
        MayNotConnect: its owner is halted or has reached a limit.
    """
    quotas.lock_owner(registration.user_id)  # names are unique per owner
    session = _find_session(registration)
    program = (registration.host, registration.pid)
    same_program = session is not None and registration.pid is not None and (session.host, session.pid) == program
    is_new = session is None
    _check_may_connect(registration.user_id, session)
    if session is None:
        session = Session(owner_id=registration.user_id, link=registration.link)
        session.routing_name = make_free_name(session, _wanted_name(registration))
    _describe(session, registration)
    evicted = _evict(session, same_program=same_program)
    connection = Connection.objects.create(
        session=session,
        process_id=process_id,
        credential_id=registration.credential_id,
        connected_at=session.last_seen_at,
    )
    record_session_start(session, session.last_seen_at, took_over=evicted is not None)
    return Registered(
        connection_id=connection.pk,
        session_id=session.pk,
        public_id=str(session.public_id),
        routing_name=session.routing_name,
        is_new=is_new,
        evicted=evicted,
    )


def _check_may_connect(owner_id: int, session: Session | None) -> None:
    if halt_rules.is_halted(session.pk if session else None, owner_id):
        raise MayNotConnect("halted", "this agent is halted: its owner or an administrator has to let it go on")
    try:
        if session is None:
            check_session_quota(owner_id)
        if most := get_settings().sockets_per_owner:
            others = Connection.objects.filter(session__owner_id=owner_id).exclude(session=session)
            quotas.check(others.count(), most, "agents connected")
    except QuotaExceeded as over:
        raise MayNotConnect(over.code, str(over)) from None


def _find_session(registration: Registration) -> Session | None:
    try:
        public_id = uuid.UUID(registration.session_id or "")
    except ValueError:
        return None
    mine = Session.objects.select_for_update(no_key=True, of=("self",)).filter(owner_id=registration.user_id)
    found: Session | None = mine.filter(public_id=public_id, link=registration.link).first()
    return found


def _describe(session: Session, registration: Registration) -> None:
    session.host, session.cwd = registration.host[:255], registration.cwd[:1024]
    session.os_user, session.pid = registration.os_user[:255], registration.pid
    session.channel_version = registration.channel_version[:64]
    session.credential_id = registration.credential_id
    session.last_seen_at = db_now()
    session.archived_at = None
    session.save()


def _evict(session: Session, *, same_program: bool) -> Evicted | None:
    old = Connection.objects.filter(session=session).first()
    if old is None:
        return None
    evicted = Evicted(process_id=old.process_id, connection_id=old.pk, same_program=same_program)
    old.delete()
    Turn.objects.filter(session=session).release_ended(db_now())
    return evicted


def _wanted_name(registration: Registration) -> str:
    named = make_slug(registration.routing_name or "")
    return named or make_slug(re.split(r"[/\\]", registration.cwd.rstrip("/\\"))[-1]) or "session"


def check_session_quota(owner_id: int) -> None:
    """Check the owner's limit of sessions, archived ones included; call it in the transaction that creates one.

    Raises:
        QuotaExceeded: the owner has reached the limit.
    """
    if most := get_settings().sessions_per_owner:
        quotas.lock_owner(owner_id)
        quotas.check(Session.objects.filter(owner_id=owner_id).count(), most, "sessions")


def make_free_name(session: Session, wanted: str) -> str:
    """A routing name for a new session: the wanted one, made longer where a live one of the owner's has it."""
    same = Session.objects.filter(owner_id=session.owner_id, routing_name=wanted)
    taken = same.filter(Q(connection__isnull=False) | Q(reachable_from__isnull=False))
    return f"{wanted}-{session.public_id.hex[:8]}" if taken.exists() else wanted


def make_slug(text: str) -> str:
    """A text as a routing name or agent slug: lower case, `[a-z0-9-]`, at most 64 characters."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:64].strip("-")
