"""The cost of an ask stays bounded: its calls, our modules and functions that it runs through, and its garbage.

A limit is 10 % above what was reached. `python -m lab.bench.calls --top 60` says where the calls are made.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from lab.bench import calls, hubs
from lab.bench.calls import Counting
from lab.bench.probes import Probe, serve_command
from lab.hub_storage import MakeStorage

ASKS = 60


@dataclass(frozen=True)
class Limit:
    """Of one unary ask that is alone, on SQLite. `calls`: of Python and C functions, on loop and ledger thread."""

    calls: int
    modules: int
    functions: int


LIMITS = {  # by the store of tasks; the journal is the default
    "memory": {
        "hub": Limit(calls=547, modules=58, functions=220),
        "1.0": Limit(calls=578, modules=59, functions=226),
    },
    "journal": {
        "hub": Limit(calls=627, modules=58, functions=218),
        "1.0": Limit(calls=657, modules=59, functions=231),
    },
}


@pytest.fixture(scope="module", params=LIMITS)
def counted(request: pytest.FixtureRequest, make_storage: MakeStorage) -> Iterator[tuple[Counting, str]]:
    """A hub that counts, and its store of tasks."""
    with calls.counting(make_storage("embedded"), users=2, TASK_STORE=request.param) as hub:
        yield hub, request.param


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["hub", "1.0"])
def test_an_ask_costs_no_more_than_it_did(counted: tuple[Counting, str], dialect: str) -> None:
    hub, store = counted
    cost, limit = hub.cost(dialect, "unary", 1, ASKS), LIMITS[store][dialect]
    found = calls.report([cost], top=30).text
    assert cost.calls <= limit.calls, found
    assert cost.modules <= limit.modules, found
    assert cost.functions <= limit.functions, found


@pytest.mark.slow
def test_an_ask_leaves_no_circle_of_objects(make_storage: MakeStorage) -> None:
    """Such objects stay until a collection of garbage, and no ask is answered while one runs."""
    storage = make_storage("embedded")
    folder, users = storage.folder.parent, hubs.seed(storage, 2)
    with hubs.running(storage, users, command=serve_command("growth", folder), TASK_STORE="memory") as hub:
        probe, [target] = Probe(hub.web[0].pid, folder), hub.asked()

        def collected(times: int) -> int:
            asyncio.run(calls.ask_over_one(target.port, target.callers[0], "unary", times))
            found: int = probe.read(collect=True)["collected"]
            return found

        before = collected(calls.WARM_UP)
        assert collected(ASKS) - before < ASKS
