"""Addresses that would lead a browser off the hub, at every place that takes one to return to."""

import itertools
from urllib.parse import urlencode

import pytest

from accounts import throttle
from tests.attempts import Attempts
from tests.native.rows import browser, make_agent, person
from tests.oidc import START, Oidc, sign_in_by_oidc
from tests.signin.invited import CHOSEN, begin_passkey, invite, make_passkey, sign_in_by_password
from tests.signin.tried import RETURNED

pytestmark = [pytest.mark.django_db, pytest.mark.attack]

EVIL = "evil.example"
SEPARATORS = [
    "//",
    "///",
    "/\\",
    "\\\\",
    "\\/",
    "/\t/",
    "/\n/",
    "/\r/",
    "\t//",
    " //",
    "/ /",
    "/.//",
    "/%09/",
    "/%5c",
]
SEPARATORS += [
    "//\\",
    "/\x00/",
    "\x01//",
    "\u2028//",
    "/\u2044",
    "\uff0f\uff0f",
    "/;//",
    "/?//",
    "/#//",
    "/%2f%2f",
]
SCHEMES = [
    "https://",
    "HTTPS://",
    "https:",
    "https:/",
    "https:///",
    "https:\\\\",
    "http:",
    "javascript:alert(1)//",
]
SCHEMES += [
    "data:text/html,",
    "vbscript:",
    "file://",
    "ftp://",
    "java\tscript:",
    "\x00javascript:",
    "blob:",
    "ws://",
]
USERS = ["//hub.example@", "https://hub.example@", "//hub.example\\@", "/\\hub.example@", "//hub.example%40"]
VECTORS = [
    f"{before}{EVIL}{after}" for before in (*SEPARATORS, *SCHEMES, *USERS) for after in ("", "/x", "//x?y=/")
]


def is_on_hub(location: str) -> bool:
    """True if browsers stay at the hub: they take backslashes for slashes, and leave out tabs and line breaks."""
    read = "".join(one for one in location if one not in "\t\r\n").strip("".join(map(chr, range(33))))
    read = read.replace("\\", "/")
    return read.startswith("/") and not read.startswith("//")


@pytest.fixture
def vectors(attempts: Attempts) -> list[str]:
    """All of them, or one in a few."""
    return VECTORS if attempts.is_long else VECTORS[::5]


def check(attempts: Attempts, tried: dict[str, str]) -> None:
    """Count, and fail with those that lead off the hub. `tried`: where each vector led."""
    off = {vector: location for vector, location in tried.items() if not is_on_hub(location)}
    attempts.count(RETURNED, len(tried), len(off))
    assert off == {}


def test_a_sign_in_by_a_provider_returns_to_the_hub(oidc: Oidc, attempts: Attempts, vectors: list[str]) -> None:
    tried = {}
    for vector in vectors[::3]:
        answer = sign_in_by_oidc(browser(), f"{START}?{urlencode({'next': vector})}")
        assert answer.status_code == 302, vector
        tried[vector] = answer["Location"]
    check(attempts, tried)


@pytest.mark.usefixtures("https_hub")
def test_a_password_and_a_passkey_return_to_the_hub(attempts: Attempts, vectors: list[str]) -> None:
    browser().post(invite(), CHOSEN)
    device, tried = make_passkey("ben"), {}
    for number, vector in enumerate(vectors):
        throttle._limiter.cache_clear()
        client = browser()
        if number % 2:
            answer = sign_in_by_password(client, next=vector)
        else:
            state, options = begin_passkey(client)
            signed = {"state": state, "credential": device.sign(options), "next": vector}
            answer = client.post("/signin/passkey", signed)
        assert answer.status_code == 302, (vector, answer.content)
        tried[vector] = answer["Location"]
    check(attempts, tried)


def test_the_page_of_sign_in_passes_no_such_address_on(attempts: Attempts, vectors: list[str]) -> None:
    pages = {vector: browser().get("/signin", {"next": vector}).content.decode() for vector in vectors}
    attempts.count(RETURNED, len(pages))
    assert [vector for vector, page in pages.items() if EVIL in page and not is_on_hub(vector)] == []


def test_a_marked_agent_leads_back_to_the_hub(attempts: Attempts, vectors: list[str]) -> None:
    ann = person("ann")
    agent, client, tried = make_agent(ann.user), browser(ann.session), {}
    for vector, on in itertools.product(vectors, ("1", "")):
        answer = client.post(f"/agents/{agent.handle}/favourite", {"next": vector, "on": on})
        assert answer.status_code == 302
        tried[vector] = answer["Location"]
    check(attempts, tried)
