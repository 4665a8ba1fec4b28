"""Apps get tokens of their own: by a page in the browser, by a typed code, by their user's hand."""

import json
import re
import secrets
from functools import partial
from typing import Any
from urllib.parse import urlencode

import httpx

from lab.callers import Json, bearer
from lab.hub_process import HubProcess
from tests.signin import registered
from tests.signin.clients import Browser, Pkce, program, refused, status
from tests.signin.conftest import AT_HOME

HOME = "http://127.0.0.1:8765"
EXCHANGE = "/api/v1/auth/spa/exchange"
allow = partial(registered.allow, back=HOME)


def app_start(pkce: Pkce, name: str = "Orchard", **more: str) -> str:
    return f"/api/v1/auth/spa/start?{urlencode(pkce.query(HOME, app_name=name, **more))}"


def exchange(hub: HubProcess, code: str, verifier: str, path: str = EXCHANGE) -> httpx.Response:
    with program(hub.url, agent="Orchard/1") as client:
        return client.post(path, json={"code": code, "code_verifier": verifier})


def app_token(browser: Browser, machine_id: str = "") -> Json:
    pkce = Pkce()
    start = browser.get(app_start(pkce, machine_id=machine_id))
    told = allow(browser, start.headers["location"])
    assert told["state"] == pkce.state
    answer = exchange(browser.hub, told["code"], pkce.verifier)
    assert answer.status_code == 200, answer.text
    body: Json = answer.json()
    return body


def test_a_signed_in_user_sees_the_app_and_allows_it(browser: Browser) -> None:
    browser.sign_in("erin")
    start = browser.get(app_start(Pkce(), "Orchard <b>2</b>"))
    assert start.status_code == 302
    page = browser.get(start.headers["location"])
    assert "Allow “Orchard &lt;b&gt;2&lt;/b&gt;”?" in page.text
    assert "127.0.0.1:8765" in page.text
    assert f"form-action 'self' {HOME};" in page.headers["content-security-policy"]
    body = app_token(browser)
    assert set(body) == {"token", "tokenName", "expiresAt"}
    assert re.fullmatch("cw_app_[0-9a-f]{32}", body["token"])
    assert (body["tokenName"], body["expiresAt"]) == ("Orchard", None)
    assert status(browser.hub, body["token"]) == 200


def test_who_is_not_signed_in_signs_in_first_and_is_still_asked(browser: Browser) -> None:
    start = browser.get(app_start(Pkce()))
    browser.github.person = "erin"
    back = browser.get(browser.agree(browser.start(start.headers["location"])))
    assert back.headers["location"].startswith("/consent?")
    assert "code" in allow(browser, back.headers["location"])


def test_an_app_that_is_turned_away_is_told_so(browser: Browser) -> None:
    browser.sign_in("erin")
    pkce = Pkce()
    told = allow(browser, browser.get(app_start(pkce)).headers["location"], "deny")
    assert told == {"error": "access_denied", "state": pkce.state}


def test_a_page_that_cannot_show_our_form_cannot_allow(browser: Browser) -> None:
    browser.sign_in("erin")
    fields = Pkce().query(HOME, app_name="evil") | {"decision": "allow"}
    answer = browser.client.post("/consent", data=fields, headers={"Origin": "https://evil.example"})
    assert answer.status_code == 403
    bare = browser.client.post("/consent", data=fields, headers={"Origin": browser.hub.url})
    assert bare.status_code == 403


def test_a_new_app_token_of_a_machine_replaces_the_old_one(browser: Browser) -> None:
    browser.sign_in("erin")
    old, elsewhere = app_token(browser, "m1")["token"], app_token(browser, "m2")["token"]
    new = app_token(browser, "m1")["token"]
    assert [status(browser.hub, one) for one in (old, elsewhere, new)] == [401, 200, 200]


def test_twenty_minted_app_tokens_and_no_more(browser: Browser) -> None:
    browser.sign_in("frank")
    with program(browser.hub.url, browser.session) as client:
        minted = [client.post("/api/v1/auth/apps/mint", json={"name": f"n{n}"}).json() for n in range(20)]
        assert (minted[0]["tokenName"], minted[0]["kind"]) == ("n0", "app")
        refused(client.post("/api/v1/auth/apps/mint", json={"name": "one more"}), "quota_exceeded", 429)
        listed = client.get("/api/v1/tokens").json()["items"]
        assert client.delete(f"/api/v1/tokens/{listed[0]['id']}").status_code == 204
        assert client.post("/api/v1/auth/apps/mint", json={"name": "again"}).status_code == 201


def test_a_name_that_is_none_mints_nothing(browser: Browser) -> None:
    browser.sign_in("fran")
    names: list[Any] = ["", "x" * 101, None, ["a"], "nul\0", "lone \ud800"]
    with program(browser.hub.url, browser.session) as client:
        for name in names:
            for path in ("/api/v1/tokens/channel", "/api/v1/auth/apps/mint"):
                body = json.dumps({"name": name})
                answer = client.post(path, content=body, headers={"Content-Type": "application/json"})
                assert answer.status_code == 400, (name, path, answer.text)


def test_an_app_token_mints_no_app_token(browser: Browser) -> None:
    browser.sign_in("erin")
    with program(browser.hub.url, app_token(browser)["token"]) as client:
        refused(client.post("/api/v1/auth/apps/mint", json={"name": "child"}), "forbidden", 403)
        refused(client.get("/api/v1/auth-sessions"), "forbidden", 403)


ADDRESSES = [
    (f"{AT_HOME}/callback", 302),
    (AT_HOME, 302),
    ("http://localhost:1/callback", 302),
    (f"{AT_HOME}.evil.example/callback", 400),
    (f"{AT_HOME}:444/callback", 400),
    (f"{AT_HOME}@evil.example/", 400),
    (f"{AT_HOME}/callback?x=1", 400),
    ("http://app.example/callback", 400),
    ("https://app.example.evil/", 400),
]


def test_an_app_comes_home_only_where_the_operator_said(listed_hub: HubProcess) -> None:
    with program(listed_hub.url) as client:
        for redirect_uri, status_code in ADDRESSES:
            query = Pkce().query(redirect_uri, app_name="x")
            assert client.get("/api/v1/auth/spa/start", params=query).status_code == status_code, redirect_uri
            if redirect_uri.startswith("https"):  # a command line is at home on loopback alone
                assert client.get("/api/v1/auth/oauth/start", params=query).status_code == 400, redirect_uri


def test_only_such_an_apps_pages_may_read_answers(listed_hub: HubProcess) -> None:
    with program(listed_hub.url, listed_hub.mint("cora", "app")) as client:
        for origin, allowed in ((AT_HOME, AT_HOME), ("https://evil.example", None), ("null", None)):
            preflight = {"Origin": origin, "Access-Control-Request-Method": "GET"}
            for answer in (
                client.get("/api/v1/me", headers={"Origin": origin}),
                client.options("/api/v1/me", headers=preflight),
            ):
                assert answer.headers.get("access-control-allow-origin") == allowed, origin
                assert "access-control-allow-credentials" not in answer.headers, origin


# Devices.


class Device:
    """A program without a browser."""

    def __init__(self, hub: HubProcess, name: str = "Lamp") -> None:
        self.hub = hub
        with program(hub.url) as client:
            answer = client.post(
                "/api/v1/auth/device/code", json={"app_name": name, "machine_id": secrets.token_hex(4)}
            )
        assert answer.status_code == 200, answer.text
        self.codes: Json = answer.json()

    def poll(self) -> httpx.Response:
        with program(self.hub.url) as client:
            return client.post("/api/v1/auth/device/token", json={"device_code": self.codes["device_code"]})


def test_a_device_gets_its_token_once_its_user_typed_the_code(browser: Browser) -> None:
    device = Device(browser.hub)
    refused(device.poll(), "authorization_pending")
    refused(device.poll(), "slow_down")
    browser.sign_in("gina")
    page = browser.get(device.codes["verification_uri_complete"])
    assert f'value="{device.codes["user_code"]}"' in page.text
    typed = device.codes["user_code"].lower().replace("-", " ")
    assert "Allow “Lamp”?" in browser.post("/device", {"user_code": typed}).text
    answer = browser.post("/device", {"user_code": typed, "decision": "allow"})
    assert answer.status_code == 302, answer.text
    body = device.poll().json()
    assert (set(body), body["token_type"]) == ({"access_token", "token_type"}, "Bearer")
    assert status(browser.hub, body["access_token"]) == 200
    refused(device.poll(), "invalid_grant")
    assert status(browser.hub, body["access_token"]) == 401  # exchanged twice: a thief may hold it


def test_a_device_that_is_turned_away_is_told_so(browser: Browser) -> None:
    device = Device(browser.hub)
    browser.sign_in("gina")
    browser.post("/device", {"user_code": device.codes["user_code"], "decision": "deny"})
    refused(device.poll(), "access_denied")


def test_the_device_page_asks_to_sign_in_first(browser: Browser) -> None:
    answer = browser.get("/device?user_code=BCDF-GHJK")
    assert answer.status_code == 302
    assert answer.headers["location"] == "/signin?next=%2Fdevice%3Fuser_code%3DBCDF-GHJK"


def test_a_device_needs_a_name_that_can_be_shown(browser: Browser) -> None:
    with program(browser.hub.url) as client:
        for name in ["", " ", "a\u202eb", "x" * 61, "nul\0", None, 5]:
            answer = client.post("/api/v1/auth/device/code", json={"app_name": name})
            assert answer.status_code == 400, name


def test_tokens_are_listed_to_the_letter(browser: Browser) -> None:
    browser.sign_in("hugo")
    token = app_token(browser, "m9")["token"]
    with program(browser.hub.url) as client:
        (row,) = client.get("/api/v1/tokens", headers=bearer(token)).json()["items"]
    assert (row["prefix"], row["kind"], row["appName"]) == (token[:14], "app", "Orchard")
    assert (row["machineId"], row["userAgent"], row["revokedAt"]) == ("m9", "Orchard/1", None)
