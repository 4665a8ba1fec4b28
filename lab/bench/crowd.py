"""`python -m lab.bench.crowd AGENTS`, with the environment of a hub: that many agents with a past, as JSON.

The answer is the session token of a caller who owns some of them, and may ask those that are public and a few of
the limited ones.
"""

import json
import os
import sys
from collections.abc import Iterable, Iterator
from datetime import timedelta
from itertools import islice
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hub.settings")
django.setup()

from django.db import transaction  # noqa: E402
from django.db.models import Model  # noqa: E402
from django.utils import timezone  # noqa: E402

from accounts import tokens  # noqa: E402
from accounts.models import Credential, User  # noqa: E402
from agents.models import Agent, AgentGrant, DailyUsage, Session, Turn  # noqa: E402
from agents.types import Outcome, Surface  # noqa: E402

AGENTS_AN_OWNER = 20
DAYS, TURNS = 30, 30
AT_ONCE = 2_000
TAGLINE = "answers questions about the build, its history and who broke it last"
DESCRIPTION = "What it knows, and how to ask for it. " * 12


@transaction.atomic
def seed(count: int) -> dict[str, str]:
    """Make them all: every tenth a draft, every twentieth limited; the first owner is the caller."""
    write_rows(User, (User(login=f"owner-{number}") for number in range(count // AGENTS_AN_OWNER + 1)))
    owners = list(User.objects.order_by("pk"))
    write_rows(
        Session, (Session(owner=owners[n // AGENTS_AN_OWNER], routing_name=f"agent-{n}") for n in range(count))
    )
    sessions = list(Session.objects.select_related("owner").order_by("pk"))
    write_rows(Agent, (draft_or_published(number, session) for number, session in enumerate(sessions)))
    agents = list(Agent.objects.order_by("pk"))
    limited = [agent for agent in agents if agent.access == Agent.Access.LIMITED]
    write_rows(AgentGrant, (AgentGrant(agent=agent, user=owners[0]) for agent in limited[::3]))
    write_rows(DailyUsage, _usage(agents))
    write_rows(Turn, _turns(agents, owners))
    return {
        "session_token": tokens.mint(owners[0], Credential.Kind.SESSION, "bench").token,
        "login": owners[0].login,
    }


def draft_or_published(number: int, session: Session) -> Agent:
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


if __name__ == "__main__":
    json.dump(seed(int(sys.argv[1])), sys.stdout)
