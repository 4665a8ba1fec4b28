"""A hub with something of everything, for one module."""

import asyncio
from collections.abc import Iterator

import pytest

from lab.hub_process import HubProcess
from lab.hub_storage import manage
from tests.agnt.wire import mint
from tests.conftest import MakeStorage
from tests.descriptions.cases import OPTIONS
from tests.descriptions.seeded import seed
from tests.fuzz.live import Live
from tests.fuzz.wires import Wires

PLENTY = {"concurrencyCap": 20, "dailyBudgetQueries": 100_000}


@pytest.fixture(scope="module")
def live(make_storage: MakeStorage) -> Iterator[Live]:
    hub = HubProcess.start(make_storage("embedded"), **OPTIONS)
    try:
        seeded = seed(hub)
        seeded.call("PATCH", f"/agents/{seeded.names['agent_id']}", json=PLENTY)
        with asyncio.Runner() as runner:
            yield Live(seeded, runner)
    finally:
        hub.stop()


@pytest.fixture(scope="module")
def wires(live: Live) -> Wires:
    description = live.seeded.call("GET", "/schema")
    scim = manage(live.hub._env, "scim_token").strip()
    key = mint(live.hub, "demo", "enterprise")
    return Wires(live.seeded, description, scim, key.token)
