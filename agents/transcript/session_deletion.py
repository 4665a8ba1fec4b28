"""Deletes sessions for good with all their rows, and plans which sessions of one name to delete.

The rows may be many, so no lock is held for long.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from django.db import OperationalError, transaction
from django.db.models import Count, Max, Model, OuterRef, QuerySet, Subquery

from agents.models import Agent, Event, File, OpMessage, Session, TokenUsage, Turn
from agents.models.session import SEEN_AT, connected_sessions, online_sessions
from agents.transcript.announcements import close_sessions
from agents.transcript.files import Swept, forget_files_of
from kit import sql
from kit.clock import db_now

SESSIONS_AT_ONCE = 100
ROWS_AT_ONCE = 1_000
FINISH_TRIES = 3
DEADLOCK = "40P01"
DELETED = "session_deleted"


@dataclass(slots=True)
class Deletion:
    """The sessions that were deleted, the number of their rows by model label, and the result for the blobs."""

    session_ids: set[int] = field(default_factory=set)
    rows: Counter[str] = field(default_factory=Counter)
    blobs_swept: int = 0
    bytes_freed: int = 0

    def add(self, session_ids: Collection[int], rows: Mapping[str, int], swept: Swept) -> None:
        """Count more rows."""
        self.session_ids.update(session_ids)
        self.rows.update(rows)
        self.blobs_swept += swept.blobs
        self.bytes_freed += swept.freed_bytes

    def count(self, model: type[Model]) -> int:
        """The number of rows of a model."""
        return self.rows[model._meta.label]


def delete_sessions(session_ids: Collection[int], *, only_offline: bool = False) -> Deletion:
    """Delete sessions, their transcripts, agents and turns; connected agents are told not to reconnect.

    The turns of an agent that moved to another session stay in its audit.

    `only_offline`: sessions with a connected agent are kept. A session whose agent reconnects while its rows are
    being deleted is kept, without the rows.
    """
    ids = sorted(set(session_ids) - (connected_sessions(session_ids) if only_offline else set()))
    gone = Deletion()
    for start in range(0, len(ids), SESSIONS_AT_ONCE):
        some = ids[start : start + SESSIONS_AT_ONCE]
        _thin_out(some, gone)
        gone.add(*_finish(some, only_offline=only_offline))
    return gone


def _thin_out(session_ids: Sequence[int], gone: Deletion) -> None:
    """Delete the rows of which there may be many, in batches, before the session itself is locked."""
    _keep_turns_of_moved_agents(session_ids)
    settled = Turn.objects.filter(outcome__isnull=False, released_at__isnull=False)
    rows: list[QuerySet[Any]] = [
        Event.objects.filter(session_id__in=session_ids),
        OpMessage.objects.filter(session_id__in=session_ids),
        TokenUsage.objects.filter(session_id__in=session_ids),
        settled.filter(session_id__in=session_ids),
        settled.filter(agent__session_id__in=session_ids),  # turns that the agent answered before it moved here
    ]
    for many in rows:
        gone.rows[many.model._meta.label] += _delete_in_batches(many)


def _keep_turns_of_moved_agents(session_ids: Sequence[int]) -> None:
    """Count the ended turns of agents that moved away as turns of the sessions where the agents are now."""
    ended = Turn.objects.filter(session_id__in=session_ids, agent__isnull=False).exclude(outcome=None)
    moved = ended.exclude(agent__session_id__in=session_ids)
    moved.release_ended(db_now())
    is_now_at = Agent.objects.filter(pk=OuterRef("agent_id")).values("session_id")
    while ids := list(moved.values_list("pk", flat=True)[:ROWS_AT_ONCE]):
        Turn.objects.filter(pk__in=ids).update(session_id=Subquery(is_now_at))


def _delete_in_batches(rows: QuerySet[Model]) -> int:
    """Delete the rows that exist now; rows that an agent writes meanwhile do not prolong this.

    The batches follow each other without pauses (`kit.batches`): `presence.remove_connection` holds one of few
    places to register meanwhile.
    """
    last = rows.aggregate(last=Max("pk"))["last"] or 0
    count = 0
    while ids := list(rows.filter(pk__lte=last).values_list("pk", flat=True)[:ROWS_AT_ONCE]):
        count += rows.model._default_manager.filter(pk__in=ids).delete()[0]
    return count


def _finish(session_ids: Sequence[int], *, only_offline: bool) -> tuple[set[int], dict[str, int], Swept]:
    """Delete the rest; tries again after a deadlock, because a ledger may have locked a turn asked from these
    sessions.
    """
    for _ in range(FINISH_TRIES - 1):
        try:
            return _delete(session_ids, only_offline=only_offline)
        except OperationalError as failure:
            if sql.state_of(failure) != DEADLOCK:
                raise
    return _delete(session_ids, only_offline=only_offline)


@transaction.atomic
def _delete(session_ids: Sequence[int], *, only_offline: bool) -> tuple[set[int], dict[str, int], Swept]:
    locked = Session.objects.select_for_update().filter(pk__in=session_ids).order_by("pk")
    ids = set(locked.values_list("pk", flat=True))
    ids -= connected_sessions(ids) if only_offline else set()
    close_sessions(ids, DELETED)
    files, swept = forget_files_of(ids)
    rows = Session.objects.filter(pk__in=ids).delete()[1]
    return ids, {**rows, File._meta.label: files}, swept


@dataclass(frozen=True, slots=True)
class PruningPlan:
    """A plan for the sessions of routing names that several sessions have."""

    kept: list[Session]
    spare: list[Session]


def plan_pruning(owner_id: int, routing_name: str | None = None) -> PruningPlan:
    """The plan of a tidy-up of all names, or of one: the live session of a name stays, else the last seen.

    A session with an agent is always kept, with the agent's handle and audit.
    """
    own = Session.objects.filter(owner_id=owner_id).exclude(routing_name="")
    if routing_name is not None:
        own = own.filter(routing_name=routing_name)
    shared = own.values("routing_name").annotate(times=Count("pk")).filter(times__gt=1).values("routing_name")
    same_named = own.filter(routing_name__in=shared).annotate(seen_at=SEEN_AT)
    sessions = list(same_named.order_by("routing_name", SEEN_AT.desc(), "-pk"))
    ids = [session.pk for session in sessions]
    live = online_sessions(ids)
    carrying = set(Agent.objects.kept().filter(session_id__in=ids).values_list("session_id", flat=True))
    kept = {pk for _, group in groupby(sessions, _routing_name) for pk in _kept_of(group, live)} | carrying
    return PruningPlan(
        kept=[session for session in sessions if session.pk in kept],
        spare=[session for session in sessions if session.pk not in kept],
    )


def _kept_of(group: Iterable[Session], live: set[int]) -> set[int]:
    ids = [session.pk for session in group]
    return live.intersection(ids) or {ids[0]}


def _routing_name(session: Session) -> Any:
    return session.routing_name
