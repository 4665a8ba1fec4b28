"""A hub with something of everything, for one module."""

import asyncio
from collections.abc import Iterator

import pytest

from lab.hub_process import HubProcess
from lab.hub_storage import manage
from tests.agnt.wire import mint
from tests.conftest import HOMES, MakeStorage
from tests.descriptions.cases import OPTIONS
from tests.descriptions.seeded import seed
from tests.fuzz.live import Live
from tests.fuzz.wires import Wires

PLENTY = {"concurrencyCap": 20, "dailyBudgetQueries": 100_000}


@pytest.fixture(scope="module", params=HOMES)
def live(request: pytest.FixtureRequest, make_storage: MakeStorage) -> Iterator[Live]:
    """One process on SQLite; on PostgreSQL and Redis two processes and a worker."""
    is_grown = request.param == "grown"
    hub = HubProcess.start(make_storage(request.param), processes=1 + is_grown, worker=is_grown, **OPTIONS)
    try:
        seeded = seed(hub)
        seeded.call("PATCH", f"/agents/{seeded.names['agent_id']}", json=PLENTY)
        with asyncio.Runner() as runner:
            attacked = Live(seeded, runner)
            yield attacked
            attacked.check()  # jobs of the worker may have failed after the last test
    finally:
        hub.stop()


@pytest.fixture(scope="module")
def wires(live: Live) -> Wires:
    description = live.seeded.call("GET", "/schema")
    scim = manage(live.hub._env, "scim_token").strip()
    key = mint(live.hub, "demo", "enterprise")
    return Wires(live.seeded, description, scim, key.token)
