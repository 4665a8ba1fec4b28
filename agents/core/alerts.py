"""Watches agents for their owners: raises and ends alerts, and notifies the owner by webhook and mail.

Every minute one job compares the conditions that hold with the open rows. A row is raised or ended by the
transaction that locks it, which also writes the webhook deliveries and the mail: two runs of the job at the
same time send them once.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db import transaction
from django.db.models import Count, Q, QuerySet

from agents.core.alert_texts import write_mail
from agents.core.directory import usage_today
from agents.core.mail import find_addresses, queue_mails
from agents.models import Agent, Alert, AlertRule, FailureGroup, Halt, Session, Turn
from agents.models.alert import AlertKind
from agents.models.choices import Outcome
from agents.models.session import SEEN_AT, online_sessions
from kit import batches
from kit.clock import db_now, iso
from kit.sql import advisory_lock
from webhooks.service import outbox
from webhooks.service.outbox import OutboxEvent

AGENTS_AT_ONCE = 500
ENDED_AT_ONCE = 500
FAILURES_WITHIN = timedelta(hours=1)
MIN_ASKS = 5
NEW_WITHIN = timedelta(hours=1)  # of a group of failures that was opened; older ones begin no alert
MAX_NEW_FAILURES = 10  # open alerts about groups of one agent; the page of failures has all


class ConditionKey(NamedTuple):
    """The agent and the kind of an alert; for `NEW_FAILURE` also the group of failures."""

    agent_id: int
    kind: AlertKind
    failure_group_id: int | None = None


class WatchedAgent(NamedTuple):
    """A published agent whose owner has a rule."""

    agent_id: int
    owner_id: int
    session_id: int
    daily_budget: int


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of an agent that calls for an alert.

    `threshold`: the threshold of the rule. `value`: a percentage. `since`: when the condition began; None:
    unknown, so the time at which the hub found the condition.
    """

    threshold: int
    value: int = 0
    since: datetime | None = None


def watch_agents() -> int:
    """Raise and end the alerts that are due; returns their number. Only one process does this at a time."""
    with advisory_lock("watching agents") as is_alone:
        if not is_alone:
            return 0
        now = db_now()
        watched = _find_watched()
        columns = ("owner_id", "session_id", "daily_budget")
        count = sum(
            _compare([WatchedAgent(*row) for row in rows], now)
            for rows in batches.walk_rows(watched, *columns, at_once=AGENTS_AT_ONCE)
        )
        return count + _end_unwatched(watched, now)


def _find_watched() -> QuerySet[Agent]:
    """Published agents of owners with a rule, without halted agents, which are offline on purpose."""
    halts = Halt.objects.active()
    watched: QuerySet[Agent] = Agent.objects.published().filter(owner__in=AlertRule.objects.values("owner"))
    watched = watched.exclude(pk__in=halts.filter(kind=Halt.Kind.AGENT).values("agent"))
    return watched.exclude(owner__in=halts.filter(kind=Halt.Kind.OWNER).values("user"))


def _compare(agents: Sequence[WatchedAgent], now: datetime) -> int:
    """Raise and end the alerts of these agents; returns the number of alerts."""
    of_these = Alert.objects.open().filter(agent_id__in=[agent.agent_id for agent in agents])
    rows = {_key(row): row for row in of_these}
    raised = {key for key, row in rows.items() if row.raised_at is not None}
    holding = find_conditions(agents, now, raised)
    _begin({key: found for key, found in holding.items() if key not in rows}, now)
    waiting = {key: found for key, found in holding.items() if key not in raised}
    over = [row.pk for key, row in rows.items() if key not in holding]
    return (_raise(waiting, now) if waiting else 0) + (_end(over, now) if over else 0)


def _begin(new: Mapping[ConditionKey, Condition], now: datetime) -> None:
    """Insert a row for each of these conditions."""
    Alert.objects.bulk_create(
        [
            Alert(**key._asdict(), threshold=one.threshold, value=one.value, since=one.since or now)
            for key, one in new.items()
        ],
        ignore_conflicts=True,  # another process may have inserted the row
    )


@transaction.atomic
def _raise(found: Mapping[ConditionKey, Condition], now: datetime) -> int:
    """Raise the alerts of these conditions, except of agents that have not been offline long enough."""
    waiting = Alert.objects.open().filter(raised_at=None, agent_id__in={key.agent_id for key in found})
    due = []
    for row in _lock(waiting):
        one = found.get(_key(row))
        if one is None:
            continue
        row.raised_at, row.threshold, row.value, row.since = now, one.threshold, one.value, one.since or row.since
        if row.kind == AlertKind.OFFLINE:
            row.value = int((now - row.since).total_seconds() // 60)
        if row.kind != AlertKind.OFFLINE or row.value >= row.threshold:
            due.append(row)
    Alert.objects.bulk_update(due, ["raised_at", "threshold", "value", "since"])
    _queue_notices(due)
    return len(due)


@transaction.atomic
def _end(alert_ids: Collection[int], now: datetime) -> int:
    """End raised alerts, and delete rows that were never raised; returns the number of ended alerts."""
    rows = _lock(Alert.objects.open().filter(pk__in=alert_ids))
    raised = [row for row in rows if row.raised_at is not None]
    for row in raised:
        row.ended_at = now
    Alert.objects.bulk_update(raised, ["ended_at"])
    Alert.objects.filter(pk__in=[row.pk for row in rows if row.raised_at is None]).delete()
    _queue_notices(raised)
    return len(raised)


def _key(row: Alert) -> ConditionKey:
    return ConditionKey(row.agent_id, AlertKind(row.kind), row.failure_group_id)


def _lock(rows: QuerySet[Alert]) -> list[Alert]:
    """Lock these rows, and return them as they are now; rows that another process has locked are left out."""
    return list(
        rows.select_for_update(skip_locked=True, of=("self",))
        .select_related("agent__session", "failure_group")
        .order_by("pk")
    )


def _end_unwatched(watched: QuerySet[Agent], now: datetime) -> int:
    """End the alerts of agents that were unpublished, halted or deleted, or whose owner has no rule any more."""
    unwatched = Alert.objects.open().exclude(agent__in=watched.values("pk"))
    return sum(_end(ids, now) for ids in batches.key_batches(unwatched, ENDED_AT_ONCE))


def _queue_notices(alerts: Sequence[Alert]) -> None:
    """Queue webhook deliveries and mails, in the transaction that raised or ended these."""
    if not alerts:
        return
    if outbox.has_subscriptions():
        outbox.record([_event(alert) for alert in alerts])
    addresses = find_addresses({alert.agent.owner_id for alert in alerts})
    queue_mails(_mails(alerts, addresses))


def _mails(alerts: Sequence[Alert], addresses: dict[int, str]) -> Iterable[tuple[int, str, str, str]]:
    for alert in alerts:
        if to := addresses.get(alert.agent.owner_id):
            yield alert.agent.owner_id, to, *write_mail(alert)


def _event(alert: Alert) -> OutboxEvent:
    agent = alert.agent
    payload = {
        "handle": agent.handle,
        "agentId": agent.pk,
        "alert": alert.kind,
        "threshold": alert.threshold,
        "value": alert.value,
        "since": iso(alert.since),
    }
    if alert.failure_group_id is not None:
        payload["failureId"] = alert.failure_group_id
    if alert.ended_at is not None:
        payload["endedAt"] = iso(alert.ended_at)
    return OutboxEvent(
        type="alert.raised" if alert.ended_at is None else "alert.ended",
        audience={agent.owner_id},
        payload=payload,
        session_id=str(agent.session.public_id),
        routing_name=f"@{agent.session.routing_name}",
    )


def find_conditions(
    agents: Sequence[WatchedAgent], now: datetime, raised: Collection[ConditionKey]
) -> dict[ConditionKey, Condition]:
    """The conditions that hold now, also of agents that have not been offline long enough for an alert.

    `raised`: the conditions that have alerts. A failure alert ends below half of its threshold, so that a share
    that goes up and down around the threshold makes one alert.
    """
    rules = _load_rules({agent.owner_id for agent in agents})
    found = _find_offline(agents, rules) | _find_spent(agents, rules)
    return found | _find_failing(agents, rules, now, raised) | _find_new_failures(agents, rules, now, raised)


Rules = Mapping[tuple[int, AlertKind], int]  # the threshold for an owner's id and a kind


def _load_rules(owner_ids: Collection[int]) -> Rules:
    rows = AlertRule.objects.filter(owner_id__in=owner_ids).values_list("owner_id", "kind", "threshold")
    return {(owner_id, AlertKind(kind)): threshold for owner_id, kind, threshold in rows}


def _with_rule(agents: Sequence[WatchedAgent], rules: Rules, kind: AlertKind) -> list[tuple[WatchedAgent, int]]:
    pairs = [(agent, rules.get((agent.owner_id, kind))) for agent in agents]
    return [(agent, threshold) for agent, threshold in pairs if threshold is not None]


def _find_offline(agents: Sequence[WatchedAgent], rules: Rules) -> dict[ConditionKey, Condition]:
    """The conditions of offline agents. A program's agent is offline since its session was last seen.

    A remote server is offline while its breaker is open or half-open. The begin is unknown; the alert then has the
    time at which the hub first finds the server offline.
    """
    watched = _with_rule(agents, rules, AlertKind.OFFLINE)
    ids = [agent.session_id for agent, _ in watched]
    online = online_sessions(ids)
    sessions = Session.objects.filter(pk__in=ids).annotate(seen_at=SEEN_AT)
    facts = {pk: rest for pk, *rest in sessions.values_list("pk", "seen_at", "remote__pk", "remote__retry_at")}
    found = {}
    for agent, minutes in watched:
        if agent.session_id not in facts:  # the session was deleted a moment ago, with its agent
            continue
        seen_at, remote_id, retry_at = facts[agent.session_id]
        if retry_at is None and agent.session_id in online:
            continue
        since = seen_at if remote_id is None else None
        found[ConditionKey(agent.agent_id, AlertKind.OFFLINE)] = Condition(minutes, since=since)
    return found


def _find_spent(agents: Sequence[WatchedAgent], rules: Rules) -> dict[ConditionKey, Condition]:
    watched = [pair for pair in _with_rule(agents, rules, AlertKind.BUDGET) if pair[0].daily_budget]
    used = usage_today([agent.agent_id for agent, _ in watched])
    shares = {agent.agent_id: used.get(agent.agent_id, 0) * 100 // agent.daily_budget for agent, _ in watched}
    return {
        ConditionKey(agent.agent_id, AlertKind.BUDGET): Condition(percent, shares[agent.agent_id])
        for agent, percent in watched
        if shares[agent.agent_id] >= percent
    }


def _find_failing(
    agents: Sequence[WatchedAgent], rules: Rules, now: datetime, raised: Collection[ConditionKey]
) -> dict[ConditionKey, Condition]:
    """The agents with a high share of failures among the asks of the last hour that completed or failed."""
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
        key = ConditionKey(agent.agent_id, AlertKind.FAILURES)
        least = percent / 2 if key in raised else percent
        if asks >= MIN_ASKS and failed * 100 >= least * asks:
            found[key] = Condition(percent, failed * 100 // asks)
    return found


def _find_new_failures(
    agents: Sequence[WatchedAgent], rules: Rules, now: datetime, raised: Collection[ConditionKey]
) -> dict[ConditionKey, Condition]:
    """The open groups of failures that were opened lately and occurred often enough, or that have an alert.

    An agent has at most MAX_NEW_FAILURES: those with an alert, then the oldest.
    """
    least = {agent.agent_id: times for agent, times in _with_rule(agents, rules, AlertKind.NEW_FAILURE)}
    if not least:
        return {}
    alerted = {key.failure_group_id for key in raised if key.failure_group_id is not None}
    open_groups = FailureGroup.objects.filter(agent__in=least, state=FailureGroup.State.OPEN)
    groups = open_groups.filter(Q(opened_at__gt=now - NEW_WITHIN) | Q(pk__in=alerted)).order_by("opened_at", "pk")
    found: dict[ConditionKey, Condition] = {}
    of_agents: Counter[int] = Counter()
    for group in sorted(groups, key=lambda one: one.pk not in alerted):
        occurred, times = group.count - group.count_before, least[group.agent_id]
        if (occurred >= times or group.pk in alerted) and of_agents[group.agent_id] < MAX_NEW_FAILURES:
            of_agents[group.agent_id] += 1
            key = ConditionKey(group.agent_id, AlertKind.NEW_FAILURE, group.pk)
            found[key] = Condition(times, occurred, since=group.opened_at)
    return found
