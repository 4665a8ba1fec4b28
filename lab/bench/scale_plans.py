"""The cost of admission in the database of a hub: answers requests line by line (`lab.in_django`).

The first line of standard input holds what `lab.bench.seed` said of the users; the first line of the answer
holds the plans. Each line after it asks for a batch: one ask for each user is looked up, admitted and settled, by
the code that the hub's ledger runs, and its times are the line that comes back. `scans`: the tables of over 5,000
rows that a statement reads whole.
"""

import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from django.db import connection

from accounts.authn import digest
from agents.core.ledger.batch import commit
from agents.core.ledger.database import thread_database
from agents.core.ledger.state import LookUp, look_up
from agents.core.ledger.texts import READ_CLOCK
from agents.core.ledger.work import Admit, Settle
from agents.core.types import Ask, OpenTurn, TurnEnding
from agents.models.choices import Outcome, Surface
from kit.ids import unguessable

BIG = 5_000
ALIAS = re.compile(r"(?:FROM|JOIN) \(?(\w+) (\w)\b")
HOME = "bench"
Heard = tuple[str, Mapping[str, Any]]  # a statement, and its values by name


def batch(users: Sequence[dict[str, str]]) -> dict[str, float]:
    """Milliseconds of one batch; `cpu_ms` is this process's share."""
    began, cpu = time.perf_counter(), time.process_time()
    turns = admit(users)
    admitted = time.perf_counter()
    settle(turns)
    return {
        "admit_ms": (admitted - began) * 1000,
        "settle_ms": (time.perf_counter() - admitted) * 1000,
        "cpu_ms": (time.process_time() - cpu) * 1000,
    }


def admit(users: Sequence[dict[str, str]]) -> list[OpenTurn]:
    """One ask of each user, as the bridge makes them."""
    found = look_up([LookUp(digest(user["session_token"]), user["asks"]) for user in users])
    works = []
    for one in found:
        assert one.identity is not None
        assert one.agent is not None
        caller = one.identity
        ask = Ask(
            chat_id=unguessable("bench-"),
            target=one.agent,
            caller_id=caller.user_id,
            caller_login=caller.login,
            surface=Surface.A2A,
            question="how is it?",
            wait_s=60.0,
        )
        works.append(Admit(ask))
    return [turn for turn in commit(works, home=HOME).results if isinstance(turn, OpenTurn)]


def settle(turns: Sequence[OpenTurn]) -> None:
    """Settle turns as answered."""
    ending = TurnEnding(outcome=Outcome.COMPLETED, text="it is well", latency_ms=20)
    commit([Settle(turn, ending) for turn in turns], home=HOME)


def plans(users: Sequence[dict[str, str]]) -> list[dict[str, Any]]:
    """The plan of every statement of one batch."""
    heard: list[Heard] = []
    database = thread_database()
    run = database.run
    setattr(database, "run", _listener(heard, run))  # noqa: B010
    try:
        settle(admit(users))
    finally:
        setattr(database, "run", run)  # noqa: B010
    big = _big_tables()
    if database.is_postgresql:  # plans depend on the moment, which is a transaction's
        connection.connection.execute("SELECT " + READ_CLOCK.replace(", true)", ", false)"))
    described = [(statement, _plan(statement, values)) for statement, values in heard]
    return [
        {"statement": " ".join(statement.split())[:200], "plan": plan, "scans": sorted(_read_whole(*each) & big)}
        for each in described
        if (plan := each[1]) and (statement := each[0])
    ]


def _read_whole(statement: str, plan: Any) -> set[str]:
    """The tables a statement scans, by their own names where SQLite says an alias."""
    aliases = {alias: name for name, alias in ALIAS.findall(statement)}
    return {aliases.get(name, name) for name in _scanned(plan)}


def _listener(heard: list[Heard], run: Callable[..., Any]) -> Callable[..., Any]:
    """Commands, and inserts of given rows, have no plan to look at, and are left out."""

    def listen(text: str, values: Any = None) -> Any:
        if isinstance(values, Mapping) and "json_populate_recordset" not in text:
            heard.append((text, values))
        return run(text, values) if values is not None else run(text)

    return listen


def _plan(statement: str, values: Mapping[str, Any]) -> Any:
    if statement.split(maxsplit=1)[0].upper() not in ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH"):
        return None
    how = "EXPLAIN (FORMAT JSON) " if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN "
    found = connection.connection.execute(how + statement, values).fetchall()
    if connection.vendor != "postgresql":
        return [row[-1] for row in found]
    return json.loads(found[0][0]) if isinstance(found[0][0], str) else found[0][0]


def _scanned(plan: Any) -> Iterator[str]:
    """Tables that a plan reads from one end to the other."""
    if isinstance(plan, list):
        for one in plan:
            yield from _scanned(one)
    elif isinstance(plan, dict):
        if plan.get("Node Type") == "Seq Scan":
            yield plan["Relation Name"]
        for one in plan.values():
            yield from _scanned(one)
    elif isinstance(plan, str) and plan.startswith("SCAN "):
        yield plan.split()[1]


def _big_tables() -> set[str]:
    """Tables with many rows."""
    names = [name for name in connection.introspection.table_names() if name.startswith(("agents_", "accounts_"))]
    with connection.cursor() as cursor:
        counts = {}
        for name in names:
            cursor.execute(f"SELECT count(*) FROM (SELECT 1 FROM {name} LIMIT {BIG + 1}) AS begun")
            counts[name] = cursor.fetchone()[0]
    return {name for name, count in counts.items() if count > BIG}


def answer_lines() -> None:
    """Answer line by line, until standard input ends."""
    users = json.loads(sys.stdin.readline())
    print(json.dumps(plans(users)), flush=True)
    for _ in sys.stdin:
        print(json.dumps(batch(users)), flush=True)
