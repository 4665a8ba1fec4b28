"""One hub for all runs: GitHub is there to sign in with, and webhooks may go to this machine."""

from collections.abc import Iterator

import pytest

from lab.hub_process import HubProcess
from lab.hub_storage import MakeStorage
from tests.github import GitHub
from tests.signin.clients import Browser, CommandLine

OPTIONS = {"SIGNIN_RATE_PER_MINUTE": 1_000_000, "WEBHOOK_ALLOW_PRIVATE": 1, "REPLY_WAIT_S": 3}


@pytest.fixture(scope="package")
def github() -> Iterator[GitHub]:
    github = GitHub()
    github.start()
    yield github
    github.stop()


@pytest.fixture(scope="package")
def clients_hub(make_storage: MakeStorage, github: GitHub) -> Iterator[HubProcess]:
    """One process on SQLite."""
    hub = HubProcess.start(make_storage("embedded"), **OPTIONS, **github.settings)
    yield hub
    hub.check_running()
    hub.stop()


@pytest.fixture
def browser(clients_hub: HubProcess, github: GitHub) -> Iterator[Browser]:
    github.reset()
    made = Browser(clients_hub, github)
    yield made
    made.client.close()


@pytest.fixture
def listener(clients_hub: HubProcess) -> Iterator[CommandLine]:
    """The command line's end of a login: its listener on loopback."""
    made = CommandLine(clients_hub)
    yield made
    made.close()
