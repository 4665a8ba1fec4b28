"""The world of the matrix: once on SQLite in one process, and again with two processes on PostgreSQL."""

from collections.abc import Iterator

import pytest

from tests.channel.house import sql
from tests.conftest import HOMES
from tests.homes import MakeHome
from tests.tenancy.world import World, world
from tests.waiting import until

RESTLESS = """
SELECT (SELECT count(*) FROM agents_turn WHERE outcome IS NULL), (SELECT count(*) FROM agents_connection)
"""


@pytest.fixture(scope="package", params=HOMES)
def tenants(request: pytest.FixtureRequest, make_home: MakeHome) -> Iterator[World]:
    """A hub with two tenants and everything of theirs."""
    with world(make_home(request.param), processes=2 if request.param == "grown" else 1) as made:
        yield made


@pytest.fixture(autouse=True)
def _quiet(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test asked is answered, and its agents are gone, before the next one looks at the tables."""
    tenants = request.getfixturevalue("tenants") if "tenants" in request.fixturenames else None
    yield
    if tenants is not None:
        until(lambda: sql(tenants.hub, RESTLESS) == [(0, 1)], "nothing is under way", within_s=20)
