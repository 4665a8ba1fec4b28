"""Publishing a session as an agent, and revising it: the verbs the native API and the admin share.

And whom an agent is limited to, what callers may spend of it, and whom an owner does not answer.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models.functions import Lower

from accounts import quotas
from accounts.models import User
from agents.core.registration import slug_of
from agents.models import Agent, AgentGrant, CallerBlock, CallerBudget, Session
from agents.settings import get_settings
from kit.clock import near_now

CallerBudgets = Mapping[User, int]


class BadSlug(ValueError):
    """No slug can be made of it, or it is not written as one."""


class Taken(Exception):
    """The handle or the session belongs to another agent; the text says which."""


@dataclass(frozen=True, slots=True)
class Published:
    """An agent as it now is; `restored` when a deleted one came back with its log."""

    agent: Agent
    restored: bool


@dataclass(frozen=True, slots=True)
class Place:
    """Where a session may be published: a free handle, and the deleted agent of the owner's that had it."""

    handle: str
    deleted: Agent | None


def publish(
    owner: User,
    session: Session,
    details: Mapping[str, Any],
    *,
    slug: str | None = None,
    allowed: Sequence[User] | None = None,
    budgets: CallerBudgets | None = None,
) -> Published:
    """Make an agent of a session of the owner's, `details` being fields of `Agent`.

    `allowed`: whom it answers while its access is limited. `budgets`: of named callers. A deleted agent of the
    same handle and owner is restored: what is not named stays as it was, but isolation, which is on unless asked
    otherwise.

    Raises:
        BadSlug, Taken, QuotaExceeded: nothing was written.
    """
    try:
        with transaction.atomic():
            check_room_for_another(owner)
            place = find_place(owner, session, slug)
            agent = place.deleted or Agent(owner=owner, handle=place.handle, handle_key=place.handle.lower())
            agent.session, agent.deleted_at = session, None
            _apply(agent, {"status": Agent.Status.DRAFT, "isolated": True, **details})
            agent.save()
            if allowed is not None:
                grant(agent, allowed)
            if budgets is not None:
                set_budgets(agent, budgets)
    except IntegrityError:  # somebody else published the handle or the session in this moment
        raise Taken("the handle or the session was published a moment ago") from None
    return Published(agent, restored=place.deleted is not None)


def check_room_for_another(owner: User) -> None:
    """Refuse one agent too many; call it in the transaction that publishes.

    Raises:
        accounts.quotas.QuotaExceeded: the owner has as many, drafts counted, as one may.
    """
    if most := get_settings().agents_per_owner:
        quotas.hold(owner.pk)
        quotas.check(Agent.objects.kept().owned_by(owner).count(), most, "agents")


def find_place(owner: User, session: Session, slug: str | None) -> Place:
    """Where this session can be published.

    Raises:
        BadSlug, Taken: nowhere.
    """
    handle = f"{owner.login}/{_slug(session, slug)}"
    if holder := Agent.objects.kept().filter(session=session).first():
        raise Taken(f"the session is published as @{holder.handle} already")
    if holder := Agent.objects.kept().at(handle).first():
        if holder.owner_id != owner.pk:
            raise Taken(f"@{handle} is taken")
        raise Taken(
            f"@{handle} is yours already, on another session: delete it and publish anew, its log comes back"
        )
    deleted = list(Agent.objects.select_for_update().at(handle).exclude(deleted_at=None).order_by("-pk"))
    if any(agent.owner_id != owner.pk for agent in deleted):
        raise Taken(f"@{handle} belonged to somebody else")
    return Place(handle, deleted[0] if deleted else None)


@transaction.atomic
def revise(
    agent_id: int,
    changes: Mapping[str, Any],
    allowed: Sequence[User] | None = None,
    budgets: CallerBudgets | None = None,
) -> Agent | None:
    """Change fields of a kept agent, and only those; None when it was deleted meanwhile.

    `allowed`: whom it answers while its access is limited; `budgets`: of named callers; None leaves them.
    """
    if budgets is not None:
        _lock_session_of(agent_id)
    kept = Agent.objects.kept().select_for_update(no_key=True)  # the ledger refers to the row meanwhile
    agent: Agent | None = kept.filter(pk=agent_id).first()
    if agent is None:
        return None
    if changes:
        _apply(agent, changes)
        agent.save(update_fields=[*changes, "published_at", "revised_at"])
    if allowed is not None:
        grant(agent, allowed)
    if budgets is not None:
        set_budgets(agent, budgets)
    return agent


def _lock_session_of(agent_id: int) -> None:
    """Wait for the ledger, which counts under this lock. It comes before the agent's row, as in deleting."""
    of_agent = Agent.objects.filter(pk=agent_id).values("session_id")
    Session.objects.select_for_update(no_key=True).filter(pk__in=of_agent).values_list("pk").first()


def _apply(agent: Agent, changes: Mapping[str, Any]) -> None:
    for field, value in changes.items():
        setattr(agent, field, value)
    agent.set_status(agent.status)
    agent.revised_at = near_now()


def _slug(session: Session, wanted: str | None) -> str:
    slug = wanted or slug_of(session.routing_name)
    if not slug or slug != slug_of(slug):
        raise BadSlug("want 1 to 64 lower-case letters, digits or inner hyphens, such as my-agent")
    return slug


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
def grant(agent: Agent, users: Sequence[User]) -> None:
    """Let these, and no others, ask the agent while its access is limited.

    The caller holds the agent's row.
    """
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


@transaction.atomic
def set_budgets(agent: Agent, budgets: CallerBudgets) -> None:
    """Give these callers, and no others, a daily budget of their own at the agent.

    What they spent today stays counted. The caller holds the agent's session, then its row: the ledger writes the
    same rows under the session's lock, in another order.
    """
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
