"""Two hubs, a browser, and visitors."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Request

from lab.hub_process import HubProcess
from lab.hub_storage import MakeStorage
from tests.attempts import Attempts
from tests.browser.chrome import chromium
from tests.browser.looking import Looking, Rows
from tests.browser.profiles import Profile
from tests.browser.scene import Scene, call_rows, playing
from tests.browser.vectors import OUTSIDE
from tests.browser.visitor import Visitor, visiting

# No test waits for a duration of the hub: at its real speed an idle hub takes half of the processor time.
OPTIONS = {"DEV_LOGIN": 1, "TEST_TIME_SCALE": 1}


@pytest.fixture(scope="session")
def site(make_storage: MakeStorage) -> Iterator[HubProcess]:
    """One process on SQLite with the development sign-in, which calls webhooks and servers of this machine."""
    private = {"WEBHOOK_ALLOW_PRIVATE": 1, "REMOTE_ALLOW_PRIVATE": 1}
    hub = HubProcess.start(make_storage("embedded"), **OPTIONS, **private, REPLY_WAIT_S=60)
    yield hub
    hub.stop()


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def scene(make_storage: MakeStorage) -> AsyncIterator[Scene]:
    """A hub on which something is going on."""
    async with playing(make_storage("embedded")) as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """One browser for all."""
    async with chromium() as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def profile(browser: Browser) -> AsyncIterator[Profile]:
    """The storage of a visitor's browser, empty at the beginning of a test."""
    one = Profile(browser)
    yield one
    await one.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def profile_of_other(browser: Browser) -> AsyncIterator[Profile]:
    """The same for another visitor."""
    one = Profile(browser)
    yield one
    await one.close()


@pytest_asyncio.fixture(loop_scope="session")
async def visitor(profile: Profile, site: HubProcess) -> AsyncIterator[Visitor]:
    """A visitor who is not signed in."""
    async with profile.visiting(site.url) as visitor:
        yield visitor


@pytest_asyncio.fixture(loop_scope="session")
async def other(profile_of_other: Profile, site: HubProcess) -> AsyncIterator[Visitor]:
    """Another visitor, with a profile of their own."""
    async with profile_of_other.visiting(site.url) as visitor:
        yield visitor


@pytest_asyncio.fixture(loop_scope="session")
async def guest(profile: Profile, scene: Scene) -> AsyncIterator[Visitor]:
    """A visitor of the scene who is not signed in."""
    async with profile.visiting(scene.hub.url) as visitor:
        yield visitor


@pytest.fixture(scope="package")
def rows(request: pytest.FixtureRequest, make_storage: MakeStorage) -> Iterator[Rows]:
    """A hub whose rows have vectors in every column of texts."""
    attempts = Attempts(request.node)
    owners, copies = attempts.number(short=2, long=20), attempts.number(short=1, long=9)
    home = make_storage("embedded")
    made = call_rows(home, "hostile_rows", f"make_everything({owners}, {copies})")
    hub = HubProcess.start(home, **OPTIONS)
    hub.mint("chief", "session", admin=True)
    yield Rows(hub, **made)
    hub.stop()


@pytest_asyncio.fixture(loop_scope="session")
async def looking(browser: Browser, rows: Rows) -> AsyncIterator[Looking]:
    """A visitor of this hub."""
    async with visiting(browser, rows.hub.url) as visitor:
        looking = Looking(visitor)

        def note(request: Request) -> None:
            if OUTSIDE in request.url:
                looking.faults.append(f"{visitor.page.url}: asks for {request.url}")

        visitor.page.on("request", note)
        yield looking
