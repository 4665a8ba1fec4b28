"""Reading agents and their state, one or a page of them: what cards, the native API and pages show."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import OuterRef, Q, Subquery, Sum

from agents.core.admission import CallerSpending
from agents.models import Agent, CallerBudget, DailyUsage, Turn
from agents.models.choices import Outcome
from agents.models.presence import online_sessions
from kit.clock import db_now


def find_askable(handle: str, user_id: int | None) -> Agent | None:
    """The agent of a handle, if it is published and open to this user; `user_id` None: open to every signed-in
    user.
    """
    found: Agent | None = Agent.objects.askable_by(user_id).at(handle).first() if handle.isprintable() else None
    return found


def queries_today(agent: Agent) -> int:
    """Asks the agent has accepted on this UTC day."""
    return usage_today([agent.pk]).get(agent.pk, 0)


def usage_today(agent_ids: Iterable[int]) -> dict[int, int]:
    """Asks accepted on this UTC day, by agent."""
    rows = DailyUsage.objects.filter(agent_id__in=agent_ids, day=db_now().date())
    return dict(rows.values_list("agent_id", "queries"))


def find_caller_spending(agent: Agent, caller_id: int | None) -> CallerSpending | None:
    """A caller's own daily budget at the agent, and what they spent of it; None when they have none."""
    return callers_spending([agent], caller_id).get(agent.pk)


def callers_spending(agents: Iterable[Agent], caller_id: int | None) -> dict[int, CallerSpending]:
    """The same of several agents, by agent; those without such a budget are not in it."""
    if caller_id is None:
        return {}
    budgets = {agent.pk: agent.caller_budget for agent in agents}
    rows = CallerBudget.objects.filter(agent_id__in=budgets, caller_id=caller_id)
    today, spent = db_now().date(), dict.fromkeys(budgets, 0)
    for agent_id, budget, day, queries in rows.values_list("agent_id", "daily_budget", "day", "queries"):
        budgets[agent_id] = budgets[agent_id] if budget is None else budget
        spent[agent_id] = queries if day == today else 0
    return {pk: CallerSpending(budget, spent[pk]) for pk, budget in budgets.items() if budget is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentActivity:
    """Whether an agent is online, and its usage.

    `last_query_at`: the time of the last ask that was not refused.
    """

    is_online: bool
    queries_today: int
    queries_all_time: int
    last_query_at: datetime | None


def load_agent_activity(agents: Collection[Agent]) -> dict[int, AgentActivity]:
    """Their facts by agent id, in the same three queries however many they are."""
    ids = [agent.pk for agent in agents]
    online = online_sessions({agent.session_id for agent in agents})
    usage = DailyUsage.objects.filter(agent_id__in=ids).values("agent_id")
    is_today = Q(day=db_now().date())
    summed = usage.annotate(today=Sum("queries", filter=is_today, default=0), ever=Sum("queries"))
    used = {row["agent_id"]: row for row in summed}
    asked = Turn.objects.filter(agent_id=OuterRef("pk")).exclude(outcome=Outcome.DENIED)
    newest = Subquery(asked.order_by("-asked_at").values("asked_at")[:1])  # from the end of each log, however long
    last_asked = dict(Agent.objects.filter(pk__in=ids).values_list("pk", newest))
    return {
        agent.pk: AgentActivity(
            is_online=agent.session_id in online,
            queries_today=used[agent.pk]["today"] if agent.pk in used else 0,
            queries_all_time=used[agent.pk]["ever"] if agent.pk in used else 0,
            last_query_at=last_asked.get(agent.pk),
        )
        for agent in agents
    }
