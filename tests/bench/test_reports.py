"""The requests of benches, and their reports of counted calls, of runs and of times."""

import pytest

from accounts.models import Credential
from agents.models import Connection, Session, Turn
from lab.bench import completions, mcp
from lab.bench.calls import CallCount, CountedAsks, cost_of
from lab.bench.client import BenchCaller
from lab.bench.mcp import A2A, MCP_2025, MCP_2026, WAYS, request_of
from lab.bench.scale_plans import plans
from lab.bench.seed import fill
from lab.bench.soak import Sample, grown
from lab.figures import BenchResult
from tests.bench.runs import run
from tests.contracts.rows import live_process

ASKED = CountedAsks("embedded", "hub", "unary", 1, asks=10)
ROWS = [
    CallCount("MainThread", "agents/core/ledger/thread.py", "Ledger._post", "", 20),
    CallCount("MainThread", "agents/core/ledger/thread.py", "Ledger._post", "SimpleQueue.put", 20),
    CallCount("MainThread", "/usr/lib/python3.11/asyncio/events.py", "Handle.cancel", "", 30),
    CallCount("MainThread", "/usr/lib/python3.11/concurrent/futures/thread.py", "submit", "SimpleQueue.put", 40),
    CallCount("ledger", "kit/sql.py", "rows", "Connection.execute", 50),
    CallCount("ledger", "kit/sql.py", "rows", "", 50),
    CallCount("watch_1", "accounts/authn.py", "still_good", "", 4),
]


def test_calls_are_counted_by_thread_function_and_trip() -> None:
    cost = cost_of(ROWS, ASKED)
    assert cost.calls == 21.0
    assert cost.threads == {"loop": (5.0, 6.0), "ledger": (5.0, 5.0), "others": (0.4, 0.0)}
    assert cost.top[0] == (6.0, "C SimpleQueue.put")
    assert (cost.modules, cost.functions) == (2, 2)  # of the project, that run for every second ask
    assert (cost.ledger_trips, cost.database_trips) == (2.0, 5.0)  # of the ledger alone
    assert cost_of(ROWS, ASKED, round_trips=30).database_trips == 3.0


def test_the_ratio_is_that_of_the_median_round() -> None:
    # A round in which all was slow counts as much as the others.
    rounds = [(run(1000), run(900)), (run(100), run(85)), (run(1000), run(100))]
    result = completions.report({"embedded, unary": rounds, "embedded, stream": [(run(100), run(79))]}, 3)
    goals = {goal[0].partition(":")[0]: goal[-2:] for goal in result.goals}
    assert goals == {"embedded, unary": ["0.85", "met"], "embedded, stream": ["0.79", "NOT MET"]}


CALLER = BenchCaller("/api/a2a/v1/agents/owner/helper", "Authorization: Bearer t\r\nA2A-Version: 1.0\r\n")


def test_each_way_asks_the_same_agent_the_same() -> None:
    asked = {way: request_of(way, CALLER, "hello") for way in WAYS}
    assert asked[A2A][0] == CALLER.path
    for way in (MCP_2025, MCP_2026):
        path, headers, body = asked[way]
        assert path == "/mcp"
        assert "Authorization: Bearer t\r\n" in headers
        assert body["params"]["arguments"] == {"handle": "owner/helper", "message": "hello"}
        assert ("_meta" in body["params"]) is (way == MCP_2026)


def test_what_a_way_adds_is_compared_within_a_round() -> None:
    times = {A2A: [1.0, 5.0, 2.0], MCP_2025: [4.0, 7.0, 5.0], MCP_2026: [2.0, 6.0, 3.0]}
    goals = [goal[-2:] for goal in mcp.report({"embedded": times}, 3).goals]
    assert goals == [["3.00", "NOT MET"], ["1.00", "met"]]


def sample(at_s: float, rss_kib: int) -> Sample:
    return Sample(at_s, rss_kib, fds=1, threads=1, tasks=1, db_connections=1, redis_clients=1, redis_kib=1)


def test_a_goal_is_met_or_it_is_said_that_it_is_not() -> None:
    result = BenchResult("name", "title")
    result.goal("cost", "at most", 1.15, 1.14)
    result.goal("cost", "at most", 1.15, 1.16)
    result.goal("speed", "at least", 4, 3.9)
    assert [line[-1] for line in result.goals] == ["met", "NOT MET", "NOT MET"]
    assert "NOT MET" in result.text


def test_growth_is_counted_from_the_end_of_the_warm_up() -> None:
    climbing = [sample(at_s, 100 + at_s) for at_s in range(0, 100)]
    assert grown(climbing, "rss_kib", 50) == (152, 197)
    level = [sample(at_s, min(at_s, 50)) for at_s in range(0, 100)]
    assert grown(level, "rss_kib", 50) == (50, 50)


@pytest.mark.slow
@pytest.mark.django_db
def test_no_statement_of_an_ask_reads_all_of_a_table_with_a_past() -> None:
    asked = fill(asked=10, agents=20, turns=6000)
    home = live_process()
    for channel in Credential.objects.filter(kind=Credential.Kind.CHANNEL):
        session = Session.objects.get(owner=channel.user)
        Connection.objects.create(session=session, process=home, credential=channel)
    found = plans(asked)
    assert Turn.objects.exclude(chat_id__startswith="past-").filter(outcome="completed").count() == len(asked)
    assert any("agents_turn" in one["statement"] for one in found)
    assert not [one for one in found if one["scans"]]
