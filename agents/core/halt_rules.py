"""Halts: an agent, an owner or a caller is stopped in every process until the halt is lifted (docs/adr/0060).

A halt is a row. Admission reads halts with its other state; every process polls for halted turns and sockets, and
ends them.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.contrib.admin.models import ADDITION
from django.db import transaction
from django.db.models import Q, QuerySet

from accounts.audit_log import name_rows, record_act
from accounts.models import Credential, User
from agents.models import Agent, Connection, Halt, Turn
from agents.models.halt import REASON_CHARS
from kit.clock import db_now

Kind = Halt.Kind


class NoSuchSubject(ValueError):
    """No agent, or no user, has the name; the text says which of the two."""


@dataclass(frozen=True, slots=True)
class HaltSubject:
    """The subject of a halt: an agent, or a user as the owner of agents, or as a caller."""

    kind: Halt.Kind
    agent: Agent | None = None
    user: User | None = None

    @property
    def halts(self) -> QuerySet[Halt]:
        """The halts of this subject that are not lifted."""
        found: QuerySet[Halt] = Halt.objects.active().filter(kind=self.kind, agent=self.agent, user=self.user)
        return found


class ActiveHalt(NamedTuple):
    """A halt that is not lifted."""

    id: int
    kind: str
    agent_id: int | None
    user_id: int | None


def get_halt_subject(kind: str, name: str) -> HaltSubject:
    """The agent with a handle (with or without @), or the user with a login.

    Raises:
        NoSuchSubject: no such agent or user exists.
    """
    known = name.removeprefix("@")
    if kind == Kind.AGENT:
        agent = Agent.objects.kept().at(known).first()
        if agent is None:
            raise NoSuchSubject("no such agent")
        return HaltSubject(Kind.AGENT, agent=agent)
    user = User.objects.named(known)
    if user is None:
        raise NoSuchSubject("no such user")
    return HaltSubject(Kind(kind), user=user)


@transaction.atomic
def halt_subject(subject: HaltSubject, *, by: User | None, by_staff: bool, reason: str = "") -> tuple[Halt, bool]:
    """Refuse new asks from now on and end open turns, in every process; returns the halt and whether it is new.

    `by` None: from the command line.
    """
    return Halt.objects.active().get_or_create(
        kind=subject.kind,
        agent=subject.agent,
        user=subject.user,
        by_staff=by_staff,
        lifted_at=None,
        defaults={"made_by": by, "made_at": db_now(), "reason": reason[:REASON_CHARS]},
    )


def halt_own_agent(agent: Agent, reason: str = "") -> tuple[Halt, bool]:
    """Halt an agent for its owner; returns the halt and whether it is new."""
    return halt_subject(HaltSubject(Kind.AGENT, agent=agent), by=agent.owner, by_staff=False, reason=reason)


def resume_own_agent(agent: Agent) -> None:
    """Lift the halts that the owner of an agent made; those that administrators made stay."""
    lift_halts(HaltSubject(Kind.AGENT, agent=agent).halts.filter(by_staff=False), by=agent.owner)


def lift_halts(halts: QuerySet[Halt], *, by: User | None) -> int:
    """Lift these halts; returns the number that were active. The rows stay."""
    return halts.filter(lifted_at=None).update(lifted_at=db_now(), lifted_by=by)


@transaction.atomic
def halt_by_staff(subject: HaltSubject, *, by: User, reason: str = "") -> tuple[Halt, bool]:
    """Halt a subject for a member of the staff, and record a new halt in the audit log."""
    made, is_new = halt_subject(subject, by=by, by_staff=True, reason=reason)
    if is_new:
        record_act(by, Halt, name_rows([made]), f"halted {made.whom}", flag=ADDITION)
    return made, is_new


@transaction.atomic
def lift_by_staff(halts: QuerySet[Halt], *, by: User) -> None:
    """Lift halts for a member of the staff, and record those that were active in the audit log."""
    active = list(halts.filter(lifted_at=None))
    if lift_halts(halts, by=by):
        record_act(by, Halt, name_rows(active), f"lifted the halt of {', '.join(one.whom for one in active)}")


def find_halted(owner_id: int, session_ids: Collection[int]) -> set[int | None]:
    """The sessions among these of an owner whose agents are halted; and None, if the owner is."""
    wanted = Q(kind=Kind.OWNER, user_id=owner_id)
    if session_ids:
        wanted |= Q(kind=Kind.AGENT, agent__session_id__in=session_ids, agent__deleted_at=None)
    return set(Halt.objects.active().filter(wanted).values_list("agent__session_id", flat=True))


# Turns, connections and credentials that a process has to end.


def load_active_halts() -> list[ActiveHalt]:
    """The halts that are not lifted, without those of deleted agents."""
    of_kept = Halt.objects.active().filter(agent__deleted_at=None)
    return [ActiveHalt(*row) for row in of_kept.values_list(*ActiveHalt._fields)]


def find_halted_turns(halts: Sequence[ActiveHalt], home: str) -> list[str]:
    """The chat ids of a process's open turns whose agent, owner or caller is halted."""
    owners, callers = _users(halts, Kind.OWNER), _users(halts, Kind.CALLER)
    under = Q(session__agents__in=_agents(halts)) | Q(session__owner_id__in=owners) | Q(caller_id__in=callers)
    found = Turn.objects.open_in(home).filter(under).distinct()
    return list(found.values_list("chat_id", flat=True))


def find_halted_connections(halts: Sequence[ActiveHalt], process_id: str) -> list[int]:
    """The connections of a process whose agent or owner is halted."""
    under = Q(session__agents__in=_agents(halts)) | Q(session__owner_id__in=_users(halts, Kind.OWNER))
    found = Connection.objects.filter(under, process_id=process_id).distinct()
    return list(found.values_list("pk", flat=True))


def find_halted_credentials(halts: Sequence[ActiveHalt], among: Collection[int]) -> set[int]:
    """The credentials among these whose users are halted as callers."""
    found = Credential.objects.filter(pk__in=among, user_id__in=_users(halts, Kind.CALLER))
    return set(found.values_list("pk", flat=True))


def _agents(halts: Sequence[ActiveHalt]) -> list[int]:
    return [one.agent_id for one in halts if one.agent_id is not None]


def _users(halts: Sequence[ActiveHalt], kind: str) -> list[int]:
    return [one.user_id for one in halts if one.kind == kind and one.user_id is not None]
