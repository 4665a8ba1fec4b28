"""Counts the figures by which the directory sorts agents, off the path of readers and of asks (docs/adr/0189)."""

from collections import defaultdict
from collections.abc import Collection
from datetime import datetime, timedelta
from math import sqrt
from statistics import median_low

from django.db.models import Avg, Case, Exists, F, FloatField, OuterRef, Q, Sum, Value, When

from agents.core.failures import FAILURES
from agents.models import Agent, AgentRank, DailyUsage, Rating, Turn
from agents.models.choices import Outcome
from kit import batches, sql
from kit.clock import db_now

DAYS = 30
RECENT = 100  # turns of each agent that are read
MIN_ENDS = 5  # fewer say little about the share of answers
AT_ONCE = 100
RATED_LATELY = timedelta(days=90)
Z = 1.96  # of a confidence of 95 percent
OF_1000 = 1000
STALE_AFTER = timedelta(days=1)
FAULTS = frozenset(reason for reason, one in FAILURES.items() if one.is_fault)


def rank_agents() -> int:
    """Count the figures of agents that were asked lately, and of all others once a day; returns their number."""
    with sql.advisory_lock("ranking agents") as is_alone:
        if not is_alone:
            return 0
        now = db_now()
        yesterday = (now - timedelta(days=1)).date()
        was_asked = Exists(DailyUsage.objects.filter(agent=OuterRef("pk"), day__gte=yesterday))
        is_stale = Q(rank=None) | Q(rank__ranked_at__lt=now - STALE_AFTER)
        due = Agent.objects.published().filter(is_stale | Q(was_asked))
        return sum(_rank([row[0] for row in rows], now) for rows in batches.walk_rows(due, at_once=AT_ONCE))


def _rank(agent_ids: Collection[int], now: datetime) -> int:
    used = DailyUsage.objects.filter(agent__in=agent_ids, day__gt=(now - timedelta(days=DAYS)).date())
    asks = dict(used.values_list("agent").annotate(Sum("queries")).order_by())
    answers: dict[int, list[int]] = defaultdict(list)
    ends: dict[int, list[bool]] = defaultdict(list)
    turns = Turn.objects.order_by("-asked_at").values_list("agent_id", "outcome", "reason", "latency_ms")
    for agent_id, outcome, reason, latency_ms in sql.first_rows_of_each(turns, "agent_id", agent_ids, RECENT):
        is_answered = outcome == Outcome.COMPLETED
        if is_answered or reason in FAULTS:
            ends[agent_id].append(is_answered)
        if is_answered and latency_ms is not None:
            answers[agent_id].append(latency_ms)
    scores = _rating_scores(agent_ids, now)
    AgentRank.objects.bulk_create(
        [
            AgentRank(
                agent_id=agent_id,
                asks=asks.get(agent_id, 0),
                answered_percent=_percent(ends[agent_id]),
                rating_score=scores.get(agent_id, 0),
                latency_ms=median_low(answers[agent_id]) if answers[agent_id] else None,
                ranked_at=now,
            )
            for agent_id in agent_ids
        ],
        update_conflicts=True,
        unique_fields=["agent"],
        update_fields=["asks", "answered_percent", "rating_score", "latency_ms", "ranked_at"],
    )
    return len(agent_ids)


def _percent(ends: Collection[bool]) -> int | None:
    return sum(ends) * 100 // len(ends) if len(ends) >= MIN_ENDS else None


def _rating_scores(agent_ids: Collection[int], now: datetime) -> dict[int, int]:
    """The scores of agents with thumbs. Each caller has one vote, the share of the caller's thumbs that are up.

    The owner of an agent has none.
    """
    given = Rating.objects.filter(agent__in=agent_ids, rated_at__gt=now - RATED_LATELY)
    thumb = Case(When(is_good=True, then=Value(1.0)), default=Value(0.0), output_field=FloatField())
    of_callers = given.exclude(caller=F("agent__owner")).values("agent", "caller").annotate(vote=Avg(thumb))
    votes: dict[int, list[float]] = defaultdict(list)
    for agent_id, vote in of_callers.order_by().values_list("agent", "vote"):
        votes[agent_id].append(vote)
    return {agent_id: round(OF_1000 * lower_bound(sum(some), len(some))) for agent_id, some in votes.items()}


def lower_bound(good: float, number: int) -> float:
    """The lower end of Wilson's interval for a share of which `number` votes were seen: the fewer, the lower.

    Without votes, or with bad ones alone, it is 0.
    """
    if not number or good <= 0:
        return 0.0
    share, spread = good / number, Z * Z / number
    margin = Z * sqrt((share * (1 - share) + spread / 4) / number)
    return max(0.0, (share + spread / 2 - margin) / (1 + spread))
