"""Rows that a hub to measure has before it starts: users whose agents are asked, many other agents, old turns.

The functions run in a process with the hub's environment (`lab.in_django`); they return what the bench must know.
"""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from itertools import islice
from typing import Any

from django.db import transaction
from django.db.models import Model
from django.utils import timezone

from accounts import tokens
from accounts.models import Credential, User
from agents.models import Agent, AgentGrant, DailyUsage, Session, Turn
from agents.models.agent import MAX_BUDGET, MAX_CAP
from agents.models.choices import Outcome, Surface

AGENTS_AN_OWNER = 20
DAYS, TURNS = 30, 30
AT_ONCE = 2_000
TAGLINE = "answers questions about the build, its history and who broke it last"
DESCRIPTION = "What it knows, and how to ask for it. " * 12


@transaction.atomic
def seed(users: int) -> list[dict[str, str]]:
    """Users with one published agent each; each user's session token asks the agent of the next user.

    Of each user: the channel token, the session to which the agent comes back, the session token, and the handle
    of the agent that the user asks.
    """
    people = [tokens.get_or_create_local_user(f"bench-{number}") for number in range(users)]
    agents = [_publish(person) for person in people]
    asked = [*agents[1:], agents[0]]
    return [
        {
            "channel_token": tokens.mint(person, Credential.Kind.CHANNEL, "bench").token,
            "session_id": str(own.session.public_id),
            "session_token": tokens.mint(person, Credential.Kind.SESSION, "bench").token,
            "asks": other.handle,
        }
        for person, own, other in zip(people, agents, asked, strict=True)
    ]


def _publish(owner: User) -> Agent:
    agent = Agent(
        session=Session.objects.create(owner=owner, routing_name="echo"),
        owner=owner,
        handle=f"{owner.login}/echo",
        handle_key=f"{owner.login}/echo".lower(),
        name="Echo",
        daily_budget=MAX_BUDGET,
        concurrency_cap=MAX_CAP,
    )
    agent.set_status(Agent.Status.PUBLISHED)
    agent.save()
    return agent


@transaction.atomic
def seed_crowd(count: int) -> dict[str, str]:
    """So many agents with a month of usage and turns: every tenth a draft, every twentieth limited.

    The first owner is the caller, whose session token is returned, and who may ask some of the limited agents.
    """
    agents = add_agents(count)
    owners = list(User.objects.order_by("pk"))
    limited = [agent for agent in agents if agent.access == Agent.Access.LIMITED]
    write_rows(AgentGrant, (AgentGrant(agent=agent, user=owners[0]) for agent in limited[::3]))
    write_rows(DailyUsage, _usage(agents))
    write_rows(Turn, _turns(agents, owners))
    return {"session_token": tokens.mint(owners[0], Credential.Kind.SESSION, "bench").token}


def add_agents(count: int) -> list[Agent]:
    """So many agents, some an owner; the load asks none of them."""
    write_rows(User, (User(login=f"owner-{number}") for number in range(count // AGENTS_AN_OWNER + 1)))
    owners = list(User.objects.filter(login__startswith="owner-").order_by("pk"))
    write_rows(
        Session, (Session(owner=owners[n // AGENTS_AN_OWNER], routing_name=f"agent-{n}") for n in range(count))
    )
    sessions = Session.objects.filter(routing_name__startswith="agent-").select_related("owner").order_by("pk")
    write_rows(Agent, (_draft_or_published(number, session) for number, session in enumerate(sessions)))
    return list(Agent.objects.filter(session__in=sessions).order_by("pk"))


def _draft_or_published(number: int, session: Session) -> Agent:
    """An agent of the crowd, not yet written."""
    handle = f"{session.owner.login}/{session.routing_name}"
    agent = Agent(session=session, owner=session.owner, handle=handle, handle_key=handle, name=f"Agent {number}")
    agent.tagline, agent.description = TAGLINE, DESCRIPTION
    agent.access = Agent.Access.LIMITED if number % 20 == 7 else Agent.Access.PUBLIC
    agent.set_status(Agent.Status.DRAFT if number % 10 == 3 else Agent.Status.PUBLISHED)
    return agent


def _usage(agents: Iterable[Agent]) -> Iterator[DailyUsage]:
    today = timezone.now().date()
    for agent in agents:
        yield from (DailyUsage(agent=agent, day=today - timedelta(days=ago), queries=7) for ago in range(DAYS))


def _turns(agents: Iterable[Agent], callers: list[User]) -> Iterator[Turn]:
    now = timezone.now()
    for back in reversed(range(TURNS)):
        for agent in agents:
            asked_at = now - timedelta(hours=back)
            yield Turn(
                chat_id=f"crowd-{agent.pk}-{back}",
                agent=agent,
                session_id=agent.session_id,
                caller=callers[(agent.pk + back) % len(callers)],
                surface=Surface.A2A,
                question=TAGLINE,
                asked_at=asked_at,
                outcome=Outcome.DENIED if back % 5 == 0 else Outcome.COMPLETED,
                settled_at=asked_at,
                released_at=asked_at,
            )


def write_rows(model: type[Model], rows: Iterable[Any]) -> None:
    """Add many rows, some thousand at a time."""
    left = iter(rows)
    while batch := list(islice(left, AT_ONCE)):
        model._default_manager.bulk_create(batch)
