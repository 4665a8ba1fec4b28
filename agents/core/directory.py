"""The directory of agents: publishes and changes them, and reads them with their state.

Cards, the native API, the admin and pages share it. The module also stores the users an agent is limited to, the
budgets of callers, and the callers whom an owner blocked.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import OuterRef, Q, Subquery, Sum
from django.db.models.functions import Lower

from accounts.models import Membership, User
from agents import limits
from agents.core.admission import CallerSpending
from agents.core.agent_moves import NotMovable, check_move, lock_sessions
from agents.models import Agent, AgentGrant, CallerBlock, CallerBudget, DailyUsage, Session, Turn
from agents.models.agent import AgentActivity
from agents.models.choices import Outcome
from agents.models.session import online_sessions
from kit.clock import approximate_now, db_now
from kit.names import make_slug


def find_askable(handle: str, user_id: int | None) -> Agent | None:
    """The published agent of a handle that this user may ask; `user_id` None: that every user may ask."""
    found: Agent | None = Agent.objects.askable_by(user_id).at(handle).first()
    return found


def queries_today(agent: Agent) -> int:
    """The number of asks that the agent accepted on this UTC day."""
    return usage_today([agent.pk]).get(agent.pk, 0)


def usage_today(agent_ids: Iterable[int]) -> dict[int, int]:
    """The number of asks accepted on this UTC day, by agent."""
    rows = DailyUsage.objects.filter(agent_id__in=agent_ids, day=db_now().date())
    return dict(rows.values_list("agent_id", "queries"))


def costs_today(agent_ids: Iterable[int]) -> dict[int, int]:
    """The costs of this UTC day's asks so far, in millionths of a dollar, by agent."""
    rows = DailyUsage.objects.filter(agent_id__in=agent_ids, day=db_now().date())
    return dict(rows.values_list("agent_id", "cost_microusd"))


def find_caller_spending(agent: Agent, caller_id: int | None) -> CallerSpending | None:
    """A caller's own daily limits at the agent, with today's use; None if the caller has no such limits."""
    return callers_spending([agent], caller_id).get(agent.pk)


def callers_spending(agents: Iterable[Agent], caller_id: int | None) -> dict[int, CallerSpending]:
    """A caller's own daily limits at several agents, by agent; agents without such limits are left out.

    If a group of the caller has less left of its budget, the budget of the group stands for the caller's own.
    """
    if caller_id is None:
        return {}
    found = {
        agent.pk: CallerSpending(agent.caller_budget, limit_microusd=agent.caller_limit_microusd)
        for agent in agents
    }
    today = db_now().date()
    groups = Membership.objects.asking().filter(user_id=caller_id).values("group_id")
    of_caller = Q(caller_id=caller_id) | Q(caller_id__in=groups, daily_budget__isnull=False)
    of_groups: dict[int, list[CallerSpending]] = {}
    for row in CallerBudget.objects.filter(of_caller, agent_id__in=found):
        spent, cost = (row.queries, row.cost_microusd) if row.day == today else (0, 0)
        if row.caller_id != caller_id:
            of_groups.setdefault(row.agent_id, []).append(CallerSpending(row.daily_budget, spent))
            continue
        spending = found[row.agent_id]
        if row.daily_budget is not None:
            spending.budget = row.daily_budget
        spending.spent, spending.cost_microusd = spent, cost
    for agent_id, budgets in of_groups.items():
        found[agent_id] = min([found[agent_id], *budgets], key=lambda one: one.left)
    return {pk: one for pk, one in found.items() if one.budget is not None or one.limit_microusd is not None}


UNUSED = {"queries_today": 0, "queries_all_time": 0, "cost_today_microusd": 0}


def load_agent_activity(agents: Collection[Agent]) -> None:
    """Set `activity` of each agent, in three queries for any number of agents."""
    ids = [agent.pk for agent in agents]
    online = online_sessions({agent.session_id for agent in agents})
    usage = DailyUsage.objects.filter(agent_id__in=ids).values("agent_id")
    is_today = Q(day=db_now().date())
    summed = usage.annotate(
        queries_today=Sum("queries", filter=is_today, default=0),
        queries_all_time=Sum("queries"),
        cost_today_microusd=Sum("cost_microusd", filter=is_today, default=0),
    )
    used = {row["agent_id"]: row for row in summed}
    asked = Turn.objects.filter(agent_id=OuterRef("pk")).exclude(outcome=Outcome.DENIED)
    # Read from the end of each agent's log, so that the log's length does not matter.
    newest = Subquery(asked.order_by("-asked_at").values("asked_at")[:1])
    last_asked = dict(Agent.objects.filter(pk__in=ids).values_list("pk", newest))
    for agent in agents:
        numbers = used.get(agent.pk, UNUSED)
        agent.activity = AgentActivity(
            is_online=agent.session_id in online,
            queries_today=numbers["queries_today"],
            queries_all_time=numbers["queries_all_time"],
            cost_today_microusd=numbers["cost_today_microusd"],
            last_query_at=last_asked.get(agent.pk),
        )


CallerBudgets = Mapping[User, int]


class BadSlug(ValueError):
    """The text is not a slug, or no slug can be made of it."""


class HandleTaken(Exception):
    """The handle or the session belongs to another agent; the text says which."""


@dataclass(frozen=True, slots=True)
class Published:
    """A published agent; `restored`: True for a deleted agent that came back with its log."""

    agent: Agent
    restored: bool


@dataclass(frozen=True, slots=True)
class FreeHandle:
    """A free handle for a session, and the owner's deleted agent that had it."""

    handle: str
    deleted: Agent | None


def publish_agent(
    owner: User,
    session: Session,
    details: Mapping[str, Any],
    *,
    slug: str | None = None,
    allowed: Sequence[User] | None = None,
    budgets: CallerBudgets | None = None,
) -> Published:
    """Publish a session of the owner as an agent; `details` are fields of `Agent`.

    `allowed`: users who may ask the agent while its access is limited. `budgets`: daily budgets of single callers.
    A deleted agent with the same handle and owner is restored: fields that are not given keep their values, except
    isolation, which is on by default.

    Raises:
        BadSlug, HandleTaken, QuotaExceeded: nothing was written.
    """
    try:
        with transaction.atomic():
            limits.AGENTS.check(owner.pk)
            place = choose_handle(owner, session, slug)
            agent = place.deleted or Agent(owner=owner, handle=place.handle, handle_key=place.handle.lower())
            agent.session, agent.deleted_at = session, None
            _apply(agent, {"status": Agent.Status.DRAFT, "isolated": True, **details})
            agent.save()
            if allowed is not None:
                set_granted_users(agent, allowed)
            if budgets is not None:
                set_caller_budgets(agent, budgets)
    except IntegrityError:  # another request published the handle or the session meanwhile
        raise HandleTaken("the handle or the session was published a moment ago") from None
    return Published(agent, restored=place.deleted is not None)


def choose_handle(owner: User, session: Session, slug: str | None) -> FreeHandle:
    """Choose the handle under which this session can be published.

    Raises:
        BadSlug, HandleTaken: no handle is possible.
    """
    handle = f"{owner.login}/{_slug(session, slug)}"
    if holder := Agent.objects.kept().filter(session=session).first():
        raise HandleTaken(f"the session is published as @{holder.handle} already")
    if holder := Agent.objects.kept().at(handle).first():
        if holder.owner_id != owner.pk:
            raise HandleTaken(f"@{handle} is taken")
        raise HandleTaken(
            f"@{handle} is yours already, on another session: move it (on its edit page, or PATCH sessionId)"
        )
    deleted = list(Agent.objects.select_for_update().at(handle).exclude(deleted_at=None).order_by("-pk"))
    if any(agent.owner_id != owner.pk for agent in deleted):
        raise HandleTaken(f"@{handle} belonged to another owner")
    return FreeHandle(handle, deleted[0] if deleted else None)


def revise_agent(
    agent_id: int,
    changes: Mapping[str, Any],
    allowed: Sequence[User] | None = None,
    budgets: CallerBudgets | None = None,
    session: Session | None = None,
) -> Agent | None:
    """Change only these fields of an agent; returns None if the agent was deleted meanwhile.

    `allowed`: users who may ask the agent while its access is limited; `budgets`: daily budgets of single callers;
    `session`: the owner's session to which the agent moves. A parameter that is None changes nothing.

    Raises:
        NotMovable: the agent cannot move to the session now; nothing was written.
    """
    try:
        with transaction.atomic():
            locked = lock_sessions(agent_id, session) if budgets is not None or session is not None else set()
            # NO KEY: the ledger may write rows that refer to the agent meanwhile.
            kept = Agent.objects.kept().select_for_update(no_key=True)
            agent: Agent | None = kept.filter(pk=agent_id).first()
            if agent is None:
                return None
            if session is not None and session.pk != agent.session_id:
                check_move(agent, session, locked)
                changes = {**changes, "session": session}
            if changes:
                _apply(agent, changes)
                agent.save(update_fields=[*changes, "published_at", "revised_at"])
            if allowed is not None:
                set_granted_users(agent, allowed)
            if budgets is not None:
                set_caller_budgets(agent, budgets)
    except IntegrityError as failure:
        if session is None:
            raise
        raise NotMovable("the session was published or deleted a moment ago") from failure
    return agent


def _apply(agent: Agent, changes: Mapping[str, Any]) -> None:
    for field, value in changes.items():
        setattr(agent, field, value)
    agent.set_status(agent.status)
    agent.revised_at = approximate_now()


def _slug(session: Session, wanted: str | None) -> str:
    slug = wanted or make_slug(session.routing_name)
    if not slug or slug != make_slug(slug):
        raise BadSlug("want 1 to 64 lower-case letters, digits or inner hyphens, such as my-agent")
    return slug


class UnknownLogin(ValueError):
    """The hub has no user with the login; the text names it."""


def get_users_by_login(logins: Iterable[str]) -> list[User]:
    """The users with these logins, ignoring case.

    Raises:
        UnknownLogin: no user has one of these logins.
    """
    wanted = {login.lower(): login for login in logins}
    known = {key for key in wanted if key.isprintable()}  # the database refuses NUL
    found = User.objects.annotate(login_key=Lower("login")).filter(login_key__in=known)
    users = {user.login.lower(): user for user in found}
    for key, login in wanted.items():
        if key not in users:
            raise UnknownLogin(f"no user has the login {login}")
    return list(users.values())


@transaction.atomic
def set_granted_users(agent: Agent, users: Sequence[User]) -> None:
    """Set the users who may ask the agent while its access is limited.

    The calling function holds the lock on the agent's row.
    """
    agent.grants.exclude(user__in=users).delete()
    AgentGrant.objects.bulk_create([AgentGrant(agent=agent, user=user) for user in users], ignore_conflicts=True)


def load_granted_logins(agent_ids: Collection[int]) -> dict[int, list[str]]:
    """The logins of the users who may ask each limited agent, by agent id; every agent has an entry."""
    granted: dict[int, list[str]] = {agent_id: [] for agent_id in agent_ids}
    if granted:
        grants = AgentGrant.objects.filter(agent_id__in=granted).order_by("user__login")
        for agent_id, login in grants.values_list("agent_id", "user__login"):
            granted[agent_id].append(login)
    return granted


@transaction.atomic
def set_caller_budgets(agent: Agent, budgets: CallerBudgets) -> None:
    """Set the callers who have a daily budget of their own at the agent.

    Today's usage stays counted. The calling function holds the locks on the agent's session and then its row: the
    ledger writes the same rows under the session's lock, in another order.
    """
    agent.caller_budgets.exclude(caller__in=budgets).exclude(daily_budget=None).update(daily_budget=None)
    rows = [CallerBudget(agent=agent, caller=user, daily_budget=budget) for user, budget in budgets.items()]
    CallerBudget.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["agent", "caller"], update_fields=["daily_budget"]
    )


def load_caller_budgets(agent_ids: Collection[int]) -> dict[int, dict[str, int]]:
    """The budgets of single callers at each of these agents, by login; every agent has an entry."""
    budgets: dict[int, dict[str, int]] = {agent_id: {} for agent_id in agent_ids}
    if budgets:
        rows = CallerBudget.objects.filter(agent_id__in=budgets).exclude(daily_budget=None)
        named = rows.order_by("caller__login").values_list("agent_id", "caller__login", "daily_budget")
        for agent_id, login, budget in named:
            budgets[agent_id][login] = budget or 0
    return budgets


def block_caller(owner: User, caller: User) -> tuple[CallerBlock, bool]:
    """Refuse all asks of this caller to the owner's agents and sessions; returns the block and whether it is
    new.
    """
    return CallerBlock.objects.get_or_create(owner=owner, caller=caller)


def unblock_caller(owner: User, caller: User) -> int:
    """Remove the block of a caller; returns the number of deleted blocks, 1 or 0."""
    count, _ = CallerBlock.objects.filter(owner=owner, caller=caller).delete()
    return count
