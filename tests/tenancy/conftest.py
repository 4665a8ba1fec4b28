"""The world of the matrix: by every caller on SQLite, by one of each kind with two processes on PostgreSQL.

`make test-deep` runs every caller on PostgreSQL, too; `make attack` runs every caller on SQLite.
"""

from collections.abc import Generator, Iterator

import pytest

from lab.hub_storage import MakeStorage
from lab.waiting import until
from tests.attempts import Attempts
from tests.tenancy.callers import CALLERS, ONE_OF_EACH_KIND
from tests.tenancy.world import World, world

GROWN = [pytest.mark.slow, pytest.mark.distributed]
HOMES = [
    pytest.param(("embedded", 1, CALLERS), id="embedded", marks=pytest.mark.attack),
    pytest.param(("grown", 2, ONE_OF_EACH_KIND), id="grown", marks=GROWN),
    pytest.param(("grown", 2, CALLERS), id="grown-by-all", marks=[*GROWN, pytest.mark.deep]),
]
FOREIGN = "requests of each kind of caller and token for each address, and for rows of others"
RESTLESS = """
SELECT (SELECT count(*) FROM agents_turn WHERE outcome IS NULL), (SELECT count(*) FROM agents_connection),
  (SELECT count(*) FROM evaluations_evaluationrun WHERE ended_at IS NULL)
"""


@pytest.fixture(scope="package", params=HOMES)
def tenants(request: pytest.FixtureRequest, make_storage: MakeStorage) -> Iterator[World]:
    """A hub with two tenants and everything of theirs."""
    home, processes, callers = request.param
    with world(make_storage(home), callers, processes=processes) as made:
        yield made


@pytest.fixture(autouse=True)
def _quiet(request: pytest.FixtureRequest) -> Iterator[None]:
    """Wait until a test's asks are answered and its agents gone, before the next test looks at the tables."""
    tenants = request.getfixturevalue("tenants") if "tenants" in request.fixturenames else None
    yield
    if tenants is not None:
        until(lambda: tenants.changes.sql(RESTLESS) == [(0, 1, 0)], "nothing is under way", within_s=20)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Count the requests of a test; one that fails broke something."""
    tenants = item.funcargs.get("tenants") if isinstance(item, pytest.Function) else None
    if not isinstance(tenants, World):
        return (yield)
    before, broke = tenants.web.sent, 1
    try:
        result = yield
        broke = 0
    finally:
        Attempts(item).count(FOREIGN, tenants.web.sent - before, broke)
    return result
