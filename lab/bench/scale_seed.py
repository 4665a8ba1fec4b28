"""`python -m lab.bench.scale_seed ASKED AGENTS TURNS`, with the environment of a hub: agents with a past, as JSON.

`ASKED` users with an agent each, as lab.bench.seed makes them, among `AGENTS` agents in all; `TURNS` questions
over 90 days, each with its two events, dealt evenly to all agents. By SQL, so that a million take about a minute.
"""

import json
import os
import sys

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hub.settings")
django.setup()

from django.db import connection, transaction  # noqa: E402

from accounts.models import User  # noqa: E402
from agents.models import Agent, Session  # noqa: E402
from lab.bench.crowd import AGENTS_AN_OWNER, TAGLINE, draft_or_published, write_rows  # noqa: E402
from lab.bench.seed import seed  # noqa: E402

DAYS = 90
AT_ONCE = 100_000

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
    """Write everything and let the database count it; what lab.bench.seed says of the asked."""
    with transaction.atomic():
        seeded = seed(asked)
        _crowd(agents - asked)
    step = DAYS * 86_400 / turns
    clock = {name: text.format(step=step, turns=turns) for name, text in _CLOCK[connection.vendor].items()}
    _run(_CREDENTIALS.format(**clock))
    _run(_USAGE.format(numbers=_NUMBERS.format(first=1, last=DAYS), **clock))
    payload = json.dumps({"text": TAGLINE, "chatId": "past"})
    for first in range(1, turns + 1, AT_ONCE):
        numbers = _NUMBERS.format(first=first, last=min(turns, first + AT_ONCE - 1))
        known = {"numbers": numbers, "agents": agents, **clock}
        _run(_TURNS.format(**known), TAGLINE)
        for type_ in ("'prompt'", "'reply'"):
            _run(_EVENTS.format(type=type_, **known), payload)
    _run("VACUUM ANALYZE" if connection.vendor == "postgresql" else "ANALYZE")
    return seeded


def _crowd(count: int) -> None:
    """Agents that are not asked, some a user."""
    if count <= 0:
        return
    write_rows(User, (User(login=f"owner-{number}") for number in range(count // AGENTS_AN_OWNER + 1)))
    owners = list(User.objects.filter(login__startswith="owner-").order_by("pk"))
    write_rows(
        Session, (Session(owner=owners[n // AGENTS_AN_OWNER], routing_name=f"agent-{n}") for n in range(count))
    )
    sessions = Session.objects.filter(routing_name__startswith="agent-").select_related("owner").order_by("pk")
    write_rows(Agent, (draft_or_published(number, one) for number, one in enumerate(sessions)))


def _run(statement: str, *values: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values or None)


if __name__ == "__main__":
    json.dump(fill(*map(int, sys.argv[1:4])), sys.stdout)
