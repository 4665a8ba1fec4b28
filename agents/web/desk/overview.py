"""`/desk`: an owner's agents and sessions, and those others lent them."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.models import User
from agents.core.bulk_changes import load_halted
from agents.core.directory import usage_today
from agents.models import Agent, Session
from agents.models.session import SEEN_AT
from agents.transcript.access import role_of, sessions_visible_to
from agents.web.availability import State, states_of
from agents.web.desk import require_owner, require_owner_json
from agents.web.desk.alerts import open_alerts, show_alerts
from agents.web.desk.figures import MOST_TURNS
from agents.web.desk.week import Week, WeekCounts, load_week
from kit.clock import db_now
from kit.ids import read_row_id, read_uuid

ON_A_PAGE = 20
ALERTS_SHOWN = 3
MOST_ASKED_FOR = 3 * ON_A_PAGE


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One agent of the owner's. `left`: questions that its budget has left today; `counts`: of the last 7 days."""

    agent: Agent
    state: State
    left: int
    counts: WeekCounts
    is_halted: bool


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One session. `agent` is what it is published as, `role` what the visitor may do with it."""

    session: Session
    state: State
    agent: Agent | None
    role: str


@never_cache
@require_safe
@require_owner
def desk(request: HttpRequest, owner: User) -> HttpResponse:
    """Three lists, each in pages of its own; `?archived=1` adds sessions that left the lists."""
    agents = (
        Agent.objects.kept().owned_by(owner).select_related("session", "session__remote").order_by("handle_key")
    )
    visible = sessions_visible_to(owner.pk).order_by(SEEN_AT.desc(), "-pk")
    own, lent = visible.filter(owner=owner), visible.exclude(owner=owner).filter(archived_at=None)
    with_archived = request.GET.get("archived") == "1"
    agents_page = _page(request, agents, "agents")
    own_page = _page(request, own if with_archived else own.filter(archived_at=None), "sessions")
    lent_page = _page(request, lent, "shared")
    states = states_of(_ids(agents_page, own_page, lent_page))
    week = load_week(owner, db_now(), [agent.pk for agent in agents_page])
    alerts = show_alerts(open_alerts(owner)[: ALERTS_SHOWN + 1])
    context = {
        "agents": agents_page,
        "agent_rows": _agent_rows(agents_page, states, week),
        "week": week,
        "alerts": alerts[:ALERTS_SHOWN],
        "more_alerts": len(alerts) > ALERTS_SHOWN,
        "most": MOST_TURNS,
        "sessions": own_page,
        "session_rows": _session_rows(own_page, states),
        "shared": lent_page,
        "shared_rows": _session_rows(lent_page, states),
        "with_archived": with_archived,
    }
    return render(request, "desk/desk.html", context)


@never_cache
@require_safe
@require_owner_json
def states(request: HttpRequest, owner: User) -> HttpResponse:
    """`{"sessions": {id: state}, "agents": {id: used today}}` of each `?session=` and `?agent=`."""
    sessions = sessions_visible_to(owner.pk).filter(public_id__in=_uuids(request.GET.getlist("session")))
    named = dict(sessions.values_list("pk", "public_id"))
    agents = Agent.objects.kept().owned_by(owner).filter(pk__in=_numbers(request.GET.getlist("agent")))
    agent_ids = list(agents.values_list("pk", flat=True))
    used = usage_today(agent_ids)
    return JsonResponse(
        {
            "sessions": {str(named[pk]): state for pk, state in states_of(named).items()},
            "agents": {str(pk): used.get(pk, 0) for pk in agent_ids},
        }
    )


def _page(request: HttpRequest, rows: QuerySet[Agent] | QuerySet[Session], name: str) -> Page:  # type: ignore[type-arg]
    return Paginator(rows, ON_A_PAGE).get_page(request.GET.get(name))


def _ids(agents: Iterable[Agent], *sessions: Iterable[Session]) -> set[int]:
    return {agent.session_id for agent in agents} | {one.pk for some in sessions for one in some}


def _agent_rows(agents: Iterable[Agent], states: dict[int, State], week: Week) -> list[AgentRow]:
    listed = list(agents)
    ids = [agent.pk for agent in listed]
    used, halted = usage_today(ids), load_halted(ids)
    return [
        AgentRow(
            agent,
            states[agent.session_id],
            max(0, agent.daily_budget - used.get(agent.pk, 0)),
            week.counts_of(agent.pk),
            agent.pk in halted,
        )
        for agent in listed
    ]


def _session_rows(sessions: Iterable[Session], states: dict[int, State]) -> list[SessionRow]:
    listed = list(sessions)
    kept = Agent.objects.kept().filter(session__in=listed)
    agents = {agent.session_id: agent for agent in kept}
    return [SessionRow(one, states[one.pk], agents.get(one.pk), role_of(one).word) for one in listed]


def _uuids(given: Iterable[str]) -> list[UUID]:
    return [found for text in list(given)[:MOST_ASKED_FOR] if (found := read_uuid(text))]


def _numbers(given: Iterable[str]) -> list[int]:
    return [found for text in list(given)[:MOST_ASKED_FOR] if (found := read_row_id(text)) is not None]
