"""People, and a hub process without its sockets that calls remote servers."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from lab.hub_process import HubProcess
from lab.hub_storage import MakeStorage
from tests.conftest import HOMES
from tests.native.rows import Person, person
from tests.remote.caller import Caller

# No breaker that opened tries again.
NEAR = {"REMOTE_ALLOW_PRIVATE": 1, "REMOTE_RETRY_S": 600}


@pytest.fixture(scope="package", params=HOMES)
def near(request: pytest.FixtureRequest, make_storage: MakeStorage) -> Iterator[HubProcess]:
    """A hub of each kind that calls servers of this machine; each test publishes for an owner of its own."""
    hub = HubProcess.start(make_storage(request.param), processes=1 if request.param == "embedded" else 2, **NEAR)
    yield hub
    hub.stop()


@pytest.fixture
async def caller(settings: Any, transactional_db: None) -> AsyncIterator[Caller]:
    """Asks, by the real ledger and dispatcher, with servers of this machine allowed."""
    settings.REMOTE_ALLOW_PRIVATE = True
    settings.REMOTE_RETRY_S = 0.5
    caller = Caller()
    yield caller
    await caller.close()


@pytest.fixture
def alice(db: None, settings: Any) -> Person:
    """An owner on a hub that may call servers of this machine."""
    settings.REMOTE_ALLOW_PRIVATE = True
    return person("alice")
