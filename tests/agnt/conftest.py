"""People of one hub's database; a network with one venue, and a program with a key of it."""

from collections.abc import AsyncIterator

import pytest

from lab.hub_process import HubProcess
from tests.agnt.wire import Key, Program, add_venue, mint, new_login, program
from tests.native.conftest import alice, bob, staff  # noqa: F401


@pytest.fixture(scope="module")
def keeper(embedded_hub: HubProcess) -> str:
    """An owner whose network has the venue `cafe`."""
    login = new_login()
    mint(embedded_hub, login)
    add_venue(embedded_hub, login, "cafe")
    return login


@pytest.fixture(scope="module")
def key(embedded_hub: HubProcess, keeper: str) -> Key:
    """A key of the tier pro and the scope full."""
    return mint(embedded_hub, keeper)


@pytest.fixture
async def asker(embedded_hub: HubProcess, key: Key) -> AsyncIterator[Program]:
    """A program with that key."""
    asking = program(embedded_hub, key)
    yield asking
    await asking.client.aclose()
