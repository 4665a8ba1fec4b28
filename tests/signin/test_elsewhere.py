"""Metadata that a request tries to turn elsewhere, guessed device codes, and a race for an invitation."""

import random
import re
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode

import httpx
import pytest

from lab.callers import TLS, bearer
from lab.hub_process import HubProcess
from tests.attempts import Attempts
from tests.signin.clients import Browser, Pkce, program
from tests.signin.test_apps import Device
from tests.signin.tried import RACED

pytestmark = pytest.mark.attack

EVIL = "evil.example"
TURNED = [
    {"X-Forwarded-Host": EVIL},
    {"X-Forwarded-Host": EVIL, "X-Forwarded-Proto": "https"},
    {"Forwarded": f"host={EVIL};proto=https"},
    {"X-Original-Host": EVIL},
    {"X-Host": EVIL},
    {"X-Forwarded-Server": EVIL},
    {"X-Forwarded-Prefix": f"//{EVIL}"},
    {"X-Original-URL": f"https://{EVIL}/"},
    {"X-Rewrite-URL": f"https://{EVIL}/"},
    {"Referer": f"https://{EVIL}/"},
    {"Host": EVIL},
    {"Host": f"127.0.0.1@{EVIL}"},
    {"Host": f"127.0.0.1:80#{EVIL}"},
]
NAMING = [  # what names addresses of the hub
    ("GET", "/.well-known/oauth-authorization-server"),
    ("GET", "/.well-known/oauth-protected-resource"),
    ("GET", "/.well-known/oauth-protected-resource/mcp"),
    ("GET", "/.well-known/ai-catalog.json"),
    ("GET", "/api/v1/schema"),
    ("GET", "/api/v1/auth/oauth/start"),
    ("GET", "/signin"),
    ("GET", "/llms.txt"),
    ("POST", "/mcp"),
    ("POST", "/api/v1/auth/device/code"),
]


def test_no_header_of_a_request_turns_the_addresses_of_the_hub(signin_hub: HubProcess, attempts: Attempts) -> None:
    turned = []
    with httpx.Client(base_url=signin_hub.url, trust_env=False, verify=TLS, timeout=30) as client:
        for headers in TURNED:
            for method, path in NAMING:
                body = {"json": {"app_name": "Lamp", "machine_id": "m"}} if method == "POST" else {}
                answer = client.request(method, path, headers=headers, **body)
                named = answer.text + repr(answer.headers.multi_items())
                turned += [(headers, path)] if EVIL in named else []
    attempts.count("headers that name another host for the hub's metadata", len(TURNED) * len(NAMING), len(turned))
    assert turned == []


def test_guessed_device_codes_give_no_token(browser: Browser, attempts: Attempts) -> None:
    device, numbers, times = Device(browser.hub), random.Random(7), attempts.number(short=40, long=400)
    code = device.codes["device_code"]
    guesses = ["", "x", code[:-1], f"{code}x", code.swapcase(), f" {code}", code[::-1]]
    while len(guesses) < times:
        place = numbers.randrange(len(code))
        other = numbers.choice("0123456789abcdef_-XYZ".replace(code[place], ""))
        guesses.append(code[:place] + other + code[place + 1 :])
    taken = []
    with program(browser.hub.url) as client:
        for guess in guesses:
            answer = client.post("/api/v1/auth/device/token", json={"device_code": guess})
            is_refused = answer.status_code == 400 and answer.json()["error"] in (
                "invalid_grant",
                "validation_failed",
            )
            taken += [] if is_refused else [(guess, answer.text)]
    attempts.count("device codes guessed", len(guesses), len(taken))
    assert taken == []


def test_a_page_with_a_code_in_its_address_tells_it_to_no_other_site(browser: Browser) -> None:
    """Neither by `Referer`, nor in the page, nor from a cache."""
    browser.sign_in("ann")
    for path in ("/api/v1/auth/oauth/callback?code=canary-code&state=canary-state", consent_with("canary-state")):
        page = browser.get(path)
        assert page.headers["referrer-policy"] == "same-origin", path
        assert page.headers["cache-control"].startswith(("no-store", "max-age=0, no-cache, no-store")), path
        assert "canary-code" not in page.text
        assert not re.search(r'(?:src|href)="https?://(?!127\.0\.0\.1)', page.text), path


def consent_with(state: str) -> str:
    """The address of a sound consent page."""
    sound = Pkce().query("http://localhost:1/callback", app_name="Lamp") | {"state": state}
    return f"/consent?{urlencode(sound)}"


RACERS = 20


def test_of_twenty_who_race_for_a_link_to_a_group_one_joins(signin_hub: HubProcess, attempts: Attempts) -> None:
    def send(login: str, path: str, **body: object) -> httpx.Response:
        headers = bearer(signin_hub.mint(login, "session"))
        with httpx.Client(
            base_url=signin_hub.url, trust_env=False, verify=TLS, timeout=60, headers=headers
        ) as client:
            return client.post(path, json=body)

    def join(login: str) -> int:
        cookies = f"csrftoken={'x' * 32}; cw_session={signin_hub.mint(login, 'session')}"
        headers = {"Cookie": cookies, "Origin": signin_hub.url}
        with httpx.Client(
            base_url=signin_hub.url, trust_env=False, verify=TLS, timeout=60, headers=headers
        ) as client:
            return client.post(link, data={"csrfmiddlewaretoken": "x" * 32}).status_code

    rounds = attempts.number(short=1, long=5)
    for turn in range(rounds):
        assert send("keeper", "/api/v1/groups", slug=f"raced-{turn}", name="Raced").status_code == 201
        invited = send("keeper", f"/api/v1/groups/raced-{turn}/invitations", role="member").json()
        link = re.sub(r"^https?://[^/]+", "", invited["url"])
        with ThreadPoolExecutor(RACERS) as pool:
            statuses = list(pool.map(join, [f"racer-{number}" for number in range(RACERS)]))
        assert sorted(statuses) == [302] + [404] * (RACERS - 1), statuses
    attempts.count(RACED, rounds * RACERS)
