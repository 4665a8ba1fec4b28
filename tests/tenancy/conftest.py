"""The world of the matrix: by every caller on SQLite, by one of each kind with two processes on PostgreSQL.

`make test-deep` runs every caller on PostgreSQL, too.
"""

from collections.abc import Iterator

import pytest

from lab.hub_storage import MakeStorage
from lab.waiting import until
from tests.tenancy.callers import CALLERS, ONE_OF_EACH_KIND
from tests.tenancy.world import World, world

GROWN = [pytest.mark.slow, pytest.mark.distributed]
HOMES = [
    pytest.param(("embedded", 1, CALLERS), id="embedded"),
    pytest.param(("grown", 2, ONE_OF_EACH_KIND), id="grown", marks=GROWN),
    pytest.param(("grown", 2, CALLERS), id="grown-by-all", marks=[*GROWN, pytest.mark.deep]),
]
RESTLESS = """
SELECT (SELECT count(*) FROM agents_turn WHERE outcome IS NULL), (SELECT count(*) FROM agents_connection)
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
        until(lambda: tenants.changes.sql(RESTLESS) == [(0, 1)], "nothing is under way", within_s=20)
