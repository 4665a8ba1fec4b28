"""Rows of a hub that ran for long: the agents that are asked, many others, many old turns (`lab.in_django`).

Rows are written by SQL, so that a million turns take about a minute.
"""

import json

from django.db import connection, transaction

from lab.bench.seed import TAGLINE, add_agents, seed

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
    """`asked` users with an agent each, as `seed` makes them, among `agents` agents in all.

    `turns`: questions over 90 days, each with its two events, dealt evenly to all agents. At the end the database
    analyses its tables.
    """
    with transaction.atomic():
        seeded = seed(asked)
        if agents > asked:
            add_agents(agents - asked)
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


def _run(statement: str, *values: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values or None)
