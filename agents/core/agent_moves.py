"""The sessions to which an agent can move, and the conditions of a move."""

from django.db.models import Q, QuerySet

from agents.core.halt_rules import HaltSubject
from agents.models import Agent, Halt, QueuedAsk, Session, Turn


class NotMovable(Exception):
    """The agent cannot move to the session now; the text says why. The hub wrote nothing."""


def find_destinations(agent: Agent) -> QuerySet[Session]:
    """The other sessions of the agent's owner to which the agent could move."""
    published = Agent.objects.kept().values("session_id")
    own: QuerySet[Session] = Session.objects.kept().filter(owner_id=agent.owner_id, link=agent.session.link)
    return own.exclude(pk__in=published)


def lock_sessions(agent_id: int, session: Session | None = None) -> set[int]:
    """Lock the agent's session, and the other one if given, in the order of their keys; returns the locked ids.

    The ledger counts under the lock of the agent's session. The session is locked before the agent's row, as in
    deleting, so that the two cannot deadlock.
    """
    wanted = Q(pk__in=Agent.objects.filter(pk=agent_id).values("session_id"))
    if session is not None:
        wanted |= Q(pk=session.pk)
    locked = Session.objects.select_for_update(no_key=True).filter(wanted).order_by("pk")
    return set(locked.values_list("pk", flat=True))


def check_move(agent: Agent, session: Session, locked: set[int]) -> None:
    """Check that the agent can move to the session; call it under the locks of both sessions and the agent's row.

    A turn ends on the session on which it began, and its caller, its claim and its permission requests are looked
    up there by the agent's session; so none may be open.

    Raises:
        NotMovable: the agent cannot move to the session now.
    """
    if not {agent.session_id, session.pk} <= locked:
        raise NotMovable("the agent or the session was changed a moment ago: try again")
    session.refresh_from_db()
    if session.owner_id != agent.owner_id or session.archived_at is not None:
        raise NotMovable("the session is archived: connect its program again first")
    if session.link != agent.session.link:
        raise NotMovable("an agent of a program cannot move to a remote server, nor the other way round")
    if holder := Agent.objects.kept().filter(session=session).first():
        raise NotMovable(f"the session is published as @{holder.handle} already")
    if HaltSubject(Halt.Kind.AGENT, agent=agent).halts.exists():
        raise NotMovable("the agent is halted: resume it first")
    if _has_open_asks(agent):
        raise NotMovable("a question to the agent is open: try again when it has ended, or unpublish the agent")


def _has_open_asks(agent: Agent) -> bool:
    theirs = {"session_id": agent.session_id, "agent": agent}
    return Turn.objects.open().filter(**theirs).exists() or QueuedAsk.objects.filter(**theirs).exists()
