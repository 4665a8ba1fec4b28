"""The world of the matrix: once on SQLite in one process, and again with two processes on PostgreSQL."""

from collections.abc import Iterator

import pytest

from tests.conftest import HOMES
from tests.homes import MakeHome
from tests.tenancy.world import World, world


@pytest.fixture(scope="module", params=HOMES)
def tenants(request: pytest.FixtureRequest, make_home: MakeHome) -> Iterator[World]:
    """A hub with two tenants and everything of theirs."""
    with world(make_home(request.param), processes=2 if request.param == "grown" else 1) as made:
        yield made
