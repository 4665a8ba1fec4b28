"""What `lab.bench.calls` makes of counted calls."""

from lab.bench.calls import CallCount, CountedAsks, cost_of

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


def test_calls_are_told_by_thread_and_function() -> None:
    cost = cost_of(ROWS, ASKED)
    assert cost.calls == 21.0
    assert cost.threads == {"loop": (5.0, 6.0), "ledger": (5.0, 5.0), "others": (0.4, 0.0)}
    assert cost.top[0] == (6.0, "C SimpleQueue.put")


def test_modules_and_functions_are_ours_and_of_every_second_ask() -> None:
    cost = cost_of(ROWS, ASKED)
    assert (cost.modules, cost.functions) == (2, 2)


def test_trips_are_those_of_the_ledger() -> None:
    cost = cost_of(ROWS, ASKED)
    assert (cost.ledger_trips, cost.database_trips) == (2.0, 5.0)
    assert cost_of(ROWS, ASKED, round_trips=30).database_trips == 3.0
