"""The asks of an owner's agents in the last 7 days: in all, and each agent's, in the same five queries however
many they are.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import Count, F, IntegerField, OuterRef, QuerySet, Subquery, Sum, Value, Window
from django.db.models.functions import Coalesce, Greatest, RowNumber

from accounts.models import User
from agents.models import Agent, DailyUsage, Turn
from agents.models.agent import AgentQuerySet
from agents.web.desk.figures import IS_ANSWER, MOST_TURNS, AskCounts, newest_of

WEEK = timedelta(days=7)


@dataclass(slots=True)
class WeekCounts(AskCounts):
    """The asks of the week. `p95_ms`: 95 of a hundred answers came within it."""

    p95_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Week:
    """`counts_by_agent` has the agents that were asked. `cut_at`: older asks were not counted, there are too many.

    `published`: how many agents callers can ask; `left_today`: what is left of their budgets, taken together.
    """

    total: WeekCounts
    counts_by_agent: Mapping[int, WeekCounts]
    published: int
    left_today: int
    cut_at: datetime | None = None
    none: WeekCounts = field(default_factory=WeekCounts)

    def counts_of(self, agent_id: int) -> WeekCounts:
        """The counts of one agent."""
        return self.counts_by_agent.get(agent_id, self.none)


def load_week(owner: User, now: datetime, shown: Collection[int]) -> Week:
    """The figures of the owner's agents; latencies of single agents for those in `shown` alone."""
    own = Agent.objects.kept().owned_by(owner)
    asked, cut_at = newest_of(Turn.objects.filter(agent__in=own.values("pk"), asked_at__gt=now - WEEK), MOST_TURNS)
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
        rank = _rank(answers)
        total.p95_ms = (
            measured.order_by("latency_ms").values_list("latency_ms", flat=True)[rank - 1 : rank].first()
        )
    published, left_today = _count_left(own, now)
    return Week(total, by_agent, published, left_today, cut_at)


def _rank(count: int) -> int:
    """The place, from 1, of the smallest latency that 95 of a hundred do not exceed."""
    return (count * 95 + 99) // 100


def _p95_of_each(measured: QuerySet[Turn]) -> list[tuple[int, int]]:
    """The same latency of each agent, found by the database: `_rank` in SQL."""
    ranked = measured.annotate(
        place=Window(RowNumber(), partition_by="agent_id", order_by="latency_ms"),
        among=Window(Count("pk"), partition_by="agent_id"),
    )
    at_rank = ranked.filter(place=(F("among") * 95 + 99) / Value(100, IntegerField()))
    return [(agent_id, latency_ms or 0) for agent_id, latency_ms in at_rank.values_list("agent_id", "latency_ms")]


def _count_left(own: AgentQuerySet, now: datetime) -> tuple[int, int]:
    """How many agents are published, and what is left of their daily budgets."""
    today = DailyUsage.objects.filter(agent=OuterRef("pk"), day=now.date()).values("queries")
    used = Coalesce(Subquery(today), 0)
    published = own.published().annotate(unspent=Greatest(F("daily_budget") - used, 0))
    found = published.aggregate(count=Count("pk"), left=Sum("unspent", default=0))
    return found["count"], found["left"]
