"""Providers of OpenID Connect that lie or fail, and callers who step between: none of them is signed in."""

import itertools
from html import unescape
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from joserfc.jwk import OctKey

from accounts.models import User
from accounts.oauth import identity_providers
from accounts.signup import Provider, read_signup
from lab.callers import TLS
from tests.native.rows import browser
from tests.oidc import CLIENT_SECRET, COOKIE, GONE, PAGE, START, Oidc, other_key, sign_in_by_oidc

pytestmark = pytest.mark.django_db

LIES: dict[str, dict[str, Any]] = {
    "no nonce": {"nonce": GONE},
    "another nonce": {"nonce": "0" * 64},
    "another issuer": {"iss": "https://evil.example"},
    "no issuer": {"iss": GONE},
    "for another client": {"aud": "another"},
    "for several, authorised by none": {"aud": ["clawbridge", "another"], "azp": "another"},
    "no audience": {"aud": GONE},
    "over": {"exp": 1_000_000},
    "no end": {"exp": GONE},
    "from the future": {"iat": 4_000_000_000},
    "no subject": {"sub": GONE},
    "a number as subject": {"sub": 7},
    "an empty subject": {"sub": ""},
    "an endless subject": {"sub": "x" * 256},
    "a subject with NUL": {"sub": "a\0b"},
}


def test_an_id_token_that_does_not_hold_is_refused(oidc: Oidc) -> None:
    for name, lie in LIES.items():
        oidc.reset()
        identity_providers._kept.clear()
        oidc.lies |= lie
        answer = sign_in_by_oidc(browser())
        assert (answer.status_code, COOKIE in answer.cookies) == (502, False), name
    assert not User.objects.exists()


def test_a_key_that_is_not_the_providers_is_refused(oidc: Oidc) -> None:
    oidc.key = other_key()
    assert sign_in_by_oidc(browser()).status_code == 502
    oidc.header, oidc.key = {"alg": "HS256", "kid": "one"}, OctKey.import_key(CLIENT_SECRET)
    assert sign_in_by_oidc(browser()).status_code == 502
    oidc.header = {"alg": "none"}
    assert sign_in_by_oidc(browser()).status_code == 502
    assert not User.objects.exists()


def test_metadata_that_do_not_hold_end_the_leg_at_its_start(oidc: Oidc, subtests: pytest.Subtests) -> None:
    without_https = {"token_endpoint": "http://plain.example/token"}
    for metadata in ({"issuer": "https://evil.example"}, without_https, {"jwks_uri": ""}):
        with subtests.test(metadata=metadata):
            oidc.reset()
            oidc.metadata |= metadata
            identity_providers._kept.clear()
            answer = browser().get(START, headers=PAGE)
            assert answer.status_code == 502
            assert "Acme did not answer as it should" in answer.content.decode()
            assert 'href="/signin"' in answer.content.decode()


def test_a_code_of_another_issuer_is_not_redeemed(oidc: Oidc) -> None:
    client = browser()
    back = httpx.get(client.get(START)["Location"], trust_env=False, verify=TLS).headers["location"]
    parts = urlsplit(back)
    answer = client.get(f"{parts.path}?{parts.query}&iss=https://evil.example")
    assert (answer.status_code, answer.json()["error"]) == (502, "provider_failed")
    assert [path for path, _ in oidc.seen].count("/token") == 0


def test_a_sign_in_belongs_to_its_browser_its_provider_and_is_good_once(oidc: Oidc, settings: Any) -> None:
    client, thief = browser(), browser()
    back = urlsplit(httpx.get(client.get(START)["Location"], trust_env=False, verify=TLS).headers["location"])
    settings.OIDC_PROVIDERS = (oidc.provider(), Provider(2, "https://two.example", "c", "s", "Two"))
    thief.get(START)
    assert thief.get(f"{back.path}?{back.query}").json()["error"] == "invalid_state"
    assert client.get(f"/api/v1/auth/oidc/2/callback?{back.query}").json()["error"] == "invalid_state"
    assert client.get(f"/api/v1/auth/oauth/callback?{back.query}").json()["error"] == "invalid_state"
    assert client.get(f"{back.path}?{back.query}").status_code == 302
    assert client.get(f"{back.path}?{back.query}").json()["error"] == "invalid_state"


FAILURES = {
    "500": lambda exchange: exchange.answer(500, b"oops"),
    "a page": lambda exchange: exchange.answer(200, b"<html>", Content_Type="text/html"),
    "a list": lambda exchange: exchange.answer(200, []),
    "too much": lambda exchange: exchange.answer(200, b" " * 400_000),
    "elsewhere": lambda exchange: exchange.answer(302, Location="http://127.0.0.1:9/steal"),
}


def test_a_failing_provider_is_refused(oidc: Oidc) -> None:
    paths = ("/.well-known/openid-configuration", "/token", "/jwks", "/userinfo")
    for path, (name, failure) in itertools.product(paths, FAILURES.items()):
        oidc.reset()
        identity_providers._kept.clear()
        oidc.instead[path] = failure
        answer = sign_in_by_oidc(browser())
        assert answer.status_code in (400, 502), (path, name)
        assert "canary" not in answer.content.decode(), (path, name)
    assert not User.objects.exists()


def test_no_secret_of_the_leg_is_kept_or_logged(oidc: Oidc, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    sign_in_by_oidc(browser())
    oidc.lies["nonce"] = "x"
    sign_in_by_oidc(browser())
    assert "canary" not in caplog.text
    assert CLIENT_SECRET not in repr(oidc.provider())


def test_a_subject_cannot_smuggle_a_command_into_what_an_operator_copies(oidc: Oidc, settings: Any) -> None:
    settings.SIGNUP = read_signup("closed")
    oidc.lies["sub"] = "x; reboot"
    page = unescape(sign_in_by_oidc(browser()).content.decode())
    assert "--subject 'x; reboot'" in page
