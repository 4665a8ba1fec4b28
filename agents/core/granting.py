"""Whom an agent is limited to, what callers may spend of it, and whom an owner does not answer."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from django.db import transaction
from django.db.models.functions import Lower

from accounts.models import User
from agents.models import Agent, AgentGrant, CallerBlock, CallerBudget


class UnknownLogin(ValueError):
    """Nobody of this hub has the login; the text says which."""


def users_named(logins: Iterable[str]) -> list[User]:
    """The holders of these logins, in any case.

    Raises:
        UnknownLogin: one of them is nobody's.
    """
    wanted = {login.lower(): login for login in logins}
    known = {key for key in wanted if key.isprintable()}  # the database refuses NUL
    found = User.objects.annotate(login_key=Lower("login")).filter(login_key__in=known)
    users = {user.login.lower(): user for user in found}
    for key, login in wanted.items():
        if key not in users:
            raise UnknownLogin(f"nobody here is called {login}")
    return list(users.values())


@transaction.atomic
def grant(agent: Agent, users: Sequence[User] | None) -> None:
    """Let these, and no others, ask the agent while its access is limited; None leaves it as it is.

    The caller holds the agent's row.
    """
    if users is None:
        return
    agent.grants.exclude(user__in=users).delete()
    AgentGrant.objects.bulk_create([AgentGrant(agent=agent, user=user) for user in users], ignore_conflicts=True)


def logins_granted(agent_ids: Collection[int]) -> dict[int, list[str]]:
    """Whom each of these agents is limited to, by login; every agent is in it."""
    granted: dict[int, list[str]] = {agent_id: [] for agent_id in agent_ids}
    if granted:
        grants = AgentGrant.objects.filter(agent_id__in=granted).order_by("user__login")
        for agent_id, login in grants.values_list("agent_id", "user__login"):
            granted[agent_id].append(login)
    return granted


CallerBudgets = Mapping[User, int]


@transaction.atomic
def set_budgets(agent: Agent, budgets: CallerBudgets | None) -> None:
    """Give these callers, and no others, a daily budget of their own at the agent; None leaves all as they are.

    What they spent today stays counted. The caller holds the agent's session, then its row: the ledger writes the
    same rows under the session's lock, in another order.
    """
    if budgets is None:
        return
    agent.caller_budgets.exclude(caller__in=budgets).exclude(daily_budget=None).update(daily_budget=None)
    rows = [CallerBudget(agent=agent, caller=user, daily_budget=budget) for user, budget in budgets.items()]
    CallerBudget.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["agent", "caller"], update_fields=["daily_budget"]
    )


def budgets_of(agent_ids: Collection[int]) -> dict[int, dict[str, int]]:
    """The budgets that each of these agents gives named callers, by login; every agent is in it."""
    budgets: dict[int, dict[str, int]] = {agent_id: {} for agent_id in agent_ids}
    if budgets:
        rows = CallerBudget.objects.filter(agent_id__in=budgets).exclude(daily_budget=None)
        named = rows.order_by("caller__login").values_list("agent_id", "caller__login", "daily_budget")
        for agent_id, login, budget in named:
            budgets[agent_id][login] = budget or 0
    return budgets


def block(owner: User, caller: User) -> tuple[CallerBlock, bool]:
    """Answer this caller no more, whatever they ask of the owner's; the block, and whether it is new."""
    return CallerBlock.objects.get_or_create(owner=owner, caller=caller)


def unblock(owner: User, login: str) -> int:
    """Answer the caller of a login again; how many blocks went: 1, or 0 when there was none."""
    count, _ = CallerBlock.objects.filter(owner=owner, caller__login__iexact=login).delete()
    return count
