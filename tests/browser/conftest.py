"""A hub with the development sign-in, a browser, and visitors."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from lab.hub_process import HubProcess
from lab.hub_storage import MakeStorage
from tests.browser.chrome import chromium
from tests.browser.visitor import Visitor, visiting

# No test waits for a duration of the hub: at its real speed an idle hub takes half of the processor time.
OPTIONS = {"DEV_LOGIN": 1, "TEST_TIME_SCALE": 1}


@pytest.fixture(scope="session")
def site(make_storage: MakeStorage) -> Iterator[HubProcess]:
    """One process on SQLite with the development sign-in, which delivers webhooks to this machine."""
    hub = HubProcess.start(make_storage("embedded"), **OPTIONS, WEBHOOK_ALLOW_PRIVATE=1, REPLY_WAIT_S=60)
    yield hub
    hub.stop()


@pytest.fixture(scope="session")
def short_wait_site(make_storage: MakeStorage) -> Iterator[HubProcess]:
    """The same, but it waits 1 s for a reply."""
    hub = HubProcess.start(make_storage("embedded"), **OPTIONS, REPLY_WAIT_S=1)
    yield hub
    hub.stop()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """One browser for all; each visitor has an empty profile of it."""
    async with chromium() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="session")
async def visitor(browser: Browser, site: HubProcess) -> AsyncIterator[Visitor]:
    """A visitor who is not signed in."""
    async with visiting(browser, site.url) as visitor:
        yield visitor


@pytest_asyncio.fixture(loop_scope="session")
async def other(browser: Browser, site: HubProcess) -> AsyncIterator[Visitor]:
    """Another visitor, in a browser of their own."""
    async with visiting(browser, site.url) as visitor:
        yield visitor
