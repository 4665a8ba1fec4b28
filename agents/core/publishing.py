"""Publishing a session as an agent, and revising it: the verbs the native API and the admin share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction

from accounts import quotas
from accounts.models import User
from agents.core.granting import CallerBudgets, grant, set_budgets
from agents.core.session_rows import slug_of
from agents.models import Agent, Session
from agents.settings import get_settings
from kit.clock import near_now


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
            grant(agent, allowed)
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
    grant(agent, allowed)
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
