"""Tidying up: of an owner's sessions that share a routing name, which stay and which go."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.db.models import Count

from agents.models import Agent, Session
from agents.models.reachable import online_sessions
from agents.models.session import SEEN_AT


@dataclass(frozen=True, slots=True)
class Plan:
    """Sessions of routing names that more than one session has."""

    kept: list[Session]
    spare: list[Session]


def plan(owner_id: int, routing_name: str | None = None) -> Plan:
    """What a tidy-up of all names, or of one, would do: the live session of a name stays, else the last seen.

    One that carries an agent stays besides: its handle and its audit do not go by the way.
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
    kept = {pk for _, group in groupby(sessions, _name) for pk in _keep(group, live)} | carrying
    return Plan(
        kept=[session for session in sessions if session.pk in kept],
        spare=[session for session in sessions if session.pk not in kept],
    )


def _keep(group: Iterable[Session], live: set[int]) -> set[int]:
    ids = [session.pk for session in group]
    return live.intersection(ids) or {ids[0]}


def _name(session: Session) -> Any:
    return session.routing_name
