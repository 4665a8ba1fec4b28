"""How agents are to one visitor right now: connected, held by others, what is left, how long answers take."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from statistics import median_low

from agents.core.admission import CallerSpending
from agents.core.directory import callers_spending, usage_today
from agents.models import Agent, Turn
from agents.models.choices import Outcome
from agents.models.reachable import online_sessions
from kit import sql
from kit.clock import db_now

RECENT = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """`is_held`: somebody else's question holds it, so that the visitor's would be refused.

    `left_today`: for the visitor, of `budget`: the agent's, or with `is_own` the visitor's own, which is the less.
    `typical_ms`: the middle one of the latest answers' latencies, None when there are none.
    """

    is_online: bool
    is_held: bool
    left_today: int
    typical_ms: int | None
    budget: int = 0
    is_own: bool = False

    @property
    def left(self) -> str:
        """What is left of which budget, in words."""
        whose, ending = "your " if self.is_own else "", "" if self.budget == 1 else "s"
        return f"{self.left_today} of {whose}{self.budget} question{ending} left today"

    @property
    def state(self) -> str:
        """`online`, `busy` or `offline`."""
        if not self.is_online:
            return "offline"
        return "busy" if self.is_held else "online"

    @property
    def typically(self) -> str:
        """The typical latency in words."""
        if self.typical_ms is None:
            return "no answers lately"
        return f"answers in {about(self.typical_ms / 1000)}"


def standings_of(agents: Collection[Agent], visitor_id: int | None) -> dict[int, Standing]:
    """Their standings by agent id, in the same few queries however many they are."""
    ids, sessions = [agent.pk for agent in agents], {agent.session_id for agent in agents}
    online, held = online_sessions(sessions), _held_by_others(sessions, visitor_id)
    today, typical = usage_today(ids), typical_latencies(ids)
    own = callers_spending(agents, visitor_id)
    found = {}
    for agent in agents:
        spending = CallerSpending(agent.daily_budget, today.get(agent.pk, 0))
        mine = own.get(agent.pk)
        is_own = mine is not None and mine.left < spending.left
        tighter = mine if mine is not None and is_own else spending
        found[agent.pk] = Standing(
            is_online=agent.session_id in online,
            is_held=agent.session_id in held,
            left_today=tighter.left,
            typical_ms=typical.get(agent.pk),
            budget=tighter.budget,
            is_own=is_own,
        )
    return found


def typical_latencies(agent_ids: Collection[int]) -> dict[int, int]:
    """The middle latency, in milliseconds, of what each agent completed of its latest `RECENT` turns.

    Each agent's log is read from its end by its index, so a long log costs no more than a short one.
    """
    latencies: dict[int, list[int]] = defaultdict(list)
    turns = Turn.objects.order_by("-asked_at").values_list("agent_id", "outcome", "latency_ms")
    for agent_id, outcome, latency_ms in sql.first_rows_of_each(turns, "agent_id", agent_ids, RECENT):
        if outcome == Outcome.COMPLETED and latency_ms is not None:
            latencies[agent_id].append(latency_ms)
    return {agent_id: median_low(found) for agent_id, found in latencies.items()}


def about(seconds: float) -> str:
    """A length of time as people say it: `under 1 s`, `12 s`, `3 min`, `5 h`."""
    if seconds < 1:
        return "under 1 s"
    if seconds < 100:
        return f"about {round(seconds)} s"
    minutes = round(seconds / 60)
    return f"about {minutes} min" if minutes < 100 else f"about {round(minutes / 60)} h"


def _held_by_others(session_ids: Collection[int], visitor_id: int | None) -> set[int]:
    claims = Turn.objects.holding().filter(claim_until__gt=db_now(), session_id__in=session_ids)
    if visitor_id is not None:
        claims = claims.exclude(caller_id=visitor_id)
    return set(claims.values_list("session_id", flat=True))
