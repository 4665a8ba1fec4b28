"""Rows that a hub to measure has before it starts.

Users whose agents are asked, many other agents, and old turns; an AGNT network with its venues and keys. The
functions run in a process with the hub's environment (`lab.in_django`); they return what the bench must know.
A million turns are written by SQL, so that they take about a minute.
"""

import json
from collections.abc import Iterable, Iterator
from datetime import timedelta
from itertools import islice
from typing import Any

from django.db import connection, transaction
from django.db.models import Model
from django.utils import timezone

from accounts import tokens
from accounts.models import Credential, User
from agents.models import Agent, AgentGrant, DailyUsage, Session, Turn
from agents.models.agent import MAX_BUDGET, MAX_CAP
from agents.models.choices import Outcome, Surface
from agnt.models import ApiKey, Network, Venue
from agnt.service.keys import mint_key
from agnt.service.networks import get_or_create_network
from lab.bench.agnt_requests import CATEGORIES, PLACES, WORDS, WORDS_A_VENUE, name_venue, slug_of

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
    """Write `count` agents with a month of usage and turns: every tenth a draft, every twentieth limited.

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
    """Write `count` agents, several of one owner; the load asks none of them."""
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


KEYS = 4  # so that no daily limit ends a long run


@transaction.atomic
def seed_network(count: int) -> list[dict[str, str]]:
    """A network with so many venues; the text and the signing secret of each of its keys."""
    owner = tokens.get_or_create_local_user("bench-network")
    network = get_or_create_network(owner)
    write_rows(Venue, _venues(network, count))
    Network.objects.filter(pk=network.pk).note_venue_change()
    tier, scope = ApiKey.Tier.ENTERPRISE, ApiKey.Scope.FULL
    keys = [mint_key(owner, f"bench-{number}", tier=tier, scope=scope) for number in range(KEYS)]
    return [{"token": key.token, "secret": key.secret} for key in keys]


def _venues(network: Network, count: int) -> Iterator[Venue]:
    for number in range(count):
        area, city = PLACES[number % len(PLACES)]
        words = [WORDS[(number * 7 + step * 5) % len(WORDS)] for step in range(WORDS_A_VENUE)]
        yield Venue(
            network=network,
            slug=slug_of(number),
            name=name_venue(number),
            description=f"A place for {' and '.join(words)}, open every day.",
            category=CATEGORIES[number % len(CATEGORIES)],
            area=area,
            city=city,
            tags=words[:3],
            price_range="$" * (1 + number % 4),
            priority_rank=number % 10,
        )


PAST_DAYS = 90
TURNS_AT_ONCE = 100_000

_NUMBERS = "WITH RECURSIVE n(i) AS (SELECT {first} UNION ALL SELECT i + 1 FROM n WHERE i < {last})"
_DEALT = """
FROM n JOIN (SELECT id, session_id, owner_id, row_number() OVER (ORDER BY id) - 1 AS place
             FROM agents_agent) a ON a.place = mod(n.i, {agents})
"""
_TURNS = (
    """
INSERT INTO agents_turn (chat_id, agent_id, session_id, caller_id, surface, question, asked_at, outcome, reason,
  settled_at, latency_ms, usage_day, released_at, claim_until, home, repeats, depth, traceparent)
{numbers} SELECT 'past-' || n.i, a.id, a.session_id, a.owner_id, 'a2a', %s, {at}, 'completed', '',
  {at}, 20, {day}, {at}, {at}, 'bench', 1, 0, ''
"""
    + _DEALT
)
_EVENTS = (
    """
INSERT INTO agents_event (session_id, kind, type, payload, ts)
{numbers} SELECT a.session_id, 'chat', {type}, %s, {at}
"""
    + _DEALT
)
_USAGE = """
INSERT INTO agents_dailyusage (agent_id, day, queries)
{numbers} SELECT a.id, {back}, 7 FROM n, agents_agent a
"""
_CREDENTIALS = """
INSERT INTO accounts_credential (user_id, kind, name, prefix, digest, user_agent, machine_id, app_name, source,
  created_at)
SELECT id, 'session', 'bench', 'cw_sess_', 'of-' || id, '', '', '', '', {now} FROM accounts_user
"""
_CLOCK = {
    "postgresql": {
        "now": "now()",
        "at": "now() - interval '1 second' * {step} * ({turns} - n.i)",
        "day": "(now() - interval '1 second' * {step} * ({turns} - n.i))::date",
        "back": "CURRENT_DATE - n.i",
    },
    "sqlite": {
        "now": "datetime('now')",
        "at": "datetime('now', (-{step} * ({turns} - n.i)) || ' seconds')",
        "day": "date('now', (-{step} * ({turns} - n.i)) || ' seconds')",
        "back": "date('now', -n.i || ' days')",
    },
}


def fill(asked: int, agents: int, turns: int) -> list[dict[str, str]]:
    """`asked` users with an agent each, as `seed` makes them, among `agents` agents in all.

    `turns`: questions over 90 days, each with its two events, dealt evenly to all agents. At the end the database
    analyses its tables.
    """
    with transaction.atomic():
        seeded = seed(asked)
        if agents > asked:
            add_agents(agents - asked)
    step = PAST_DAYS * 86_400 / turns
    clock = {name: text.format(step=step, turns=turns) for name, text in _CLOCK[connection.vendor].items()}
    _run(_CREDENTIALS.format(**clock))
    _run(_USAGE.format(numbers=_NUMBERS.format(first=1, last=PAST_DAYS), **clock))
    payload = json.dumps({"text": TAGLINE, "chatId": "past"})
    for first in range(1, turns + 1, TURNS_AT_ONCE):
        numbers = _NUMBERS.format(first=first, last=min(turns, first + TURNS_AT_ONCE - 1))
        known = {"numbers": numbers, "agents": agents, **clock}
        _run(_TURNS.format(**known), TAGLINE)
        for type_ in ("'prompt'", "'reply'"):
            _run(_EVENTS.format(type=type_, **known), payload)
    _run("VACUUM ANALYZE" if connection.vendor == "postgresql" else "ANALYZE")
    return seeded


def _run(statement: str, *values: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values or None)
