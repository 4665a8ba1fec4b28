"""Clients that refresh their tokens: each refresh token is good once, and ends with its family."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import httpx2
import pytest
from mcp.client import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

from lab.callers import ANSWER_WITHIN_S, TLS, Json
from lab.hub_process import HubProcess
from lab.hub_storage import MakeStorage
from lab.statements import writing
from tests.github import GitHub
from tests.signin.clients import Browser, MakeBrowser, Pkce, program, status
from tests.signin.conftest import PLENTY
from tests.signin.registered import BACK, TOKEN, Kept, allow, consent, redeem, register
from tests.signin.test_revocation import set_active

GRANT_TYPES = ["authorization_code", "refresh_token"]
HOUR_S, DAY_S = 3600, 24 * 3600


class Refreshing:
    """A client with tokens of a user, by the browser that is signed in."""

    def __init__(self, browser: Browser, **more: str) -> None:
        self.browser, self.hub = browser, browser.hub
        self.client_id: str = register(browser, grant_types=GRANT_TYPES).json()["client_id"]
        self.tokens = self.sign_in(**more)

    def sign_in(self, **more: str) -> Json:
        pkce = Pkce()
        code = allow(self.browser, consent(pkce, self.client_id, **more))["code"]
        answer = redeem(self.browser, self.client_id, code, pkce.verifier)
        assert answer.status_code == 200, answer.text
        self.code, self.verifier = code, pkce.verifier
        tokens: Json = answer.json()
        return tokens

    def send(self, token: str, *, at: str = "", **more: str) -> httpx.Response:
        form = {"grant_type": "refresh_token", "refresh_token": token, "client_id": self.client_id}
        with program(at or self.hub.url) as client:
            return client.post(TOKEN, data=form | more)

    def refresh(self, token: str = "", **more: str) -> Json:
        answer = self.send(token or self.tokens["refresh_token"], **more)
        assert answer.status_code == 200, answer.text
        tokens: Json = answer.json()
        return tokens

    def status(self, tokens: Json) -> int:
        return status(self.hub, tokens["access_token"])

    def make_earlier(self, **columns: timedelta) -> None:
        """Move times of all grants into the past."""
        with writing(self.hub._env) as run:
            for column, by in columns.items():
                [(kept,)] = run(f"SELECT max({column}) FROM accounts_clientgrant").fetchall()
                moment = kept if isinstance(kept, datetime) else datetime.fromisoformat(kept)
                run(f"UPDATE accounts_clientgrant SET {column} = ?", moment - by)


def check_refused(answer: httpx.Response, error: str = "invalid_grant") -> None:
    assert (answer.status_code, answer.json()["error"]) == (400, error), answer.text


@pytest.fixture
def client(browser: Browser) -> Refreshing:
    browser.sign_in("rita")
    return Refreshing(browser)


def lifetime_s(hub: HubProcess, table: str, since: str) -> float:
    """Of the newest row."""
    query = f"SELECT {since}, expires_at FROM accounts_{table} ORDER BY id DESC LIMIT 1"
    with writing(hub._env) as run:
        began, ends = (datetime.fromisoformat(one) for one in run(query).fetchone())
    return (ends - began).total_seconds()


def test_the_sixty_minutes_and_the_ninety_days(client: Refreshing) -> None:
    answer = client.send(client.tokens["refresh_token"])
    tokens = answer.json()
    assert answer.headers["cache-control"] == "no-store"
    assert (tokens["token_type"], tokens["scope"]) == ("Bearer", "ask read")
    assert tokens["expires_in"] == client.tokens["expires_in"] == HOUR_S - 5 * 60  # see the ADR
    assert lifetime_s(client.hub, "credential", "created_at") == HOUR_S
    assert lifetime_s(client.hub, "clientgrant", "refreshed_at") == 90 * DAY_S


def test_each_use_gives_the_next_token_and_both_access_tokens_work(client: Refreshing) -> None:
    tokens = [client.tokens]
    for _ in range(3):
        tokens.append(client.refresh(tokens[-1]["refresh_token"]))
    assert len({one["refresh_token"] for one in tokens}) == len({one["access_token"] for one in tokens}) == 4
    assert [client.status(one) for one in tokens] == [200] * 4
    for one in tokens:  # a refresh token opens nothing by itself
        assert status(client.hub, one["refresh_token"]) == 401


@pytest.mark.attack
def test_a_used_token_that_comes_again_ends_the_family_and_the_user_sees_it(client: Refreshing) -> None:
    other = Refreshing(client.browser)
    stolen, mine = client.tokens, client.refresh()
    client.make_earlier(refreshed_at=timedelta(seconds=31))
    check_refused(client.send(stolen["refresh_token"]))
    check_refused(client.send(mine["refresh_token"]))
    assert [client.status(one) for one in (stolen, mine)] == [401, 401]
    assert other.status(other.refresh()) == 200  # another client of the user
    page = client.browser.get("/account").text
    assert re.search(r"signed out <strong>Orchard &lt;b&gt;</strong>.*already used came again", page)
    log = "".join(one.output for one in client.hub.programs)
    assert "signin.refresh_token_reused" in log
    assert not re.search("cw_ref_[0-9a-f]{20}", log + page)
    assert client.status(client.sign_in()) == 200


@pytest.mark.attack
def test_a_token_two_before_ends_the_family_at_once(client: Refreshing) -> None:
    newest = client.refresh(client.refresh()["refresh_token"])
    check_refused(client.send(client.tokens["refresh_token"]))
    check_refused(client.send(newest["refresh_token"]))


@pytest.mark.attack
def test_parallel_uses_get_the_same_next_token(client: Refreshing) -> None:
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: client.refresh(), range(4)))
    [following] = {one["refresh_token"] for one in answers}
    assert [client.status(one) for one in answers] == [200] * 4
    client.make_earlier(refreshed_at=timedelta(seconds=29))
    assert client.refresh()["refresh_token"] == following
    client.refresh(following)


@pytest.mark.attack
def test_a_scope_is_narrowed_for_one_token_and_never_widened(client: Refreshing) -> None:
    narrow = client.refresh(scope="ask")
    assert narrow["scope"] == "ask"
    with program(client.hub.url, narrow["access_token"]) as reader:
        assert reader.get("/api/v1/agents").status_code == 403
    assert client.refresh(narrow["refresh_token"])["scope"] == "ask read"
    asking = Refreshing(client.browser, scope="ask")
    for scope in ("ask read", "publish", "ask admin"):
        check_refused(asking.send(asking.tokens["refresh_token"], scope=scope), "invalid_scope")
    assert asking.refresh()["scope"] == "ask"  # no refusal used the token up


@pytest.mark.attack
def test_a_token_is_for_its_client_and_for_this_hub(client: Refreshing) -> None:
    token, other = client.tokens["refresh_token"], Refreshing(client.browser)
    check_refused(client.send(token, client_id=other.client_id))
    check_refused(client.send(token, client_id="cw_client_x"), "invalid_client")
    check_refused(client.send(token, resource="https://elsewhere.example/mcp"), "invalid_target")
    for wrong in ("", "x", "cw_ref_", token.upper(), f"{token}0", client.tokens["access_token"]):
        check_refused(client.send(wrong))
    assert client.status(client.refresh(resource=f"{client.hub.url}/mcp")) == 200


def test_an_expired_token_is_refused(client: Refreshing) -> None:
    client.make_earlier(expires_at=timedelta(days=90, seconds=1))
    check_refused(client.send(client.tokens["refresh_token"]))


def test_a_suspended_user_refreshes_nothing_until_the_suspension_ends(client: Refreshing) -> None:
    set_active(client.hub, "rita", is_active=False)
    try:
        check_refused(client.send(client.tokens["refresh_token"]))
    finally:
        set_active(client.hub, "rita", is_active=True)
    client.refresh()


def test_what_ends_a_grant_ends_all_of_it(client: Refreshing) -> None:
    def by_the_page(tokens: Json) -> None:
        page = client.browser.get("/account").text
        assert tokens["access_token"][:14] not in page  # its line is that of the client
        newest = re.findall(r"/account/clients/\d+/revoke", page)[0]
        assert client.browser.post(newest, {}).status_code == 302

    def by_rest(tokens: Json) -> None:
        with program(client.hub.url, client.browser.session) as owner:
            listed = owner.get("/api/v1/tokens").json()["items"]
            [token_id] = [one["id"] for one in listed if one["prefix"] == tokens["access_token"][:14]]
            assert owner.post(f"/api/v1/tokens/{token_id}/rotate", json={}).status_code == 404
            assert owner.delete(f"/api/v1/tokens/{token_id}").status_code == 204

    def by_logging_out(tokens: Json) -> None:
        with program(client.hub.url, tokens["access_token"]) as itself:
            assert itself.post("/api/v1/auth/logout").status_code == 204

    def by_the_code_again(tokens: Json) -> None:
        check_refused(redeem(client.browser, client.client_id, client.code, client.verifier))

    def by_signing_in_again(tokens: Json) -> None:
        client.sign_in()

    ends: list[Callable[[Json], None]] = [
        by_the_page, by_rest, by_logging_out, by_the_code_again, by_signing_in_again
    ]  # fmt: skip
    for end in ends:
        first = client.sign_in()
        second = client.refresh(first["refresh_token"])
        end(second)
        assert [client.status(one) for one in (first, second)] == [401, 401], end
        check_refused(client.send(second["refresh_token"]))


def test_a_client_is_told_what_it_registered_for(browser: Browser) -> None:
    browser.sign_in("rita")
    for asked, told in (
        ({"grant_types": GRANT_TYPES}, GRANT_TYPES),
        ({"grant_types": ["refresh_token", "urn:x:unknown"]}, GRANT_TYPES),
        ({"grant_types": ["authorization_code"]}, ["authorization_code"]),
        ({"grant_types": None}, ["authorization_code"]),
        ({"token_endpoint_auth_method": "client_secret_post"}, ["authorization_code"]),
    ):
        answer = register(browser, **asked)
        assert answer.json()["grant_types"] == told, asked
        assert answer.json()["token_endpoint_auth_method"] == "none"
        assert "client_secret" not in answer.json()
        page = browser.get(consent(Pkce(), answer.json()["client_id"])).text
        assert ("renews the token" in page, "valid for 30 days" in page) == (
            told == GRANT_TYPES,
            told != GRANT_TYPES,
        )
    assert register(browser, grant_types="refresh_token").status_code == 400


def test_a_client_that_did_not_register_for_it_gets_one_token_for_thirty_days(browser: Browser) -> None:
    browser.sign_in("rita")
    pkce, client_id = Pkce(), register(browser).json()["client_id"]
    tokens = redeem(browser, client_id, allow(browser, consent(pkce, client_id))["code"], pkce.verifier).json()
    assert tokens.keys() == {"access_token", "token_type", "scope", "expires_in"}
    assert tokens["expires_in"] == 30 * DAY_S


@pytest.mark.attack
def test_a_stolen_database_gives_no_refresh_token(client: Refreshing) -> None:
    tokens = client.refresh()
    with writing(client.hub._env) as run:
        rows = run("SELECT * FROM accounts_clientgrant").fetchall()
    for token in (client.tokens["refresh_token"], tokens["refresh_token"]):
        assert not any(part in str(rows) for part in (token, token[7:39], token[39:]))


async def test_the_sdks_client_signs_in_by_the_browser_and_refreshes_by_itself(browser: Browser) -> None:
    browser.sign_in("rita")
    hub, kept, told, opened = browser.hub, Kept(), {}, []

    async def go(address: str) -> None:
        opened.append(address)
        told.update(allow(browser, address))

    async def come_back() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(code=told["code"], state=told["state"], iss=told["iss"])

    metadata = OAuthClientMetadata(redirect_uris=[BACK], client_name="a coding agent")  # type: ignore[list-item]
    provider = OAuthClientProvider(f"{hub.url}/mcp", metadata, kept, go, come_back)
    async with httpx2.AsyncClient(auth=provider, timeout=ANSWER_WITHIN_S, trust_env=False, verify=TLS) as http:
        transport = streamable_http_client(f"{hub.url}/mcp", http_client=http)
        async with Client(transport, mode="legacy") as asking:
            await asking.call_tool("list_agents", {})
            first = kept.tokens
            assert first is not None
            assert first.scope == "ask read"
            with program(hub.url, first.access_token) as reader:
                assert reader.post("/api/v1/blocks", json={"login": "x"}).status_code == 403
            with writing(hub._env) as run:  # an hour later, for the hub and for the client
                ended = datetime.now(UTC) - timedelta(seconds=1)
                run("UPDATE accounts_credential SET expires_at = ? WHERE grant_id IS NOT NULL", ended)
            provider.context.token_expiry_time = ended.timestamp()
            listed = await asking.call_tool("list_agents", {})
    assert not listed.is_error
    assert kept.tokens is not None
    assert kept.tokens.refresh_token not in (None, first.refresh_token)
    assert status(hub, first.access_token) == 401
    assert len(opened) == 1


@pytest.mark.slow
@pytest.mark.distributed
def test_parallel_uses_over_two_processes_get_the_same_next_token(
    make_storage: MakeStorage, github: GitHub, make_browser: MakeBrowser
) -> None:
    hub: Any = HubProcess.start(make_storage("grown"), processes=2, **github.settings, **PLENTY)
    try:
        browser = make_browser(hub)
        browser.sign_in("rita")
        client = Refreshing(browser)
        for _ in range(5):
            token = client.tokens["refresh_token"]
            with ThreadPoolExecutor(8) as pool:
                answers = list(pool.map(lambda n, sent=token: client.send(sent, at=hub.urls[n % 2]), range(8)))
            assert [one.status_code for one in answers] == [200] * 8
            [client.tokens["refresh_token"]] = {one.json()["refresh_token"] for one in answers}
    finally:
        hub.stop()
