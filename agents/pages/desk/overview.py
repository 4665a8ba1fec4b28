"""`/desk`: an owner's agents and sessions with the figures of the last 7 days; and `/desk/bulk`."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Count, F, IntegerField, OuterRef, QuerySet, Subquery, Sum, Value, Window
from django.db.models.functions import Coalesce, Greatest, RowNumber
from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import render

from accounts.models import User
from accounts.pages import owner_form, owner_json, owner_read
from agents.core.bulk_changes import (
    MAX_AT_ONCE,
    BulkAction,
    BulkReport,
    Result,
    change_agents,
    load_halted,
    preview_change,
)
from agents.core.directory import usage_today
from agents.core.figures import IS_ANSWER, MAX_TURNS, AskCounts, newest_of
from agents.models import Agent, DailyUsage, Session, Turn
from agents.models.agent import AgentQuerySet
from agents.models.session import SEEN_AT
from agents.pages.availability import State, states_of
from agents.pages.desk.alerts import open_alerts, show_alerts
from agents.transcript.access import role_of, sessions_visible_to
from kit.clock import db_now
from kit.filters import page_of
from kit.ids import read_row_id, read_uuid

WEEK = timedelta(days=7)


@dataclass(slots=True)
class WeekCounts(AskCounts):
    """The asks of the week. `p95_ms`: the 95th percentile of latencies."""

    p95_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Week:
    """The figures of an owner's last 7 days. `counts_by_agent` has only agents that were asked.

    `cut_at`: asks up to this time were not counted, because there are too many; else None. `published`: the number
    of published agents. `left_today`: the sum that is left of their budgets.
    """

    total: WeekCounts
    counts_by_agent: Mapping[int, WeekCounts]
    published: int
    left_today: int
    cut_at: datetime | None = None
    none: WeekCounts = field(default_factory=WeekCounts)

    def counts_of(self, agent_id: int) -> WeekCounts:
        """The counts of one agent; zeros if the agent was not asked."""
        return self.counts_by_agent.get(agent_id, self.none)


def load_week(owner: User, now: datetime, shown: Collection[int]) -> Week:
    """The figures of the owner's agents; the latencies of single agents only for the agents in `shown`."""
    own = Agent.objects.kept().owned_by(owner)
    asked, cut_at = newest_of(Turn.objects.filter(agent__in=own.values("pk"), asked_at__gt=now - WEEK), MAX_TURNS)
    total, by_agent, answers = WeekCounts(), dict[int, WeekCounts](), 0
    grouped = asked.order_by().values("agent_id", "outcome")
    for row in grouped.annotate(asks=Sum("repeats"), answers=Count("pk", filter=IS_ANSWER)):
        by_agent.setdefault(row["agent_id"], WeekCounts()).add(row["outcome"], row["asks"])
        total.add(row["outcome"], row["asks"])
        answers += row["answers"]
    measured = asked.filter(IS_ANSWER)
    for agent_id, latency_ms in _p95_of_each(measured.filter(agent_id__in=shown)):
        by_agent[agent_id].p95_ms = latency_ms
    if answers:
        rank = _rank_of_p95(answers)
        total.p95_ms = (
            measured.order_by("latency_ms").values_list("latency_ms", flat=True)[rank - 1 : rank].first()
        )
    published, left_today = _count_left(own, now)
    return Week(total, by_agent, published, left_today, cut_at)


def _rank_of_p95(count: int) -> int:
    """The rank, from 1, of the smallest latency that 95 of a hundred do not exceed."""
    return (count * 95 + 99) // 100


def _p95_of_each(measured: QuerySet[Turn]) -> list[tuple[int, int]]:
    """The 95th percentile of each agent's latencies; the database computes `_rank_of_p95`."""
    ranked = measured.annotate(
        place=Window(RowNumber(), partition_by="agent_id", order_by="latency_ms"),
        among=Window(Count("pk"), partition_by="agent_id"),
    )
    at_rank = ranked.filter(place=(F("among") * 95 + 99) / Value(100, IntegerField()))
    return [(agent_id, latency_ms or 0) for agent_id, latency_ms in at_rank.values_list("agent_id", "latency_ms")]


def _count_left(own: AgentQuerySet, now: datetime) -> tuple[int, int]:
    """The number of published agents, and the sum of what is left of their daily budgets."""
    today = DailyUsage.objects.filter(agent=OuterRef("pk"), day=now.date()).values("queries")
    used = Coalesce(Subquery(today), 0)
    published = own.published().annotate(unspent=Greatest(F("daily_budget") - used, 0))
    found = published.aggregate(count=Count("pk"), left=Sum("unspent", default=0))
    return found["count"], found["left"]


ON_A_PAGE = 20
ALERTS_SHOWN = 3
MAX_ASKED_FOR = 3 * ON_A_PAGE


@dataclass(frozen=True, slots=True)
class DeskAgentRow:
    """One agent of the owner. `left`: what is left of today's budget; `counts`: the counts of the last 7 days."""

    agent: Agent
    state: State
    left: int
    counts: WeekCounts
    is_halted: bool


@dataclass(frozen=True, slots=True)
class DeskSessionRow:
    """One session. `agent`: the agent as which it is published, or None. `role`: the visitor's role in it."""

    session: Session
    state: State
    agent: Agent | None
    role: str


@owner_read
def desk(request: HttpRequest, owner: User) -> HttpResponse:
    """The desk: three lists, each with its own pages; `?archived=1` adds archived sessions."""
    agents = (
        Agent.objects.kept().owned_by(owner).select_related("session", "session__remote").order_by("handle_key")
    )
    visible = sessions_visible_to(owner.pk).order_by(SEEN_AT.desc(), "-pk")
    own, lent = visible.filter(owner=owner), visible.exclude(owner=owner).filter(archived_at=None)
    with_archived = request.GET.get("archived") == "1"
    agents_page = page_of(request, agents, ON_A_PAGE, "agents")
    own_page = page_of(request, own if with_archived else own.filter(archived_at=None), ON_A_PAGE, "sessions")
    lent_page = page_of(request, lent, ON_A_PAGE, "shared")
    states = states_of(_ids(agents_page, own_page, lent_page))
    week = load_week(owner, db_now(), [agent.pk for agent in agents_page])
    alerts = show_alerts(open_alerts(owner)[: ALERTS_SHOWN + 1])
    context = {
        "agents": agents_page,
        "agent_rows": _agent_rows(agents_page, states, week),
        "week": week,
        "alerts": alerts[:ALERTS_SHOWN],
        "more_alerts": len(alerts) > ALERTS_SHOWN,
        "most": MAX_TURNS,
        "sessions": own_page,
        "session_rows": _session_rows(own_page, states),
        "shared": lent_page,
        "shared_rows": _session_rows(lent_page, states),
        "with_archived": with_archived,
    }
    return render(request, "desk/desk.html", context)


@owner_json
def states(request: HttpRequest, owner: User) -> HttpResponse:
    """`{"sessions": {id: state}, "agents": {id: used today}}` for each `?session=` and `?agent=`."""
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


def _ids(agents: Iterable[Agent], *sessions: Iterable[Session]) -> set[int]:
    return {agent.session_id for agent in agents} | {one.pk for some in sessions for one in some}


def _agent_rows(agents: Iterable[Agent], states: dict[int, State], week: Week) -> list[DeskAgentRow]:
    listed = list(agents)
    ids = [agent.pk for agent in listed]
    used, halted = usage_today(ids), load_halted(ids)
    return [
        DeskAgentRow(
            agent,
            states[agent.session_id],
            max(0, agent.daily_budget - used.get(agent.pk, 0)),
            week.counts_of(agent.pk),
            agent.pk in halted,
        )
        for agent in listed
    ]


def _session_rows(sessions: Iterable[Session], states: dict[int, State]) -> list[DeskSessionRow]:
    listed = list(sessions)
    kept = Agent.objects.kept().filter(session__in=listed)
    agents = {agent.session_id: agent for agent in kept}
    return [DeskSessionRow(one, states[one.pk], agents.get(one.pk), role_of(one).word) for one in listed]


def _uuids(given: Iterable[str]) -> list[UUID]:
    return [found for text in list(given)[:MAX_ASKED_FOR] if (found := read_uuid(text))]


def _numbers(given: Iterable[str]) -> list[int]:
    return [found for text in list(given)[:MAX_ASKED_FOR] if (found := read_row_id(text)) is not None]


@dataclass(frozen=True, slots=True)
class Words:
    """The texts for an action: `done`: the result for one agent; `means`: an explanation of the action."""

    verb: str
    done: str
    same: str
    means: str


WORDS = {
    BulkAction.PUBLISH: Words(
        "Publish", "published", "published already", "Callers can ask a published agent, as its access says."
    ),
    BulkAction.UNPUBLISH: Words(
        "Unpublish", "unpublished", "a draft already", "A draft is closed to callers; its settings and log stay."
    ),
    BulkAction.HALT: Words(
        "Halt",
        "halted",
        "halted already",
        "A halted agent takes no questions, open ones end, and it cannot connect until you resume it.",
    ),
    BulkAction.RESUME: Words("Resume", "resumed", "not halted", "A resumed agent can connect and be asked again."),
}
KEPT = "halted by an administrator, who has to lift that"


@owner_form
def bulk(request: HttpRequest, owner: User) -> HttpResponse:
    """GET previews the change, POST makes it and shows the results; agents of other owners are left out."""
    given = request.POST if request.method == "POST" else request.GET
    agent_ids, action = read_agent_ids(given.getlist("agent")), _read_action(given)
    if action is None or not agent_ids:
        return render(request, "desk/bulk.html", {"report": None})
    is_done = request.method == "POST"
    report = (change_agents if is_done else preview_change)(owner, agent_ids, action)
    context = {
        "action": action.value,
        "words": WORDS[action],
        "report": report if report.results else None,
        "lines": _show_results(report, WORDS[action], is_done=is_done),
        "is_done": is_done,
    }
    return render(request, "desk/bulk.html", context)


def read_agent_ids(given: Iterable[str]) -> list[int]:
    """The ids among these texts, each once, at most MAX_AT_ONCE."""
    texts = list(dict.fromkeys(given))[:MAX_AT_ONCE]
    return [found for text in texts if (found := read_row_id(text)) is not None]


def _read_action(given: QueryDict) -> BulkAction | None:
    return next((one for one in BulkAction if one == given.get("action")), None)


def _show_results(report: BulkReport, words: Words, *, is_done: bool) -> list[tuple[str, str, bool]]:
    """The handle of each agent, the result in words, and whether the agent changes."""
    said = {
        Result.CHANGED: words.done if is_done else f"will be {words.done}",
        Result.SAME: words.same,
        Result.KEPT: KEPT,
    }
    return [(one.agent.handle, said[one.result], one.result is Result.CHANGED) for one in report.results]
