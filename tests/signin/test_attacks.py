"""Attacks that must fail. docs/topics/security.md names each of these tests beside its attack."""

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest
from websockets.asyncio.client import connect as open_socket

from lab.callers import bearer, envelope, question
from lab.hub_process import HubProcess, StartHub
from lab.hub_storage import MakeStorage
from tests.attempts import Attempts
from tests.github import CLIENT_SECRET, GitHub
from tests.signin.clients import Browser, MakeCli, Pkce, program, refused, status
from tests.signin.test_apps import Device, allow, app_start, exchange
from tests.signin.tried import CODES, REDIRECTED, RETURNED

START = "/api/v1/auth/oauth/start"
STARTS = (START, "/api/v1/auth/spa/start")
JSON = {"Content-Type": "application/json"}
pytestmark = pytest.mark.attack
CALLBACK = "/api/v1/auth/oauth/callback"


@contextmanager
def database(hub: HubProcess) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(hub.home.folder / "hub.sqlite3", timeout=10)) as connection:
        yield connection
        connection.commit()


# Codes.


def test_a_second_use_of_a_code_fails_and_revokes_what_the_first_issued(
    browser: Browser, make_cli: MakeCli
) -> None:
    cli = make_cli()
    code = cli.code(browser)
    token = cli.exchange(code).json()["session"]["token"]
    assert status(cli.hub, token) == 200
    refused(cli.exchange(code), "invalid_grant")
    assert status(cli.hub, token) == 401


def test_a_second_use_of_an_apps_code_revokes_too(browser: Browser) -> None:
    browser.sign_in("ann")
    pkce = Pkce()
    code = allow(browser, browser.get(app_start(pkce)).headers["location"])["code"]
    token = exchange(browser.hub, code, pkce.verifier).json()["token"]
    refused(exchange(browser.hub, code, pkce.verifier), "invalid_grant")
    assert status(browser.hub, token) == 401


def test_a_stolen_code_is_worth_nothing_without_its_verifier(browser: Browser, make_cli: MakeCli) -> None:
    thief, cli = make_cli(), make_cli()
    code = cli.code(browser)
    refused(thief.exchange(code), "invalid_grant")
    refused(cli.exchange(code), "invalid_grant")  # the thief's try spent it


def test_a_wrong_verifier_gets_nothing(browser: Browser, make_cli: MakeCli) -> None:
    cli = make_cli()
    with program(cli.hub.url) as client:
        for verifier in ("", "short", "x" * 43, "x" * 129, "ü" * 43, "nul\0" * 11):
            body = {"code": cli.code(browser), "code_verifier": verifier}
            answer = client.post("/api/v1/auth/oauth/token", json=body)
            assert answer.status_code == 400, verifier
            assert answer.json()["error"] in ("invalid_grant", "validation_failed"), verifier


def test_an_expired_code_is_refused(browser: Browser, make_cli: MakeCli) -> None:
    cli = make_cli()
    code = cli.code(browser)
    with database(cli.hub) as rows:
        lived = rows.execute(
            "SELECT (julianday(expires_at) - julianday(created_at)) * 1440 FROM accounts_logincode ORDER BY id"
        ).fetchall()[-1][0]
        assert 4.9 < lived < 5.1
        rows.execute("UPDATE accounts_logincode SET expires_at = '2020-01-01 00:00:00'")
    refused(cli.exchange(code), "invalid_grant")


def test_codes_do_not_cross_between_flows(browser: Browser, make_cli: MakeCli) -> None:
    cli = make_cli()
    refused(cli.exchange(cli.code(browser), path="/api/v1/auth/spa/exchange"), "invalid_grant")
    pkce = Pkce()
    browser.sign_in("ann")
    code = allow(browser, browser.get(app_start(pkce)).headers["location"])["code"]
    refused(exchange(browser.hub, code, pkce.verifier, "/api/v1/auth/oauth/token"), "invalid_grant")
    device = Device(browser.hub)
    refused(cli.exchange(device.codes["device_code"]), "invalid_grant")


MALFORMED: list[Any] = [{}, [], "x", None, {"code": 1, "code_verifier": 2}, {"code": "x"}, {"code": "lone \ud800"}]


def test_a_malformed_exchange_is_a_400(signin_hub: HubProcess, attempts: Attempts) -> None:
    with program(signin_hub.url) as client:
        for path in ("oauth/token", "spa/exchange", "device/token", "device/code"):
            for body in MALFORMED:
                answer = client.post(f"/api/v1/auth/{path}", content=json.dumps(body), headers=JSON)
                assert answer.status_code == 400, (path, body)
                assert set(answer.json()) == {"error", "message"}, (path, body)
    attempts.count(CODES, 4 * len(MALFORMED))


# PKCE and the start.

BAD_STARTS: dict[str, dict[str, Any]] = {
    "plain PKCE": {"code_challenge_method": "plain"},
    "no method": {"code_challenge_method": None},
    "s256 in lower case": {"code_challenge_method": "s256"},
    "no challenge": {"code_challenge": None},
    "an empty challenge": {"code_challenge": ""},
    "a short challenge": {"code_challenge": "x" * 42},
    "a long challenge": {"code_challenge": "x" * 44},
    "a challenge with padding": {"code_challenge": "x" * 42 + "="},
    "no state": {"state": None},
    "an empty state": {"state": ""},
    "a state with a line break": {"state": "a\r\nb"},
    "an endless state": {"state": "x" * 513},
    "a machine id with markup": {"machine_id": "<script>"},
    "two redirects": {"redirect_uri": ["http://localhost:1/callback", "http://evil.example/"]},
}


def test_a_start_without_sound_pkce_and_state_is_refused(signin_hub: HubProcess, attempts: Attempts) -> None:
    sound = Pkce().query("http://localhost:1/callback", app_name="x")
    with program(signin_hub.url) as client:
        for path in STARTS:
            assert client.get(path, params=sound).status_code == 302
            for wrong in BAD_STARTS.values():
                query = {name: value for name, value in (sound | wrong).items() if value is not None}
                refused(client.get(f"{path}?{urlencode(query, doseq=True)}"), "invalid_request")
    attempts.count("starts without sound PKCE or state", len(STARTS) * len(BAD_STARTS))


REDIRECTS = [
    "",
    "https://evil.example/callback",
    "http://evil.example/callback",
    "//evil.example",
    "\\\\evil.example",
    "/callback",
    "callback",
    "https://localhost:1/callback",
    "HTTP://localhost:1/callback",
    "http://LOCALHOST:1/callback",
    "http://localhost.:1/callback",
    "http://localhost.evil.example/callback",
    "http://evil.example#localhost:1/callback",
    "http://localhost:1@evil.example/callback",
    "http://user:pass@localhost:1/callback",
    "http://localhost@evil.example",
    "http://127.0.0.1.evil.example/",
    "http://127.1:1/callback",
    "http://2130706433:1/callback",
    "http://0x7f.0.0.1:1/callback",
    "http://0.0.0.0:1/callback",
    "http://192.168.0.1:1/callback",
    "http://[::ffff:127.0.0.1]:1/callback",
    "http://localhost:0/callback",
    "http://localhost:65536/callback",
    "http://localhost:1x/callback",
    "http://localhost:/callback",
    "http://localhost:1/callback?next=//evil.example",
    "http://localhost:1/callback#fragment",
    "http://localhost:1/../callback",
    "http://localhost:1//evil.example",
    "http://localhost:1/%2f%2fevil.example",
    "http://localhost:1\\@evil.example",
    "http://localhost:1/call back",
    "http://localhost:1/callback\r\nSet-Cookie: x=1",
    "http://localhost:1/callback\0",
    " http://localhost:1/callback",
    "http://localhost:1/" + "x" * 300,
    "http://lоcalhost:1/callback",  # a Cyrillic o
    "javascript:alert(1)",
    "data:text/html,x",
    "file:///etc/passwd",
    "myapp://callback",
]


def test_a_redirect_that_is_not_plainly_loopback_is_refused(signin_hub: HubProcess, attempts: Attempts) -> None:
    fine = ("http://localhost:1/callback", "http://127.0.0.1:65535", "http://[::1]:1/", "http://localhost/c")
    with program(signin_hub.url) as client:
        for path in STARTS:
            for redirect_uri in REDIRECTS:
                answer = client.get(path, params=Pkce().query(redirect_uri, app_name="x"))
                refused(answer, "invalid_request")
                assert "location" not in answer.headers, redirect_uri
        for redirect_uri in fine:  # loopback on any port
            assert client.get(START, params=Pkce().query(redirect_uri)).status_code == 302, redirect_uri
    attempts.count(REDIRECTED, len(STARTS) * len(REDIRECTS))


NEXTS = ["https://evil.example/", "//evil.example", "/\\evil.example", "\\\\evil", "javascript:alert(1)", "evil"]


def test_next_never_leads_off_the_hub(browser: Browser, attempts: Attempts) -> None:
    for wanted in NEXTS:
        assert browser.sign_in("ann", next=wanted).headers["location"] == "/", wanted
    attempts.count(RETURNED, len(NEXTS))


# State.


def test_login_csrf_an_attackers_callback_does_nothing_in_a_victims_browser(
    browser: Browser, other_browser: Browser, github: GitHub
) -> None:
    github.person = "mallory"
    attackers_callback = other_browser.agree(other_browser.start())
    for _ in range(2):  # one that never began, one that began a sign-in of its own
        answer = browser.get(attackers_callback)
        assert answer.status_code == 400
        assert browser.session is None
        browser.start()
    assert other_browser.get(attackers_callback).status_code == 302


def test_a_state_swap_is_refused(browser: Browser, other_browser: Browser) -> None:
    mine, theirs = browser.agree(browser.start()), other_browser.agree(other_browser.start())
    state = parse_qs(urlsplit(mine).query)["state"][0]
    code = parse_qs(urlsplit(theirs).query)["code"][0]
    answer = browser.get(f"{CALLBACK}?{urlencode({'code': code, 'state': state})}")
    assert answer.status_code == 400  # GitHub's PKCE binds the code to the other attempt
    assert browser.session is None


def test_a_made_up_state_is_refused(browser: Browser) -> None:
    browser.start()
    for state in ("", "x", "0" * 32, "nul\0", "lone%ED%A0%80"):
        answer = browser.get(CALLBACK, params={"code": "x", "state": state})
        assert (answer.status_code, browser.session) == (400, None), state


def test_a_callback_is_good_once(browser: Browser) -> None:
    address = browser.agree(browser.start())
    assert browser.get(address).status_code == 302
    browser.client.cookies.delete("cw_session")
    assert browser.get(address).status_code == 400
    assert browser.session is None


def test_an_attempt_of_eleven_minutes_ago_is_over(browser: Browser) -> None:
    address = browser.agree(browser.start())
    with database(browser.hub) as rows:
        rows.execute("UPDATE accounts_loginattempt SET expires_at = '2020-01-01 00:00:00' WHERE used_at IS NULL")
    assert browser.get(address).status_code == 400


# Kinds of tokens.


async def test_a_cookie_opens_no_socket(browser: Browser) -> None:
    """Cross-site WebSocket: `/channel` never takes the cookie, `/cli` from the hub's own pages alone."""
    browser.sign_in("ann")
    for origin in ("https://evil.example", browser.hub.url):
        address = browser.hub.url.replace("http", "ws") + "/channel"
        headers = {"Cookie": f"cw_session={browser.session}", "Origin": origin}
        async with open_socket(address, additional_headers=headers, proxy=None) as socket:
            await socket.send('{"type":"register","host":"h","cwd":"/","pid":1,"channelVersion":"t"}')
            assert "auth_failed" in await socket.recv()
    headers = {"Cookie": f"cw_session={browser.session}", "Origin": "https://evil.example"}
    address = browser.hub.url.replace("http", "ws") + "/cli"
    async with open_socket(address, additional_headers=headers, proxy=None) as socket:
        assert "auth_failed" in await socket.recv()
        await socket.wait_closed()
        assert socket.close_code == 1008


WRITES: list[tuple[str, str, Any]] = [
    ("POST", "/api/v1/tokens/channel", {"name": "x"}),
    ("POST", "/api/v1/auth/apps/mint", {"name": "x"}),
    ("POST", "/api/v1/auth/logout", None),
    ("POST", "/api/v1/auth-sessions/abcd/revoke", None),
    ("DELETE", "/api/v1/tokens/1", None),
    ("POST", "/api/a2a/v1/agents/demo/echo", envelope("SendMessage", question("x"))),
]


def test_a_cookie_from_another_origin_writes_nothing(browser: Browser) -> None:
    browser.client.cookies.set("cw_session", browser.hub.mint("ann", "session"))
    for origin in ("https://evil.example", "null", None):
        headers = {"Accept": "*/*"} | ({"Origin": origin} if origin else {})
        for verb, path, body in WRITES:
            answer = browser.client.request(verb, path, json=body, headers=headers)
            assert answer.status_code in ((403, 404) if "a2a" in path else (403,)), (origin, verb, path)
    assert status(browser.hub, browser.session or "") == 200


# Brute force.


@pytest.fixture(scope="module")
def limiting_hub(make_storage: MakeStorage, _github: GitHub) -> Iterator[HubProcess]:
    """A hub that takes the least a minute from each address."""
    hub = HubProcess.start(make_storage("embedded"), **_github.settings, SIGNIN_RATE_PER_MINUTE=20)
    yield hub
    hub.stop()


def test_starts_exchanges_and_codes_are_limited_per_address(limiting_hub: HubProcess) -> None:
    with program(limiting_hub.url) as client:
        starts = [client.get(START).status_code for _ in range(25)]
        assert starts == [302] * 20 + [429] * 5
        last = client.get(START)
        refused(last, "rate_limited", 429)
        assert 1 <= int(last.headers["retry-after"]) <= 60
        body = {"code": "x" * 40, "code_verifier": "v" * 43}
        tries = [client.post("/api/v1/auth/oauth/token", json=body).status_code for _ in range(25)]
        assert tries == [400] * 20 + [429] * 5
        assert client.post("/api/v1/auth/spa/exchange", json=body).status_code == 429
        guess = {"device_code": "cw_dev_" + "0" * 32}
        assert client.post("/api/v1/auth/device/token", json=guess).status_code == 429


@pytest.mark.slow
@pytest.mark.distributed
def test_two_processes_count_together(start_hub: StartHub, make_storage: MakeStorage, github: GitHub) -> None:
    hub = start_hub(make_storage("grown"), processes=2, **github.settings, SIGNIN_RATE_PER_MINUTE=20)
    answers = []
    for turn in range(24):
        with program(hub.urls[turn % 2]) as client:
            answers.append(client.get(START).status_code)
    assert answers == [302] * 20 + [429] * 4


def test_guessing_device_codes_stops_after_ten_a_minute(browser: Browser, other_browser: Browser) -> None:
    """The tries of a user count in all browsers of the user, and not for other users."""
    browser.sign_in("mallory")
    device = Device(browser.hub)
    answers = [browser.post("/device", {"user_code": f"BCDF-GHJ{letter}"}) for letter in "BCDFGHJKLMNP"]
    assert [one.status_code for one in answers] == [400] * 10 + [429] * 2
    sound = {"user_code": device.codes["user_code"]}
    assert browser.post("/device", sound).status_code == 429
    for login, answered in (("mallory", 429), ("ann", 200)):
        other_browser.sign_in(login)
        assert other_browser.post("/device", sound).status_code == answered, login


# Leaks.


def test_a_stolen_database_gives_no_usable_token(browser: Browser, make_cli: MakeCli) -> None:
    cli = make_cli()
    code = cli.code(browser, "ivan")
    secrets = [code, cli.exchange(code).json()["session"]["token"]]
    unused = make_cli()
    secrets.append(unused.code(browser, "ivan"))
    browser.sign_in("ivan")
    device = Device(browser.hub)
    secrets += [browser.session or "", device.codes["device_code"], device.codes["user_code"]]
    secrets.append(browser.client.cookies["cw_login"])
    secrets.append(parse_qs(urlsplit(browser.start()).query)["state"][0])
    secrets += list(browser.github.tokens)
    secrets.append(CLIENT_SECRET)
    with database(browser.hub) as rows:
        rows.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        dump = "\n".join(rows.iterdump())
        digests = [row[0] for row in rows.execute("SELECT digest FROM accounts_credential")]
    for secret in secrets:
        assert len(secret) >= 9
        assert secret not in dump
    for digest in digests[:20]:  # what is in the dump opens nothing
        assert status(browser.hub, digest) == 401
        assert status(browser.hub, f"cw_sess_{digest[:32]}") == 401


def test_no_token_is_ever_in_a_log_a_page_or_a_url(browser: Browser, make_cli: MakeCli) -> None:
    """The hub logs at DEBUG here; every secret of a whole life is looked for in all it said."""
    seen: list[httpx.Response] = []
    browser.client.event_hooks["response"] = [lambda response: (response.read(), seen.append(response))]
    cli = make_cli()
    body = cli.login(browser, "judy")
    browser.sign_in("judy")
    page = browser.post("/account", {"name": "canary"}).text
    channel = re.search(r"ck_live_[0-9a-f]{32}", page)
    assert channel
    tokens = [body["session"]["token"], browser.session or "", channel[0]]
    for token in tokens:
        with program(browser.hub.url, token) as client:
            client.get("/api/v1/me")
            client.get("/api/v1/nothing")
            client.post("/api/v1/tokens/channel", content=b"{broken")
    log = "".join(program.output for program in browser.hub.programs)
    assert "DEBUG" in log
    for token in [*tokens, CLIENT_SECRET, *browser.github.tokens, cli.verifier]:
        assert token not in log
        for response in seen:
            assert token not in str(response.url)
            assert token not in response.headers.get("location", "")
    assert not re.search(r"(?:cw_sess_|ck_live_|cw_app_|cw_code_|cw_dev_)[0-9a-f]{32}|gho_canary", log)
    for verb, path, query in browser.github.seen:
        assert not (verb == "GET" and any(token in str(query) for token in tokens)), path


def test_bearer_in_a_query_is_no_credential(signin_hub: HubProcess) -> None:
    token = signin_hub.mint("alice", "session")
    with program(signin_hub.url) as client:
        for name in ("token", "access_token", "authorization", "cw_session"):
            assert client.get("/api/v1/me", params={name: token}).status_code == 401
        assert client.get("/api/v1/me", headers=bearer(token)).status_code == 200
