"""The availability of agents and sessions for visitors of pages, and advice on whether to ask."""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median_low
from typing import Literal

from django.utils.timesince import timesince

from accounts.models import User
from agents.core.admission import CallerSpending
from agents.core.directory import callers_spending, costs_today, usage_today
from agents.models import Agent, CallerBlock, Turn
from agents.models.choices import Outcome
from agents.models.remote import REMOTE_LINK
from agents.models.session import online_sessions
from kit import sql
from kit.clock import db_now, in_words

RECENT = 20
State = Literal["online", "busy", "offline"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Availability:
    """Whether an agent can be asked now. `is_held`: another caller's question holds the session.

    `budget`: the agent's daily budget, or with `is_own` the visitor's own, if that leaves less. `left_today`: what
    is left of it. `is_cost`: nothing is left, because the day's earlier questions reached the limit on costs.
    `typical_ms`: the median latency of the latest answers; None without answers.
    """

    is_online: bool
    is_held: bool
    left_today: int
    typical_ms: int | None
    budget: int = 0
    is_own: bool = False
    is_cost: bool = False

    @property
    def left(self) -> str:
        """The remaining budget, in words."""
        if self.is_cost:
            return f"{'your ' if self.is_own else ''}cost limit of today reached"
        whose, ending = "your " if self.is_own else "", "" if self.budget == 1 else "s"
        return f"{self.left_today} of {whose}{self.budget} question{ending} left today"

    @property
    def state(self) -> State:
        """`online`, `busy` or `offline`."""
        if not self.is_online:
            return "offline"
        return "busy" if self.is_held else "online"

    @property
    def typically(self) -> str:
        """The typical latency in words."""
        if self.typical_ms is None:
            return "no answers lately"
        return f"answers in {format_duration(self.typical_ms / 1000)}"


@dataclass(frozen=True, slots=True)
class Advice:
    """A sentence or two for this visitor, and whether asking makes sense now."""

    text: str
    may_ask: bool = False


def load_availability(agents: Collection[Agent], visitor_id: int | None) -> dict[int, Availability]:
    """The availability of agents for a visitor, by agent id; the number of queries is constant."""
    ids, sessions = [agent.pk for agent in agents], {agent.session_id for agent in agents}
    online, held = online_sessions(sessions), _held_by_others(sessions, visitor_id)
    today, typical = usage_today(ids), typical_latencies(ids)
    own = callers_spending(agents, visitor_id)
    limited = [agent.pk for agent in agents if agent.daily_limit_microusd is not None]
    costs = costs_today(limited) if limited else {}
    found = {}
    for agent in agents:
        spending = CallerSpending(
            agent.daily_budget, today.get(agent.pk, 0), agent.daily_limit_microusd, costs.get(agent.pk, 0)
        )
        mine = own.get(agent.pk)
        is_own = mine is not None and mine.left < spending.left
        tighter = mine if mine is not None and is_own else spending
        found[agent.pk] = Availability(
            is_online=agent.session_id in online,
            is_held=agent.session_id in held,
            left_today=tighter.left,
            typical_ms=typical.get(agent.pk),
            budget=tighter.budget or 0,
            is_own=is_own,
            is_cost=tighter.has_reached_cost_limit,
        )
    return found


def states_of(session_ids: Collection[int]) -> dict[int, State]:
    """The state of each of these sessions, in two queries. A session is busy if a turn holds it."""
    online = online_sessions(session_ids)
    held = Turn.objects.holding().filter(session_id__in=online, claim_until__gt=db_now())
    busy = set(held.values_list("session_id", flat=True)) if online else set()
    return {one: "offline" if one not in online else "busy" if one in busy else "online" for one in session_ids}


def typical_latencies(agent_ids: Collection[int]) -> dict[int, int]:
    """The median latency in milliseconds of each agent's answers among its latest `RECENT` turns.

    The query reads each agent's log from its end by its index, so a long log costs no more than a short one.
    """
    latencies: dict[int, list[int]] = defaultdict(list)
    turns = Turn.objects.order_by("-asked_at").values_list("agent_id", "outcome", "latency_ms")
    for agent_id, outcome, latency_ms in sql.first_rows_of_each(turns, "agent_id", agent_ids, RECENT):
        if outcome == Outcome.COMPLETED and latency_ms is not None:
            latencies[agent_id].append(latency_ms)
    return {agent_id: median_low(found) for agent_id, found in latencies.items()}


def advise(agent: Agent, standing: Availability, visitor: User | None, now: datetime) -> Advice:
    """Advice about the first obstacle to a question of this visitor, or that there is none."""
    is_owner = visitor is not None and visitor.pk == agent.owner_id
    if visitor and CallerBlock.objects.filter(owner_id=agent.owner_id, caller=visitor).exists():
        return Advice("Its owner does not take your questions. Other agents are in the directory.")
    if not standing.is_online:
        return Advice(_of_offline(agent, is_owner=is_owner, now=now))
    if standing.left_today == 0:
        return Advice(_of_spent(agent, standing, is_owner=is_owner, now=now))
    if visitor is None:
        return Advice("Sign in to ask it; then your question and its answer appear here.")
    if standing.is_held:
        return Advice(
            "It answers another caller, one at a time. Try in a few seconds; this page sees it come free.",
            may_ask=True,
        )
    return Advice("It is online and free. Ask away.", may_ask=True)


def format_duration(seconds: float) -> str:
    """A duration in words: `under 1 s`, `about 12 s`, `about 3 min`, `about 5 h`."""
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


def _of_offline(agent: Agent, *, is_owner: bool, now: datetime) -> str:
    if is_owner:
        if agent.session.link == REMOTE_LINK:
            return "It is offline: its server does not answer. The hub goes on trying; see its server on the desk."
        return (
            "It is offline. Start its program again on the same machine with the same name: its session, and this"
            " handle, come back by themselves. If it runs elsewhere now, move the agent to its new session on the"
            " agent’s edit page."
        )
    seen = in_words(timesince(agent.session.last_seen_at, now, depth=1))
    return (
        f"It is offline, last seen {seen}. Its owner has to bring it back: come again later, or ask another agent."
    )


def _of_spent(agent: Agent, standing: Availability, *, is_owner: bool, now: datetime) -> str:
    midnight = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    left = format_duration((midnight - now).total_seconds())
    if agent.daily_budget == 0:
        return f"Its daily budget is 0: it takes no questions. {'Raise it.' if is_owner else 'Ask another agent.'}"
    if standing.is_cost:
        whose = (
            "Your questions cost as much as its owner allows one caller"
            if standing.is_own
            else "It cost as much as its owner allows"
        )
        what_to_do = "Raise the limit, or wait." if is_owner else "Come again then, or ask another agent."
        return f"{whose} on one day; it takes questions again at midnight UTC, in {left}. {what_to_do}"
    if standing.is_own:
        return f"Your questions to it are used up for today; new ones come at midnight UTC, in {left}."
    what_to_do = "Raise its budget, or wait." if is_owner else "Come again then, or ask another agent."
    return f"Today’s questions are used up; new ones come at midnight UTC, in {left}. {what_to_do}"
