"""The cost of an ask stays bounded: the calls it makes, and our modules and functions that it runs through.

A limit is 10 % above what was reached. `python -m lab.bench.calls --top 60` says where the calls are made.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from lab.bench import calls
from lab.bench.calls import Counting
from lab.hub_storage import MakeStorage

ASKS = 60


@dataclass(frozen=True)
class Limit:
    """Of one unary ask that is alone, on SQLite. `calls`: of Python and C functions, on loop and ledger thread."""

    calls: int
    modules: int
    functions: int


LIMITS = {
    "hub": Limit(calls=810, modules=52, functions=198),
    "1.0": Limit(calls=840, modules=53, functions=200),
}


@pytest.fixture(scope="module")
def counting_hub(make_storage: MakeStorage) -> Iterator[Counting]:
    with calls.counting(make_storage("embedded"), users=2) as hub:
        yield hub


@pytest.mark.slow
@pytest.mark.parametrize("dialect", LIMITS)
def test_an_ask_costs_no_more_than_it_did(counting_hub: Counting, dialect: str) -> None:
    cost, limit = counting_hub.cost(dialect, "unary", 1, ASKS), LIMITS[dialect]
    found = calls.report([cost], top=30).text
    assert cost.calls <= limit.calls, found
    assert cost.modules <= limit.modules, found
    assert cost.functions <= limit.functions, found
