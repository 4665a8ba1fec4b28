"""Counts failed and refused asks into groups, off the path of an ask (docs/adr/0188).

A turn names its group once it is counted, in the transaction that counts it: no turn is lost, and none is counted
twice, also by two jobs at once. A failure of a resolved group opens the group again.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import islice

from django.db import transaction
from django.db.models import Count, Q, QuerySet

from agents.core.explanations import explain
from agents.core.failure_shapes import OTHER, digest_of, find_shape
from agents.core.failures import FAILURES
from agents.core.reasons import Explanation
from agents.models import Agent, FailureCaller, FailureDay, FailureGroup, Turn
from agents.models.choices import AGENTS_OWN_WORDS, GROUPED_REASONS, Outcome
from kit import batches, sql
from kit.clock import db_now, iso
from webhooks.service import outbox
from webhooks.service.outbox import OutboxEvent

AT_ONCE = 200
BATCHES_A_RUN = 20
GROUPS_PER_AGENT = 100  # further shapes of an agent are counted as one, for each reason
# Refusals of one minute share a row, which counts on: the row is counted when no refusal can join it any more.
REFUSALS_SETTLED_AFTER = timedelta(minutes=2)
MAX_CALLERS_SHOWN = 5
COUNTED_COLUMNS = (
    "count",
    "count_before",
    "first_at",
    "last_at",
    "state",
    "opened_at",
    "reopened_at",
    "resolved_at",
)
State = FailureGroup.State


@dataclass(slots=True)
class _Counted:
    """The turns of one batch that belong to one group."""

    turns: list[Turn] = field(default_factory=list)
    days: Counter[date] = field(default_factory=Counter)
    callers: Counter[int] = field(default_factory=Counter)

    def add(self, turn: Turn) -> None:
        """Count a turn."""
        self.turns.append(turn)
        self.days[_moment(turn).date()] += turn.repeats
        if turn.caller_id is not None:
            self.callers[turn.caller_id] += turn.repeats

    @property
    def count(self) -> int:
        """The number of failures; refusals that share a row count each."""
        return sum(self.days.values())


_Key = tuple[int, str]  # an agent's id, and a digest


def group_failures() -> int:
    """Count the turns that no group has yet, oldest first; returns their number. Two runs at once share the work.

    A run counts a bounded number, with pauses: after an upgrade all failed turns that are kept are to be counted.
    """
    last = 0
    settled_before = db_now() - REFUSALS_SETTLED_AFTER

    def find() -> list[int]:
        nonlocal last
        found = find_uncounted(settled_before).filter(pk__gt=last).order_by("pk")
        ids = list(found.values_list("pk", flat=True)[:AT_ONCE])
        last = ids[-1] if ids else last
        return ids

    return sum(_group_batch(ids) for ids in islice(batches.run_with_pauses(find), BATCHES_A_RUN))


def find_uncounted(settled_before: datetime) -> QuerySet[Turn]:
    """The turns that no group has yet; refusals only from before a time."""
    turns = Turn.objects.filter(sql.is_one_of("reason", GROUPED_REASONS), failure_group=None, agent__isnull=False)
    uncounted: QuerySet[Turn] = turns.filter(~Q(outcome=Outcome.DENIED) | Q(settled_at__lt=settled_before))
    return uncounted


@transaction.atomic
def _group_batch(turn_ids: Sequence[int]) -> int:
    """Count these turns, without those that another run has counted or is counting; returns their number."""
    uncounted = Turn.objects.filter(pk__in=turn_ids, failure_group=None, agent__isnull=False)
    turns = list(uncounted.select_for_update(skip_locked=True, of=("self",), no_key=True).order_by("pk"))
    if not turns:
        return 0
    shapes = {turn.pk: _shape_of(turn) for turn in turns}
    groups = _load_groups(turns, shapes)
    by_group: dict[int, _Counted] = defaultdict(_Counted)
    for turn in turns:
        group = groups.get((turn.agent_id or 0, digest_of(turn.reason, shapes[turn.pk])))
        group = group or groups[turn.agent_id or 0, digest_of(turn.reason, OTHER)]
        by_group[group.pk].add(turn)
    known = {group.pk: group for group in groups.values()}
    told = []
    for group_id, counted in by_group.items():
        if _count(known[group_id], counted):
            told.append(known[group_id])
        known[group_id].save(update_fields=COUNTED_COLUMNS)
        Turn.objects.filter(pk__in=[turn.pk for turn in counted.turns]).update(failure_group=group_id)
    _add_days(by_group)
    _add_callers(by_group)
    _tell(told)
    return len(turns)


def _shape_of(turn: Turn) -> str:
    is_said = turn.reason in AGENTS_OWN_WORDS and turn.failure_text
    return find_shape(turn.failure_text or "") if is_said else ""


def _load_groups(turns: Sequence[Turn], shapes: Mapping[int, str]) -> dict[_Key, FailureGroup]:
    """The groups of these turns, made if need be, under locks that are taken in the order of their ids."""
    wanted: dict[_Key, tuple[Turn, str]] = {}
    for turn in turns:
        wanted.setdefault((turn.agent_id or 0, digest_of(turn.reason, shapes[turn.pk])), (turn, shapes[turn.pk]))
    agent_ids = {agent_id for agent_id, _ in wanted}
    # An agent's groups are made under the lock of its row, so that the limit holds; NO KEY lets asks go on.
    list(Agent.objects.filter(pk__in=agent_ids).select_for_update(no_key=True).order_by("pk").values_list("pk"))
    digests = {digest for _, digest in wanted} | {digest_of(turn.reason, OTHER) for turn, _ in wanted.values()}
    found = {(one.agent_id, one.digest) for one in _find(agent_ids, digests)}
    held = dict(
        FailureGroup.objects.filter(agent__in=agent_ids).values_list("agent").annotate(Count("pk")).order_by()
    )
    new = []
    for (agent_id, digest), (turn, shape) in wanted.items():
        if (agent_id, digest) in found:
            continue
        if held.get(agent_id, 0) >= GROUPS_PER_AGENT:
            shape, digest = OTHER, digest_of(turn.reason, OTHER)
            if (agent_id, digest) in found:
                continue
        at = _moment(turn)
        new.append(
            FailureGroup(
                agent_id=agent_id,
                reason=turn.reason,
                shape=shape,
                digest=digest,
                first_at=at,
                last_at=at,
                opened_at=at,
            )
        )
        found.add((agent_id, digest))
        held[agent_id] = held.get(agent_id, 0) + 1
    FailureGroup.objects.bulk_create(new)
    locked = _find(agent_ids, digests).select_for_update(no_key=True).order_by("pk")
    return {(one.agent_id, one.digest): one for one in locked}


def _find(agent_ids: Collection[int], digests: Collection[str]) -> QuerySet[FailureGroup]:
    found: QuerySet[FailureGroup] = FailureGroup.objects.filter(agent__in=agent_ids, digest__in=digests)
    return found


def _count(group: FailureGroup, counted: _Counted) -> bool:
    """Add failures to a group that is locked; returns True if they opened the group, or opened it again."""
    is_new = group.count == 0
    moments = [_moment(turn) for turn in counted.turns]
    after = [at for at in moments if group.resolved_at is None or at > group.resolved_at]
    if is_reopened := group.state == State.RESOLVED and bool(after):
        group.state, group.count_before, group.resolved_at = State.OPEN, group.count, None
        group.opened_at = group.reopened_at = min(after)
    group.count += counted.count
    group.first_at = min([group.first_at, *moments])
    group.last_at = max([group.last_at, *moments])
    return is_new or is_reopened


def _add_days(by_group: Mapping[int, _Counted]) -> None:
    """Add to the counts of days, under the locks of the groups."""
    dates = {day for one in by_group.values() for day in one.days}
    rows = FailureDay.objects.filter(group__in=by_group, day__in=dates)
    before = {(group_id, day): count for group_id, day, count in rows.values_list("group", "day", "count")}
    FailureDay.objects.bulk_create(
        [
            FailureDay(group_id=group_id, day=day, count=before.get((group_id, day), 0) + count)
            for group_id, counted in by_group.items()
            for day, count in counted.days.items()
        ],
        update_conflicts=True,
        unique_fields=["group", "day"],
        update_fields=["count"],
    )


def _add_callers(by_group: Mapping[int, _Counted]) -> None:
    """Add to the counts of callers, under the locks of the groups."""
    ids = {caller_id for one in by_group.values() for caller_id in one.callers}
    rows = FailureCaller.objects.filter(group__in=by_group, caller__in=ids)
    before = {(group_id, who): count for group_id, who, count in rows.values_list("group", "caller", "count")}
    FailureCaller.objects.bulk_create(
        [
            FailureCaller(group_id=group_id, caller_id=who, count=before.get((group_id, who), 0) + count)
            for group_id, counted in by_group.items()
            for who, count in counted.callers.items()
        ],
        update_conflicts=True,
        unique_fields=["group", "caller"],
        update_fields=["count"],
    )


def _tell(groups: Iterable[FailureGroup]) -> None:
    """Queue the webhook events of groups that were opened, in the transaction that opened them."""
    opened = list(groups)
    if not opened or not outbox.has_subscriptions():
        return
    agents = Agent.objects.select_related("session").in_bulk({group.agent_id for group in opened})
    outbox.record([_event(group, agents[group.agent_id]) for group in opened])


def _event(group: FailureGroup, agent: Agent) -> OutboxEvent:
    return OutboxEvent(
        type="failure.opened" if group.reopened_at is None else "failure.reopened",
        audience={agent.owner_id},
        payload={
            "handle": agent.handle,
            "agentId": agent.pk,
            "failureId": group.pk,
            "reason": group.reason,
            "text": describe_group(group),
            "count": group.count,
            "firstAt": iso(group.first_at),
            "lastAt": iso(group.last_at),
        },
        session_id=str(agent.session.public_id),
        routing_name=f"@{agent.session.routing_name}",
    )


def describe_group(group: FailureGroup) -> str:
    """The failures of a group in words: the shape of the agent's texts, or what the reason means."""
    if group.shape == OTHER:
        return "Failures of other kinds, of which the agent has too many to list."
    if group.shape:
        return group.shape
    return explain_group(group).owner


def explain_group(group: FailureGroup) -> Explanation:
    """The explanation of the reason of a group."""
    return explain(Outcome.FAILED if group.reason in FAILURES else Outcome.DENIED, group.reason)


@transaction.atomic
def set_state(group_id: int, state: str) -> FailureGroup | None:
    """Set the state of a group; setting it again changes nothing. Returns None if the group was deleted."""
    group: FailureGroup | None = FailureGroup.objects.select_for_update(no_key=True).filter(pk=group_id).first()
    if group is None or group.state == state:
        return group
    group.state = state
    group.resolved_at = db_now() if state == State.RESOLVED else None
    if state == State.OPEN:
        group.opened_at, group.count_before = db_now(), group.count
    group.save(update_fields=["state", "resolved_at", "opened_at", "count_before"])
    return group


def count_callers(groups: Collection[FailureGroup]) -> dict[int, int]:
    """The number of callers of each group."""
    rows = FailureCaller.objects.filter(group__in=[one.pk for one in groups]).order_by().values_list("group")
    return dict(rows.annotate(count=Count("pk")))


def first_callers(group: FailureGroup) -> list[tuple[str, int]]:
    """The callers who met most failures of a group, each with their number."""
    rows = FailureCaller.objects.filter(group=group).order_by("-count", "caller__login")
    return list(rows.values_list("caller__login", "count")[:MAX_CALLERS_SHOWN])


def _moment(turn: Turn) -> datetime:
    return turn.settled_at or turn.asked_at
