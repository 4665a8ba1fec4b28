"""Registers the connections of agents.

The newest connection of a session replaces older ones. For a new session the module checks the owner's limits and
finds a free name.
"""

import re
from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from accounts import quotas
from accounts.quotas import QuotaExceeded
from agents import limits
from agents.core import halt_rules
from agents.models import Connection, Session, Turn
from agents.models.choices import CHANNEL_LINK
from agents.transcript.recording import record_session_starts
from kit.clock import db_now
from kit.ids import read_uuid
from kit.names import make_slug


class MayNotConnect(Exception):
    """The agent may not connect now; `code` is public. The agent may retry later."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


Refusal = MayNotConnect | QuotaExceeded


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRegistration:
    """The values that an agent sent about itself when it connected.

    `keeps_name`: it continues the owner's newest session of its link and its name, not one that it names by id.
    """

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
    keeps_name: bool = False

    @property
    def wanted_session(self) -> UUID | str | None:
        """The session that the agent wants to continue: its id or its name. None: it wants a new one."""
        return self.routing_name if self.keeps_name else read_uuid(self.session_id or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evicted:
    """The connection that the new one replaced. `same_program`: the same host and pid, so merely a reconnect."""

    process_id: str
    connection_id: int
    same_program: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """A new connection with its session. `is_new`: the session is new, too."""

    connection_id: int
    session_id: int
    public_id: str
    routing_name: str
    is_new: bool
    evicted: Evicted | None


@transaction.atomic
def register_connections(
    registrations: Sequence[AgentRegistration], *, process_id: str
) -> list[Registered | Refusal]:
    """Bind a connection to the session that the agent wants, or to a new one; an older connection is evicted.

    The agents are of one owner and one link, each of another session. Each gets a connection, or the reason why
    not: it is halted, or its owner has reached a limit. Hundreds may come back at once, so all together make as
    many queries as one of them, and one more for each that describes itself differently than before.
    """
    owner_id = registrations[0].user_id
    quotas.lock_owner(owner_id)  # routing names are unique per owner
    found = _find_sessions(owner_id, registrations)
    known = {one.pk for one in found.values()}
    admission = _Admission(owner_id, registrations, found)
    outcomes = [admission.admit(one) for one in registrations]
    admitted = [(one, sent) for one, sent in zip(outcomes, registrations, strict=True) if isinstance(one, Session)]
    sessions = [one for one, _ in admitted]
    admission.save()
    rows = Connection.objects.bulk_create(
        Connection(
            session=one,
            process_id=process_id,
            credential_id=sent.credential_id,
            connected_at=admission.now,
        )
        for one, sent in admitted
    )
    record_session_starts(sessions, admission.now, known=known, taken_over=admission.evicted)
    connections = {one.session_id: one.pk for one in rows}
    return [
        Registered(
            connection_id=connections[one.pk],
            session_id=one.pk,
            public_id=str(one.public_id),
            routing_name=one.routing_name,
            is_new=one.pk not in known,
            evicted=admission.evicted.get(one.pk),
        )
        if isinstance(one, Session)
        else one
        for one in outcomes
    ]


class _Admission:
    """The halts, the limits and the names of an owner, read once for agents that connect together.

    `evicted`: the connections that are replaced, by session.
    """

    def __init__(
        self, owner_id: int, registrations: Sequence[AgentRegistration], known: Mapping[UUID | str | None, Session]
    ) -> None:
        self.now = db_now()
        self.evicted: dict[int, Evicted] = {}
        self._new: list[Session] = []
        self._changed: list[Session] = []
        self._same: list[Session] = []
        self._owner_id = owner_id
        self._known = known
        sessions = [one.pk for one in known.values()]
        self._halted = halt_rules.find_halted(owner_id, sessions)
        connections = Connection.objects.filter(session_id__in=sessions) if sessions else ()
        self._replaced = {one.session_id: one for one in connections}
        self._connected = limits.CONNECTED_AGENTS.count_used(owner_id)
        new = [one for one in registrations if one.wanted_session not in known]
        self._sessions = limits.SESSIONS.count_used(owner_id) if new else 0
        self._taken_names = _find_taken_names(owner_id, {_wanted_name(one) for one in new})

    def admit(self, registration: AgentRegistration) -> Session | Refusal:
        """The session of the agent, known or new, with what it sent; not saved."""
        session = self._known.get(registration.wanted_session)
        old = self._replaced.get(session.pk) if session else None
        try:
            self._check(session, more=0 if old else 1)
        except (MayNotConnect, QuotaExceeded) as refusal:
            return refusal
        is_new = session is None
        if session is None:
            self._sessions += 1
            session = Session(owner_id=self._owner_id, link=registration.link, started_at=self.now)
            session.routing_name = _free_name(session, _wanted_name(registration), self._taken_names)
        if old is None:
            self._connected += 1
        else:
            program = (registration.host, registration.pid)
            is_same = registration.pid is not None and (session.host, session.pid) == program
            self.evicted[session.pk] = Evicted(
                process_id=old.process_id, connection_id=old.pk, same_program=is_same
            )
        self._taken_names.add(session.routing_name)
        is_changed = _describe(session, registration, self.now)
        (self._new if is_new else self._changed if is_changed else self._same).append(session)
        return session

    def save(self) -> None:
        """Store the sessions; delete replaced connections, and release the claims that linger on them."""
        Session.objects.bulk_create(self._new)
        for session in self._changed:
            session.save()
        if self._same:
            same = Session.objects.filter(pk__in=[one.pk for one in self._same])
            same.update(last_seen_at=self.now, archived_at=None)
        if self.evicted:
            Connection.objects.filter(pk__in=[one.connection_id for one in self.evicted.values()]).delete()
            Turn.objects.filter(session_id__in=self.evicted).release_ended(self.now)

    def _check(self, session: Session | None, more: int) -> None:
        if self._halted & {None, session.pk if session else None}:
            raise MayNotConnect(
                "halted", "this agent is halted: its owner or an administrator has to let it go on"
            )
        if session is None:
            limits.SESSIONS.check_number(self._sessions)
        limits.CONNECTED_AGENTS.check_number(self._connected, more)


def _find_sessions(owner_id: int, registrations: Sequence[AgentRegistration]) -> dict[UUID | str | None, Session]:
    """The sessions that agents continue, locked, by what the agents want."""
    wanted = [session for one in registrations if (session := one.wanted_session) is not None]
    if not wanted:
        return {}
    # In the order in which the ledger locks sessions.
    locked = Session.objects.select_for_update(no_key=True, of=("self",)).order_by("pk")
    mine = locked.filter(owner_id=owner_id, link=registrations[0].link)
    if not registrations[0].keeps_name:
        return {one.public_id: one for one in mine.filter(public_id__in=wanted)}
    oldest_first = sorted(mine.filter(routing_name__in=wanted), key=lambda one: one.last_seen_at)
    return {one.routing_name: one for one in oldest_first}


def _describe(session: Session, registration: AgentRegistration, now: datetime) -> bool:
    """Note what the agent sent; returns whether it differs from what the session had."""
    sent = {
        "host": registration.host[:255],
        "cwd": registration.cwd[:1024],
        "os_user": registration.os_user[:255],
        "pid": registration.pid,
        "channel_version": registration.channel_version[:64],
        "credential_id": registration.credential_id,
    }
    is_changed = any(getattr(session, name) != value for name, value in sent.items())
    for name, value in sent.items():
        setattr(session, name, value)
    session.last_seen_at = now
    session.archived_at = None
    return is_changed


def _wanted_name(registration: AgentRegistration) -> str:
    named = make_slug(registration.routing_name or "")
    return named or make_slug(re.split(r"[/\\]", registration.cwd.rstrip("/\\"))[-1]) or "session"


def make_free_name(session: Session, wanted: str) -> str:
    """A routing name for a new session: the wanted name, longer if a live session of the owner has that name."""
    return _free_name(session, wanted, _find_taken_names(session.owner_id, [wanted]))


def _free_name(session: Session, wanted: str, taken: Container[str]) -> str:
    return f"{wanted}-{session.public_id.hex[:8]}" if wanted in taken else wanted


def _find_taken_names(owner_id: int, wanted: Collection[str]) -> set[str]:
    """The names among these that live sessions of the owner have."""
    if not wanted:
        return set()
    same = Session.objects.filter(owner_id=owner_id, routing_name__in=wanted)
    live = same.filter(Q(connection__isnull=False) | Q(reachable_from__isnull=False))
    return set(live.values_list("routing_name", flat=True))
