"""Providers of OpenID Connect that lie or fail, and callers who step between: none of them is signed in."""

import itertools
import re
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from joserfc.jwk import OctKey

from accounts.models import Credential, ProviderIdentity, User
from accounts.oauth import identity_providers
from accounts.signup import Provider, read_signup
from hub import jobs
from hub.account_data.erasure import close
from lab.callers import TLS
from tests.attempts import Attempts
from tests.data.rows import WORD, owner_of_everything
from tests.github import Grant
from tests.native.rows import api, browser, person
from tests.oidc import CLIENT_SECRET, COOKIE, GONE, PAGE, START, Oidc, me, other_key, sign_in_by_oidc

pytestmark = [pytest.mark.django_db, pytest.mark.attack]

LYING = "lies and failures of a provider of OpenID Connect"
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
    "of another access token": {"at_hash": "x" * 22},
}


def test_an_id_token_that_does_not_hold_is_refused(oidc: Oidc, attempts: Attempts) -> None:
    for name, lie in LIES.items():
        oidc.reset()
        identity_providers._kept.clear()
        oidc.lies |= lie
        answer = sign_in_by_oidc(browser())
        assert (answer.status_code, COOKIE in answer.cookies) == (502, False), name
    assert not User.objects.exists()
    attempts.count(LYING, len(LIES))


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


def back_of(client: Any, start: str = START) -> str:
    """The path to which a provider sends a browser back, with the code and the state."""
    parts = urlsplit(httpx.get(client.get(start)["Location"], trust_env=False, verify=TLS).headers["location"])
    return f"{parts.path}?{parts.query}"


def test_a_code_of_another_person_is_not_taken_into_an_own_sign_in(oidc: Oidc) -> None:
    mine = browser()
    back = back_of(mine)
    oidc.person = "mallory"
    theirs = parse_qs(urlsplit(back_of(browser())).query)["code"][0]
    injected = re.sub(r"code=\w+", f"code={theirs}", back)
    assert injected != back
    assert mine.get(injected).status_code == 400
    assert not User.objects.exists()


def test_an_id_token_of_an_earlier_sign_in_is_not_taken_again(oidc: Oidc) -> None:
    assert sign_in_by_oidc(browser()).status_code == 302
    [asked] = [query for path, query in oidc.seen if path == "/authorize"]
    earlier = {"access_token": "x", "token_type": "Bearer", "id_token": oidc._id_token(Grant("ann", asked))}
    oidc.instead["/token"] = lambda exchange: exchange.answer(200, earlier)
    assert sign_in_by_oidc(browser()).status_code == 502


def test_another_issuer_in_the_place_of_the_first_has_none_of_its_accounts(oidc: Oidc, settings: Any) -> None:
    """The operator changes OIDC_ISSUER; the new provider has a person with the same subject."""
    assert sign_in_by_oidc(browser()).status_code == 302
    [ann] = User.objects.all()
    other = Oidc()
    other.start()
    try:
        settings.OIDC_PROVIDERS = (other.provider(),)
        begun = browser()
        assert begun.get(START)["Location"].startswith(other.url)
        client = browser()
        assert sign_in_by_oidc(client).status_code == 302
        assert me(client)["githubLogin"] != ann.login
    finally:
        other.stop()


def references_to(user: User) -> dict[str, int]:
    """The number of rows that refer to a user, by table and column, without those that have none."""
    found = {
        f"{one.related_model._meta.db_table}.{one.field.name}": one.related_model._default_manager.filter(
            **{one.field.name: user}
        ).count()
        for one in User._meta.related_objects
    }
    return {column: rows for column, rows in found.items() if rows}


def test_a_subject_whose_account_was_erased_gets_a_new_account_without_its_rows(oidc: Oidc) -> None:
    oidc.claims["preferred_username"] = f"{WORD}-login"
    before, after = browser(), browser()
    assert sign_in_by_oidc(before).status_code == 302
    old = owner_of_everything(WORD, person("bob"))
    assert ProviderIdentity.objects.get(issuer=oidc.url, subject="ann").user == old.user
    assert len(references_to(old.user)) >= 40
    close(old.user.pk)
    assert sign_in_by_oidc(after).status_code == 302
    new = User.objects.get(login=old.user.login)
    assert me(after)["id"] == new.pk != old.user.pk
    assert references_to(new) == {f"{one._meta.db_table}.user": 1 for one in (Credential, ProviderIdentity)}
    assert jobs.erase_closed() == 1
    assert references_to(new) == {f"{one._meta.db_table}.user": 1 for one in (Credential, ProviderIdentity)}
    assert me(after)["id"] == new.pk
    for answer in (before.get("/api/v1/me"), *(api(one).get("/api/v1/me") for one in (old.session, old.app))):
        assert answer.status_code == 401


def test_a_provider_that_changes_its_issuer_during_a_sign_in_is_refused(oidc: Oidc) -> None:
    client = browser()
    back = back_of(client)
    oidc.metadata["issuer"] = "https://evil.example"
    identity_providers._kept.clear()
    assert client.get(back).status_code == 502
    assert [path for path, _ in oidc.seen].count("/token") == 0


def test_a_sign_in_at_one_provider_is_not_ended_at_another(oidc: Oidc, settings: Any) -> None:
    """A mix-up: the metadata of the second provider name the first one's page of sign-in."""
    evil = Oidc()
    evil.start()
    try:
        settings.OIDC_PROVIDERS = (oidc.provider(), evil.provider(2, "Evil"))
        evil.metadata["authorization_endpoint"] = f"{oidc.url}/authorize"
        client = browser()
        back = back_of(client, "/api/v1/auth/oidc/2/start")
        assert back.startswith("/api/v1/auth/oidc/2/callback")
        for answer in (client.get(back.replace("/2/", "/1/")), client.get(f"{back}&iss={oidc.url}")):
            assert answer.status_code in (400, 502)
        assert [path for path, _ in evil.seen].count("/token") == 0
        assert not User.objects.exists()
    finally:
        evil.stop()


UNVERIFIED = [False, "false", "True", "yes", 1, 0, None, GONE, [True], {"verified": True}]


def test_a_mail_address_counts_only_if_the_provider_verified_it(
    oidc: Oidc, settings: Any, attempts: Attempts
) -> None:
    settings.SIGNUP = read_signup("@acme.example")
    for verified in UNVERIFIED:
        oidc.claims |= {"email": "ann@acme.example", "email_verified": verified}
        assert sign_in_by_oidc(browser()).status_code == 403, verified
    attempts.count(LYING, len(UNVERIFIED))
    oidc.claims["email_verified"] = True
    assert sign_in_by_oidc(browser()).status_code == 302


FAILURES = {
    "500": lambda exchange: exchange.answer(500, b"oops"),
    "a page": lambda exchange: exchange.answer(200, b"<html>", Content_Type="text/html"),
    "a list": lambda exchange: exchange.answer(200, []),
    "too much": lambda exchange: exchange.answer(200, b" " * 400_000),
    "elsewhere": lambda exchange: exchange.answer(302, Location="http://127.0.0.1:9/steal"),
}


def test_a_failing_provider_is_refused(oidc: Oidc, attempts: Attempts) -> None:
    paths = ("/.well-known/openid-configuration", "/token", "/jwks", "/userinfo")
    for path, (name, failure) in itertools.product(paths, FAILURES.items()):
        oidc.reset()
        identity_providers._kept.clear()
        oidc.instead[path] = failure
        answer = sign_in_by_oidc(browser())
        assert answer.status_code in (400, 502), (path, name)
        assert "canary" not in answer.content.decode(), (path, name)
    assert not User.objects.exists()
    attempts.count(LYING, len(paths) * len(FAILURES))


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
