"""`python -m lab.bench.seed`, with the environment of a hub: users with one published agent each, as JSON.

One line a user: its login and channel token, the session its agent comes back to, and the agent its session token
asks, which is its neighbour's.
"""

import json
import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hub.settings")
django.setup()

from django.db import transaction  # noqa: E402

from accounts import tokens  # noqa: E402
from accounts.models import Credential, User  # noqa: E402
from agents.models import Agent, Session  # noqa: E402
from agents.models.agent import MAX_BUDGET, MAX_CAP  # noqa: E402


@transaction.atomic
def seed(users: int) -> list[dict[str, str]]:
    """Make them all in one go."""
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


if __name__ == "__main__":
    json.dump(seed(int(sys.argv[1])), sys.stdout)
