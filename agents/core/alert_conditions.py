"""Finds the agents in a condition that their owner wants to be warned of, in as many queries for any number."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import Count, Q

from agents.core.directory import usage_today
from agents.models import AlertRule, Session, Turn
from agents.models.alert import AlertKind
from agents.models.choices import Outcome
from agents.models.session import SEEN_AT, online_sessions

FAILURES_WITHIN = timedelta(hours=1)
LEAST_ASKS = 5

ConditionKey = tuple[int, AlertKind]  # of an agent's id


class WatchedAgent(NamedTuple):
    """A published agent whose owner has a rule."""

    agent_id: int
    owner_id: int
    session_id: int
    daily_budget: int


@dataclass(frozen=True, slots=True)
class Condition:
    """`threshold`: of the rule; `value`: percent; `since` None: it is not known, it began when it was found."""

    threshold: int
    value: int = 0
    since: datetime | None = None


def find_conditions(
    agents: Sequence[WatchedAgent], now: datetime, raised: Collection[ConditionKey]
) -> dict[ConditionKey, Condition]:
    """Those that hold now; of agents that are offline also where it is too short for an alert.

    `raised`: of which there are alerts. A failure alert ends below half of its threshold, so that a share that
    goes up and down around the threshold makes one alert.
    """
    rules = _load_rules({agent.owner_id for agent in agents})
    found = _find_offline(agents, rules) | _find_spent(agents, rules)
    return found | _find_failing(agents, rules, now, raised)


Rules = Mapping[tuple[int, AlertKind], int]  # thresholds, by an owner's id


def _load_rules(owner_ids: Collection[int]) -> Rules:
    rows = AlertRule.objects.filter(owner_id__in=owner_ids).values_list("owner_id", "kind", "threshold")
    return {(owner_id, AlertKind(kind)): threshold for owner_id, kind, threshold in rows}


def _with_rule(agents: Sequence[WatchedAgent], rules: Rules, kind: AlertKind) -> list[tuple[WatchedAgent, int]]:
    pairs = [(agent, rules.get((agent.owner_id, kind))) for agent in agents]
    return [(agent, threshold) for agent, threshold in pairs if threshold is not None]


def _find_offline(agents: Sequence[WatchedAgent], rules: Rules) -> dict[ConditionKey, Condition]:
    """An agent with a connection is offline since it was last seen. A remote server is offline while its breaker
    is open or half-open; when that began is not known, so it is the first time it is found.
    """
    watched = _with_rule(agents, rules, AlertKind.OFFLINE)
    ids = [agent.session_id for agent, _ in watched]
    online = online_sessions(ids)
    sessions = Session.objects.filter(pk__in=ids).annotate(seen_at=SEEN_AT)
    facts = {pk: rest for pk, *rest in sessions.values_list("pk", "seen_at", "remote__pk", "remote__retry_at")}
    found = {}
    for agent, minutes in watched:
        if agent.session_id not in facts:  # deleted a moment ago, with its agent
            continue
        seen_at, remote_id, retry_at = facts[agent.session_id]
        if retry_at is None and agent.session_id in online:
            continue
        since = seen_at if remote_id is None else None
        found[agent.agent_id, AlertKind.OFFLINE] = Condition(minutes, since=since)
    return found


def _find_spent(agents: Sequence[WatchedAgent], rules: Rules) -> dict[ConditionKey, Condition]:
    watched = [pair for pair in _with_rule(agents, rules, AlertKind.BUDGET) if pair[0].daily_budget]
    used = usage_today([agent.agent_id for agent, _ in watched])
    shares = {agent.agent_id: used.get(agent.agent_id, 0) * 100 // agent.daily_budget for agent, _ in watched}
    return {
        (agent.agent_id, AlertKind.BUDGET): Condition(percent, shares[agent.agent_id])
        for agent, percent in watched
        if shares[agent.agent_id] >= percent
    }


def _find_failing(
    agents: Sequence[WatchedAgent], rules: Rules, now: datetime, raised: Collection[ConditionKey]
) -> dict[ConditionKey, Condition]:
    """Of the asks that were admitted in the last hour and have ended, the share that failed."""
    watched = _with_rule(agents, rules, AlertKind.FAILURES)
    asked = Turn.objects.filter(
        agent_id__in=[agent.agent_id for agent, _ in watched], asked_at__gt=now - FAILURES_WITHIN
    )
    ended = asked.filter(outcome__in=[Outcome.COMPLETED, Outcome.FAILED]).order_by().values("agent_id")
    counts: dict[int, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for row in ended.annotate(asks=Count("pk"), failed=Count("pk", filter=Q(outcome=Outcome.FAILED))):
        counts[row["agent_id"]] = (row["asks"], row["failed"])
    found = {}
    for agent, percent in watched:
        asks, failed = counts[agent.agent_id]
        key = (agent.agent_id, AlertKind.FAILURES)
        least = percent / 2 if key in raised else percent
        if asks >= LEAST_ASKS and failed * 100 >= least * asks:
            found[key] = Condition(percent, failed * 100 // asks)
    return found
