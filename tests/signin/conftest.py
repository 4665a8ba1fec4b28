"""A GitHub look-alike, hubs that use it, and browsers."""

from collections.abc import Generator, Iterator
from typing import Any

import pytest

from accounts import throttle
from accounts.oauth import identity_providers
from lab.hub_process import HubProcess
from lab.hub_storage import MakeStorage
from tests.attempts import Attempts
from tests.github import GitHub
from tests.oidc import Oidc
from tests.signin.clients import Browser, CommandLine, MakeBrowser, MakeCli
from tests.signin.tried import SINGLE

PLENTY = {"SIGNIN_RATE_PER_MINUTE": "1000000"}
AT_HOME = "https://app.example"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Count a test of an attack that counts nothing itself as one attempt."""
    if item.get_closest_marker("attack") is None or "attempts" in getattr(item, "fixturenames", ()):
        return (yield)
    broke = 1
    try:
        result = yield
        broke = 0
    finally:
        Attempts(item).count(SINGLE, 1, broke)
    return result


@pytest.fixture(scope="session")
def _github() -> Iterator[GitHub]:
    github = GitHub()
    github.start()
    yield github
    github.stop()


@pytest.fixture
def github(_github: GitHub) -> GitHub:
    """Honest until a test says otherwise."""
    _github.reset()
    return _github


@pytest.fixture(scope="session")
def signin_hub(make_storage: MakeStorage, _github: GitHub) -> Iterator[HubProcess]:
    """One process on SQLite where every GitHub account may join. DEV_LOGIN is asked for, and off all the same."""
    hub = HubProcess.start(make_storage("embedded"), **_github.settings, **PLENTY, DEV_LOGIN=1, LOG_LEVEL="DEBUG")
    yield hub
    hub.stop()


@pytest.fixture(scope="package")
def listed_hub(make_storage: MakeStorage, _github: GitHub) -> Iterator[HubProcess]:
    """A hub for named people and one organisation, which knows an app at home elsewhere."""
    settings = _github.settings | PLENTY | {"SIGNUP": "Named, org:acme", "APP_ORIGINS": AT_HOME}
    hub = HubProcess.start(make_storage("embedded"), **settings)
    yield hub
    hub.stop()


@pytest.fixture
def make_browser(github: GitHub) -> Iterator[MakeBrowser]:
    """Browsers that were nowhere yet; they are closed with the test."""
    made: list[Browser] = []

    def make(hub: HubProcess) -> Browser:
        made.append(Browser(hub, github))
        return made[-1]

    yield make
    for one in made:
        one.client.close()


@pytest.fixture
def browser(signin_hub: HubProcess, make_browser: MakeBrowser) -> Browser:
    return make_browser(signin_hub)


@pytest.fixture
def other_browser(signin_hub: HubProcess, make_browser: MakeBrowser) -> Browser:
    return make_browser(signin_hub)


@pytest.fixture
def make_cli(signin_hub: HubProcess) -> Iterator[MakeCli]:
    """Command lines; their listeners end with the test."""
    made: list[CommandLine] = []

    def make(machine_id: str = "") -> CommandLine:
        made.append(CommandLine(signin_hub, machine_id))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def https_hub(settings: Any) -> None:
    """A hub of https under a name. Hashing is cheap, and each test has its own counts of tries."""
    settings.PUBLIC_URL = settings.PUBLIC_ORIGIN = "https://hub.example"
    settings.IS_HTTPS, settings.ALLOWED_HOSTS = True, ["*"]
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    throttle._limiter.cache_clear()


@pytest.fixture(scope="session")
def _oidc() -> Iterator[Oidc]:
    provider = Oidc()
    provider.start()
    yield provider
    provider.stop()


@pytest.fixture
def oidc(_oidc: Oidc, settings: Any) -> Oidc:
    """Honest until a test says otherwise; the hub knows it as provider 1."""
    _oidc.reset()
    identity_providers._kept.clear()
    settings.SIGNIN_RATE_PER_MINUTE = 1_000_000
    settings.OIDC_PROVIDERS = (_oidc.provider(),)
    return _oidc
