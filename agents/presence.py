"""Who is connected where: registering, leaving, and the heartbeat that tells the living from the dead."""

import os
import re
import socket
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet

from accounts import quotas
from accounts.models import Credential
from accounts.quotas import QuotaExceeded
from agents import halting
from agents.ledger.statements import PROCESS_DEAD_S, release_sessions
from agents.models import Connection, Process, Session
from agents.transcript import lifecycle
from agents.transcript.deleting import delete_sessions
from kit.clock import db_now

ORPHAN_AFTER = timedelta(seconds=30)


class MayNotConnect(Exception):
    """An agent may not connect now; `code` is public. It may try again later."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """What an agent said of itself when it connected."""

    user_id: int
    credential_id: int
    session_id: str | None
    routing_name: str | None
    host: str
    cwd: str
    os_user: str
    pid: int | None
    channel_version: str


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


@dataclass(frozen=True, slots=True)
class Beat:
    """What a heartbeat found out: own connections no longer in the table, others' connections that are gone.

    `deleted`: the sessions of the missing ones that are gone too.
    """

    missing: set[int]
    lost: set[int]
    deleted: set[int]


@transaction.atomic
def register(registration: Registration, *, process_id: str) -> Registered:
    """Bind a connection to its session, a new one when none of the owner's has that id. The newest wins.

    Raises:
        MayNotConnect: its owner is halted, or has as much as one may.
    """
    quotas.hold(registration.user_id)  # names are unique per owner
    session = _find_session(registration)
    program = (registration.host, registration.pid)
    same_program = session is not None and registration.pid is not None and (session.host, session.pid) == program
    is_new = session is None
    _check_may_connect(registration.user_id, session)
    if session is None:
        session = Session(owner_id=registration.user_id)
        session.routing_name = free_name(session, _wanted_name(registration))
    _describe(session, registration)
    evicted = _evict(session, same_program=same_program)
    connection = Connection.objects.create(
        session=session,
        process_id=process_id,
        credential_id=registration.credential_id,
        connected_at=session.last_seen_at,
    )
    lifecycle.started(session, session.last_seen_at, took_over=evicted is not None)
    return Registered(
        connection_id=connection.pk,
        session_id=session.pk,
        public_id=str(session.public_id),
        routing_name=session.routing_name,
        is_new=is_new,
        evicted=evicted,
    )


def leave(connection_id: int, *, delete_session: bool = False) -> None:
    """A socket closed. Its own row goes, never that of a newer connection; claims that linger on it go too."""
    session = _disconnect(connection_id)
    if session is not None and delete_session and not session.agents.exists():
        delete_sessions([session.pk], only_offline=True)


@transaction.atomic
def beat(process_id: str, *, mine: Mapping[int, int], others: Collection[int]) -> Beat:
    """Say that this process lives; learn which of these connections do not. `mine`: each with its session."""
    now = db_now()
    if not Process.objects.filter(pk=process_id).update(beat_at=now):  # a lock on its key would hold up `register`
        start = {"host": socket.gethostname()[:255], "pid": os.getpid(), "started_at": now, "beat_at": now}
        Process.objects.create(id=process_id, **start)
    rows = Connection.objects.filter(pk__in=mine, process_id=process_id)
    ownerless = Connection.objects.filter(process_id=process_id, connected_at__lt=now - ORPHAN_AFTER)
    _drop(ownerless.exclude(pk__in=mine), now)
    alive = now - timedelta(seconds=PROCESS_DEAD_S)
    present = set(rows.values_list("pk", flat=True))
    reachable = Connection.objects.filter(pk__in=others, process__beat_at__gt=alive)
    missing = set(mine) - present
    theirs = {mine[one] for one in missing}
    kept = set(Session.objects.filter(pk__in=theirs).values_list("pk", flat=True)) if theirs else set()
    lost = set(others) - set(reachable.values_list("pk", flat=True))
    return Beat(missing=missing, lost=lost, deleted=theirs - kept)


def find_revoked(process_id: str) -> list[int]:
    """Connections of this process that must close: their token is no longer good, or their owner suspended.

    Asked every second by every process that holds sockets (docs/adr/0020). A session that an agent took up again
    while its token was being revoked is archived here.
    """
    gone = Q(credential__revoked_at__isnull=False) | Q(credential__expires_at__lt=db_now())
    refused = Connection.objects.filter(gone | Q(session__owner__is_active=False), process_id=process_id)
    found = dict(refused.values_list("pk", "credential_id"))
    if found:
        revoked = Credential.objects.filter(pk__in=set(found.values()), revoked_at__isnull=False)
        archive_sessions_of(list(revoked.values_list("pk", flat=True)))
    return list(found)


@transaction.atomic
def archive_sessions_of(credential_ids: Sequence[int]) -> None:
    """Their tokens were revoked: these sessions leave the lists. Agents published on them stay, offline."""
    if credential_ids:
        theirs = Session.objects.select_for_update(no_key=True).kept().filter(credential_id__in=credential_ids)
        ids = list(theirs.order_by("pk").values_list("pk", flat=True))  # in the order the ledger locks them
        Session.objects.filter(pk__in=ids).update(archived_at=db_now())


def retire(process_id: str) -> None:
    """This process is leaving: its row and its connections go."""
    forget(Process.objects.filter(pk=process_id))


def retire_all() -> None:
    """No process lives (the embedded hub holds the lock on its data): forget those a crash left behind."""
    forget(Process.objects.all())


@transaction.atomic
def forget(processes: QuerySet[Process]) -> int:
    """These are dead or leaving: their rows go, and what was connected to them has ended. How many they were."""
    ids = list(processes.select_for_update(no_key=True).values_list("pk", flat=True))  # before sessions, as `beat`
    _drop(Connection.objects.filter(process_id__in=ids), db_now())
    return Process.objects.filter(pk__in=ids).delete()[0]


@transaction.atomic
def _disconnect(connection_id: int) -> Session | None:
    locked = Session.objects.select_for_update(no_key=True, of=("self",))  # the session first, as `register` does
    session: Session | None = locked.filter(connection__pk=connection_id).first()
    if session is None:
        return None
    now = db_now()
    Connection.objects.filter(pk=connection_id).delete()
    release_sessions([session.pk], now)
    Session.objects.filter(pk=session.pk).update(last_seen_at=now)
    lifecycle.ended([session], now)
    return session


def _drop(connections: QuerySet[Connection], now: datetime) -> None:
    """Take away connections whose sockets nobody holds any more."""
    locked = Session.objects.select_for_update(no_key=True, of=("self",)).filter(connection__in=connections)
    sessions = {session.pk: session for session in locked.order_by("pk")}
    if sessions:
        still = connections.filter(session_id__in=sessions)  # some may have been taken over while this waited
        lost = list(still.values_list("session_id", flat=True))
        still.delete()
        lifecycle.ended([sessions[pk] for pk in lost], now)


def _check_may_connect(owner_id: int, session: Session | None) -> None:
    if halting.is_halted(session.pk if session else None, owner_id):
        raise MayNotConnect("halted", "this agent is halted: its owner or an administrator has to let it go on")
    try:
        if session is None:
            check_sessions(owner_id)
        if settings.SOCKETS_PER_OWNER:
            others = Connection.objects.filter(session__owner_id=owner_id).exclude(session=session)
            quotas.check(others.count(), settings.SOCKETS_PER_OWNER, "agents connected")
    except QuotaExceeded as over:
        raise MayNotConnect(over.code, str(over)) from None


def check_sessions(owner_id: int) -> None:
    """Refuse one session too many, archived ones counted; call it in the transaction that makes it.

    Raises:
        QuotaExceeded: the owner has as many as one may.
    """
    if settings.SESSIONS_PER_OWNER:
        quotas.hold(owner_id)
        quotas.check(Session.objects.filter(owner_id=owner_id).count(), settings.SESSIONS_PER_OWNER, "sessions")


def _find_session(registration: Registration) -> Session | None:
    try:
        public_id = uuid.UUID(registration.session_id or "")
    except ValueError:
        return None
    mine = Session.objects.select_for_update(no_key=True, of=("self",)).filter(owner_id=registration.user_id)
    mine = mine.filter(remote=None)  # nobody registers as a server the hub calls
    found: Session | None = mine.filter(public_id=public_id).first()
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
    release_sessions([session.pk], db_now())
    return evicted


def free_name(session: Session, wanted: str) -> str:
    """A routing name for a new session: the wanted one, made longer where a live one of the owner's has it."""
    same = Session.objects.filter(owner_id=session.owner_id, routing_name=wanted)
    taken = same.filter(Q(connection__isnull=False) | Q(remote__isnull=False))
    return f"{wanted}-{session.public_id.hex[:8]}" if taken.exists() else wanted


def _wanted_name(registration: Registration) -> str:
    named = slug_of(registration.routing_name or "")
    return named or slug_of(re.split(r"[/\\]", registration.cwd.rstrip("/\\"))[-1]) or "session"


def slug_of(text: str) -> str:
    """A text as a routing name or agent slug: lower case, `[a-z0-9-]`, at most 64 characters."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:64].strip("-")
