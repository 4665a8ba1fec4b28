"""Clients that register themselves and sign in by the user's browser, as coding agents do for `/mcp`."""

import re
from typing import Any

import pytest

from lab.callers import Json
from tests.attempts import Attempts
from tests.signin.clients import Browser, Pkce, program, status
from tests.signin.registered import BACK, CLIENTS, TOKEN, allow, consent, redeem, register
from tests.signin.tried import REDIRECTED


def test_the_user_sees_who_asks_for_what(browser: Browser) -> None:
    browser.sign_in("erin")
    client: Json = register(browser).json()
    page = browser.get(consent(Pkce(), client["client_id"], scope="ask offline_access"))
    assert "Allow “Orchard &lt;b&gt;”?" in page.text
    assert "127.0.0.1:8765" in page.text
    assert re.search(r"to\s+ask agents\.", page.text)


def test_a_code_is_for_its_client_its_address_and_its_verifier_once(browser: Browser) -> None:
    browser.sign_in("erin")
    pkce, mine, other = Pkce(), register(browser).json()["client_id"], register(browser).json()["client_id"]
    for wrong in (
        {"client_id": other},
        {"redirect_uri": "http://127.0.0.1:8765/elsewhere"},
        {"code_verifier": Pkce().verifier},
    ):
        code = allow(browser, consent(pkce, mine))["code"]
        refused = redeem(browser, mine, code, pkce.verifier, **wrong)
        assert (refused.status_code, refused.json()["error"]) == (400, "invalid_grant")
        assert redeem(browser, mine, code, pkce.verifier).json()["error"] == "invalid_grant"
    code = allow(browser, consent(pkce, mine))["code"]
    with program(browser.hub.url) as client:  # nor for an app's exchange
        body = {"code": code, "code_verifier": pkce.verifier}
        assert client.post("/api/v1/auth/spa/exchange", json=body).status_code == 400


def test_a_program_on_the_users_machine_comes_back_at_any_port(browser: Browser) -> None:
    browser.sign_in("erin")
    for host in ("127.0.0.1", "[::1]", "localhost"):
        pkce, back = Pkce(), f"http://{host}:51234/callback"
        addresses = (f"http://{host}/callback", f"http://{host}:8765/other")
        client_id = register(browser, *addresses).json()["client_id"]
        code = allow(browser, consent(pkce, client_id, redirect_uri=back), back=back)["code"]
        assert redeem(browser, client_id, code, pkce.verifier, redirect_uri=back).status_code == 200
        moved = consent(pkce, client_id, redirect_uri=f"http://{host}:51234/elsewhere")
        assert browser.get(moved).status_code == 400


def test_the_port_of_an_address_elsewhere_is_exact(browser: Browser) -> None:
    browser.sign_in("erin")
    client_id = register(browser, "https://app.example/callback").json()["client_id"]
    moved = consent(Pkce(), client_id, redirect_uri="https://app.example:8443/callback")
    assert browser.get(moved).status_code == 400


def test_signing_in_again_replaces_the_token(browser: Browser) -> None:
    browser.sign_in("erin")
    client_id, tokens = register(browser).json()["client_id"], []
    for _ in range(2):
        pkce = Pkce()
        code = allow(browser, consent(pkce, client_id, resource=f"{browser.hub.url}/mcp"))["code"]
        answer = redeem(browser, client_id, code, pkce.verifier, resource=f"{browser.hub.url}/mcp")
        assert answer.headers["cache-control"] == "no-store"
        assert answer.json()["expires_in"] == 30 * 24 * 3600
        tokens.append(answer.json()["access_token"])
    assert [status(browser.hub, one) for one in tokens] == [401, 200]


WRONG = [
    {"client_id": "cw_client_x"},
    {"client_id": "unknown"},
    {"redirect_uri": "http://127.0.0.1:8766/callback/"},
    {"redirect_uri": "http://127.0.0.1:8765/callback/"},
    {"redirect_uri": "http://localhost:8765/callback"},
    {"redirect_uri": "http://127.0.0.1:65536/callback"},
    {"redirect_uri": "http://127.0.0.1:8765@evil.example/callback"},
    {"redirect_uri": "https://127.0.0.1:8765/callback"},
    {"redirect_uri": "https://evil.example/callback"},
    {"response_type": "token"},
    {"code_challenge_method": "plain"},
    {"code_challenge": ""},
    {"scope": "publish admin"},
    {"resource": "https://elsewhere.example/mcp"},
    {"state": ""},
]


@pytest.mark.attack
def test_a_wrong_request_leads_nowhere(browser: Browser, attempts: Attempts) -> None:
    browser.sign_in("erin")
    client_id = register(browser).json()["client_id"]
    for more in WRONG:
        page = browser.get(consent(Pkce(), more.get("client_id", client_id), **more))
        assert (page.status_code, "location" in page.headers) == (400, False), more
    attempts.count("requests for consent that do not fit the client", len(WRONG))


UNSAFE: list[list[Any]] = [
    ["http://evil.example/callback"],
    ["javascript:alert(1)"],
    ["https://a.example/x?y=1"],
    ["https://a.example/x#y"],
    ["https://user@a.example/"],
    ["https://a.example\\@b.example/"],
    [BACK] * 6,
    [f"https://a.example/{'x' * 280}/{n}" for n in range(5)],
    [7],
    [],
]


@pytest.mark.attack
def test_a_client_registers_only_addresses_that_are_safe(browser: Browser, attempts: Attempts) -> None:
    with program(browser.hub.url) as client:
        for addresses in UNSAFE:
            answer = client.post(CLIENTS, json={"redirect_uris": addresses})
            assert answer.status_code == 400, addresses
            assert answer.json()["error"] in ("invalid_redirect_uri", "invalid_request"), addresses
    attempts.count(REDIRECTED, len(UNSAFE))


@pytest.mark.attack
def test_the_answer_to_a_client_names_its_issuer(browser: Browser) -> None:
    browser.sign_in("erin")
    client_id = register(browser).json()["client_id"]
    for decision in ("allow", "deny"):
        assert allow(browser, consent(Pkce(), client_id), decision)["iss"] == browser.hub.url
    named = browser.get("/.well-known/oauth-authorization-server").json()
    assert named["authorization_response_iss_parameter_supported"] is True


GRANTS = ["password", "client_credentials", "implicit", "urn:ietf:params:oauth:grant-type:device_code"]
GRANTS += [f"urn:ietf:params:oauth:grant-type:{name}" for name in ("jwt-bearer", "saml2-bearer", "token-exchange")]


def test_other_grants_are_refused(browser: Browser) -> None:
    client_id = register(browser).json()["client_id"]
    for grant in GRANTS:
        refused = redeem(browser, client_id, "x", Pkce().verifier, grant_type=grant)
        assert (refused.status_code, refused.json()["error"]) == (400, "unsupported_grant_type"), grant
    with program(browser.hub.url) as client:
        assert client.post(TOKEN, json={}).status_code == 415
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        assert client.post(TOKEN, content=b"\xff=%00&code=%00", headers=form).status_code == 400


def test_the_metadata_names_what_there_is(browser: Browser) -> None:
    named = browser.get("/.well-known/oauth-authorization-server").json()
    assert named["issuer"] == browser.hub.url
    assert named["code_challenge_methods_supported"] == ["S256"]
    assert named["grant_types_supported"] == ["authorization_code", "refresh_token"]
    assert named["registration_endpoint"] == f"{browser.hub.url}{CLIENTS}"
    assert named["token_endpoint"] == f"{browser.hub.url}{TOKEN}"
    [key] = browser.get(named["jwks_uri"].removeprefix(browser.hub.url)).json()["keys"]
    assert (key["alg"], key["use"]) == ("ES256", "sig")
