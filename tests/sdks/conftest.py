"""The clients of this room; one that the machine cannot run is skipped, one that cannot be installed fails."""

import pytest

from lab.hub_process import HubProcess
from tests.sdks.clients import CLIENTS, VERSION_03, VERSION_1, SdkClient
from tests.sdks.environments import ENVIRONMENTS, Missing


@pytest.fixture
def hub(embedded_hub: HubProcess) -> HubProcess:
    """One process on SQLite; processes/test_crossing.py has two."""
    return embedded_hub


def ready(client: SdkClient) -> SdkClient:
    try:
        ENVIRONMENTS[client.environment].ready()
    except Missing as missing:
        pytest.skip(str(missing))
    return client


def is_here(client: SdkClient) -> bool:
    try:
        ready(client)
    except pytest.skip.Exception:
        return False
    return True


@pytest.fixture(params=CLIENTS, ids=str)
def client(request: pytest.FixtureRequest) -> SdkClient:
    """Each client, of 1.0 by both bindings."""
    return ready(request.param)


@pytest.fixture(params=VERSION_1, ids=str)
def client_1(request: pytest.FixtureRequest) -> SdkClient:
    """Each client of A2A 1.0, by both bindings."""
    return ready(request.param)


@pytest.fixture(params=VERSION_03, ids=str)
def client_03(request: pytest.FixtureRequest) -> SdkClient:
    """Each client of A2A 0.3."""
    return ready(request.param)
