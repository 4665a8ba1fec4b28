"""People of one hub's database; networks, and a program with a key of one."""

from collections.abc import AsyncIterator, Iterator

import pytest
from django.test import Client

from agnt.models import Network
from agnt.service.networks import get_or_create_network
from lab.hub_process import HubProcess
from lab.hub_storage import MakeStorage
from tests.agnt.wire import Key, Program, add_venue, mint, new_login, program
from tests.native import conftest as people
from tests.native.rows import Person, browser

alice, bob, staff = people.alice, people.bob, people.staff


@pytest.fixture(scope="package")
def private_hub(make_storage: MakeStorage) -> Iterator[HubProcess]:
    """A hub that may call servers and webhooks of this machine."""
    allowed = {"REMOTE_ALLOW_PRIVATE": 1, "WEBHOOK_ALLOW_PRIVATE": 1}
    with HubProcess.start(make_storage("embedded"), **allowed) as running:
        yield running


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


@pytest.fixture
def page(alice: Person) -> Client:
    """The browser of an owner."""
    return browser(alice.session)


@pytest.fixture
def network(alice: Person) -> Network:
    """The network of that owner."""
    return get_or_create_network(alice.user)
