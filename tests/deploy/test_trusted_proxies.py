"""Forwarded headers are believed from the proxies that the operator named, and from no other client."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from lab.callers import TLS
from lab.hub_process import HubProcess
from lab.hub_storage import MakeStorage
from tests.surfaces.test_serving import start_and_fail

START = "/api/v1/auth/oauth/start"
LIMIT = 20
SETTINGS = {"GITHUB_CLIENT_ID": "app", "GITHUB_CLIENT_SECRET": "secret", "SIGNIN_RATE_PER_MINUTE": LIMIT}
HSTS = "strict-transport-security"
Headers = list[tuple[str, str]]


def get(hub: HubProcess, path: str, headers: Headers) -> httpx.Response:
    with httpx.Client(base_url=hub.url, trust_env=False, verify=TLS, timeout=30) as client:
        return client.get(path, headers=headers)


def starts(hub: HubProcess, *headers: Headers) -> list[int]:
    with httpx.Client(base_url=hub.url, trust_env=False, verify=TLS, timeout=30) as client:
        return [client.get(START, headers=one).status_code for one in headers]


def forwarded(*values: str) -> Headers:
    return [("X-Forwarded-For", value) for value in values]


@pytest.fixture(scope="module")
def behind(make_storage: MakeStorage) -> Iterator[HubProcess]:
    """A hub whose proxies are this machine and 10.0.0.0/24."""
    settings = SETTINGS | {"TRUSTED_PROXIES": "127.0.0.1 10.0.0.0/24", "PUBLIC_URL": "https://hub.example"}
    hub = HubProcess.start(make_storage("embedded"), **settings)
    yield hub
    hub.stop()


@pytest.fixture(scope="module")
def direct(make_storage: MakeStorage) -> Iterator[HubProcess]:
    """A hub whose proxy is elsewhere: requests from this machine are those of a caller."""
    settings = SETTINGS | {"TRUSTED_PROXIES": "192.0.2.1", "PUBLIC_URL": "https://hub.example"}
    hub = HubProcess.start(make_storage("embedded"), **settings)
    yield hub
    hub.stop()


def test_a_caller_who_makes_up_addresses_is_counted_as_who_they_are(direct: HubProcess) -> None:
    made_up = [forwarded(f"203.0.113.{number}") for number in range(LIMIT)]
    made_up.append([("Forwarded", "for=203.0.113.77"), ("X-Real-IP", "203.0.113.78")])
    assert starts(direct, *made_up) == [302] * LIMIT + [429]


CALLER = "198.51.100.1"
NAMING_THE_CALLER = [
    [CALLER],
    [f"203.0.113.1, {CALLER}"],  # what the caller made up comes first
    ["203.0.113.2", CALLER],  # in a line of its own
    [f"203.0.113.3, {CALLER}, 10.0.0.7"],  # through a second proxy of ours
    [f"10.0.0.9, {CALLER}"],  # a caller who claims to be a proxy
    [f"{CALLER}:51234"],
]


def test_the_last_address_that_is_no_proxy_counts(behind: HubProcess) -> None:
    assert starts(behind, *[forwarded(CALLER)] * LIMIT) == [302] * LIMIT
    for lines in NAMING_THE_CALLER:
        assert starts(behind, forwarded(*lines)) == [429], lines
    assert starts(behind, forwarded("198.51.100.2")) == [302]
    of_one_network = [forwarded(f"nonsense, 2001:db8:1::{number:x}") for number in range(1, LIMIT + 2)]
    assert starts(behind, *of_one_network) == [302] * LIMIT + [429]  # one /64 is one caller


def test_what_is_no_address_is_one_caller(behind: HubProcess) -> None:
    words = [forwarded(f"word-{number}") for number in range(LIMIT + 1)]
    assert starts(behind, *words) == [302] * LIMIT + [429]


def test_https_is_believed_from_the_proxy_alone(behind: HubProcess, direct: HubProcess) -> None:
    claimed = [("X-Forwarded-Proto", "https")]
    assert HSTS in get(behind, "/signin", claimed).headers
    assert HSTS not in get(behind, "/signin", [("X-Forwarded-Proto", "gopher")]).headers
    assert HSTS not in get(behind, "/signin", []).headers
    assert HSTS not in get(direct, "/signin", claimed).headers


def test_what_would_trust_blindly_stops_the_start(tmp_path: Path) -> None:
    wrong = [
        ("TRUSTED_PROXIES", one, "want addresses and networks") for one in ("proxy.example", "10.0.0.1/8", "*")
    ]
    for name, value, sentence in [("BEHIND_PROXY", "1", "TRUSTED_PROXIES=127.0.0.1"), *wrong]:
        assert sentence in start_and_fail(tmp_path, **{name: value}), (name, value)
