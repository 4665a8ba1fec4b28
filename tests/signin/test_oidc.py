"""Signing in by OpenID Connect: the hub in this process, a provider on a real port."""

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from django.core.management import CommandError, call_command

from accounts.errors import LoginTaken
from accounts.models import ProviderIdentity, User
from accounts.oauth import identity_providers
from accounts.oauth.identity_providers import GitHubProfile
from accounts.oauth.provider_accounts import sign_in_github_user
from accounts.signup import Provider, read_providers, read_signup
from lab.callers import TLS
from lab.processes import Program, free_port, python
from tests.github import deny
from tests.native.rows import browser, person
from tests.oidc import CLIENT_ID, COOKIE, START, Oidc, me, other_key, sign_in_by_oidc

pytestmark = pytest.mark.django_db


def test_a_browser_comes_back_signed_in_by_pkce_and_nonce(oidc: Oidc) -> None:
    oidc.claims |= {"preferred_username": "ann", "picture": "https://pictures.test/ann"}
    client = browser()
    answer = sign_in_by_oidc(client, f"{START}?next=/account%3Fx=1")
    assert (answer.status_code, answer["Location"]) == (302, "/account?x=1")
    assert answer.cookies[COOKIE].value.startswith("cw_sess_")
    assert (me(client)["githubLogin"], me(client)["avatarUrl"]) == ("ann", "https://pictures.test/ann")
    asked = next(query for path, query in oidc.seen if path == "/authorize")
    assert asked["redirect_uri"].endswith("/api/v1/auth/oidc/1/callback")
    assert (asked["scope"], asked["code_challenge_method"]) == ("openid profile email", "S256")
    assert len(asked["nonce"]) == 64 != len(asked["state"])
    identity = ProviderIdentity.objects.get()
    assert (identity.issuer, identity.subject, identity.user.login) == (oidc.url, "ann", "ann")
    assert oidc.url in client.get("/account").content.decode()


def test_the_same_subject_is_the_same_account_whatever_it_is_called(oidc: Oidc) -> None:
    for name in ("ann", "renamed"):
        oidc.claims["preferred_username"] = name
        sign_in_by_oidc(browser())
    assert [user.login for user in User.objects.all()] == ["ann"]


@pytest.mark.parametrize("fields", [{}, {"github_id": 7}, {"is_staff": True}], ids=["local", "github", "staff"])
def test_who_calls_themselves_like_a_user_does_not_become_that_user(oidc: Oidc, fields: dict[str, Any]) -> None:
    held = person("Root", **fields)
    oidc.claims["preferred_username"] = "root"
    client = browser()
    assert sign_in_by_oidc(client).status_code == 302
    assert (me(client)["githubLogin"], me(client)["isAdmin"]) == ("root-2", False)
    held.user.refresh_from_db()
    assert (held.user.login, held.user.provider_identities.count()) == ("Root", 0)


def test_the_same_subject_of_another_issuer_is_another_user(oidc: Oidc, settings: Any) -> None:
    sign_in_by_oidc(browser())
    other = Oidc()
    other.start()
    try:
        settings.OIDC_PROVIDERS = (oidc.provider(), other.provider(2, "Other"))
        page = browser().get("/signin").content.decode()
        assert "Sign in with Acme" in page
        assert "Sign in with Other" in page
        assert sign_in_by_oidc(browser(), "/api/v1/auth/oidc/2/start").status_code == 302
    finally:
        other.stop()
    assert sorted(User.objects.values_list("login", flat=True)) == ["ann", "ann-2"]


@pytest.mark.parametrize(
    ("username", "login"),
    [("Ann Lee", "Ann-Lee"), ("a/b@c", "a-b-c"), ("-", "user"), ("", "user"), ("x" * 90, "x" * 35), ("é", "user")],
)
def test_a_user_name_becomes_a_login_that_can_be(oidc: Oidc, username: str, login: str) -> None:
    oidc.claims["preferred_username"] = username
    sign_in_by_oidc(browser())
    assert User.objects.get().login == login


def test_a_missing_user_name_is_read_from_the_user_info(oidc: Oidc) -> None:
    oidc.person = "quinn"
    sign_in_by_oidc(browser())
    assert User.objects.get().login == "quinn"


def test_user_info_of_another_subject_is_not_read(oidc: Oidc) -> None:
    oidc.instead["/userinfo"] = lambda exchange: exchange.answer(200, {"sub": "eve", "preferred_username": "eve"})
    sign_in_by_oidc(browser())
    assert User.objects.get().login == "user"


def test_a_new_key_of_the_provider_counts_at_once(oidc: Oidc) -> None:
    assert sign_in_by_oidc(browser()).status_code == 302
    oidc.key = other_key("two")
    oidc.header["kid"], oidc.shown_keys = "two", [oidc.key]
    assert sign_in_by_oidc(browser()).status_code == 302


def test_who_says_no_there_is_told_so(oidc: Oidc) -> None:
    oidc.instead["/authorize"] = deny
    answer = sign_in_by_oidc(browser())
    assert answer.status_code == 400
    assert "did not allow" in answer.content.decode()


def test_sign_up_counts_verified_mail_addresses_and_never_user_names(oidc: Oidc, settings: Any) -> None:
    settings.SIGNUP = read_signup("ann, ben@example.org @acme.example")
    refused = sign_in_by_oidc(browser())
    assert refused.status_code == 403
    assert f"--issuer {oidc.url} --subject ann" in refused.content.decode()
    for number, (email, verified, status) in enumerate(
        [
            ("ben@example.org", True, 302),
            ("Cara@ACME.example", True, 302),
            ("dan@acme.example", False, 403),
            ("eve@notacme.example", True, 403),
            ("fay@example.org", True, 403),
        ]
    ):
        oidc.person = f"subject-{number}"
        oidc.claims |= {"email": email, "email_verified": verified}
        assert sign_in_by_oidc(browser()).status_code == status, email


def test_an_operator_links_a_subject_to_an_account(oidc: Oidc, settings: Any) -> None:
    settings.SIGNUP = read_signup("closed")
    root = person("root", is_staff=True)
    options = {"login": "Root", "issuer": oidc.url, "subject": "ann"}
    call_command("link_oidc", **options)
    client = browser()
    sign_in_by_oidc(client)
    assert me(client)["id"] == root.user.pk
    with pytest.raises(CommandError, match="belongs to @root already"):
        call_command("link_oidc", **options)
    with pytest.raises(CommandError, match="no account"):
        call_command("link_oidc", **(options | {"login": "unknown"}))


def test_who_is_suspended_does_not_get_in(oidc: Oidc) -> None:
    sign_in_by_oidc(browser())
    User.objects.update(is_active=False)
    answer = sign_in_by_oidc(browser())
    assert (answer.status_code, COOKIE in answer.cookies) == (403, False)


def test_a_provider_that_is_not_there_is_not_found(oidc: Oidc) -> None:
    for path in ("/api/v1/auth/oidc/2/start", "/api/v1/auth/oidc/2/callback?state=x&code=y"):
        assert browser().get(path).status_code == 404


def test_providers_are_read_as_lists_in_the_same_order() -> None:
    first, second = read_providers("https://a.example/ http://localhost:1/x", "i j", "s t", "A & Co")
    assert (first.number, first.issuer, first.client_id, first.name) == (1, "https://a.example", "i", "A & Co")
    assert (second.number, second.client_secret, second.name) == (2, "t", "localhost")
    assert read_providers("", "", "", "") == ()


@pytest.mark.parametrize(
    "wrong",
    [
        ("https://a.example", "i", "", ""),
        ("https://a.example https://b.example", "i", "s", ""),
        ("http://a.example", "i", "s", ""),
        ("https://a.example https://a.example/", "i j", "s t", ""),
        ("https://a.example", "i", "s", "A,B"),
        ("https://u:p@a.example", "i", "s", ""),
    ],
)
def test_providers_that_cannot_be_are_refused(wrong: tuple[str, str, str, str]) -> None:
    with pytest.raises(ValueError, match="OIDC_"):
        read_providers(*wrong)


def test_the_login_of_an_oidc_user_is_not_given_to_github_either(oidc: Oidc) -> None:
    sign_in_by_oidc(browser())
    with pytest.raises(LoginTaken):
        sign_in_github_user(GitHubProfile(id=5, login="Ann"), is_member=lambda org: False)


def test_the_state_travels_and_nothing_else_of_the_attempt(oidc: Oidc) -> None:
    query = parse_qs(urlsplit(browser().get(START)["Location"]).query)
    assert query["client_id"] == [CLIENT_ID]
    assert set(query) == {
        "client_id",
        "response_type",
        "redirect_uri",
        "scope",
        "state",
        "nonce",
        "code_challenge",
        "code_challenge_method",
    }
    assert re.fullmatch("[0-9a-f]{32}", query["state"][0])


@pytest.fixture
def independent(settings: Any, tmp_path: Path) -> Iterator[Provider]:
    """A provider of other people's making, `oidc-provider-mock`, as a process on a port."""
    port = free_port()
    claims = json.dumps({"sub": "s-1", "preferred_username": "Zoe", "email": "zoe@example.org"})
    options = ("--port", str(port), "--require-nonce", "true", "--user-claims", claims)
    provider = Provider(1, f"http://127.0.0.1:{port}", "any", "any", "Independent")

    def answers(_: Program) -> bool:
        with contextlib.suppress(httpx.TransportError):
            address = f"{provider.issuer}/.well-known/openid-configuration"
            return httpx.get(address, trust_env=False, verify=TLS).status_code == 200
        return False

    with Program(python("-m", "oidc_provider_mock", *options), tmp_path / "log", is_ready=answers):
        settings.OIDC_PROVIDERS = (provider,)
        yield provider


def test_a_provider_of_other_peoples_making_signs_in(independent: Provider) -> None:
    client = browser()
    off = client.get(f"{START}?next=/desk")["Location"]
    agreed = httpx.post(off, data={"sub": "s-1"}, trust_env=False, verify=TLS)
    assert agreed.status_code == 302, agreed.text
    back = urlsplit(agreed.headers["location"])
    answer = client.get(f"{back.path}?{back.query}")
    assert (answer.status_code, answer.get("Location")) == (302, "/desk"), answer.content
    identity = ProviderIdentity.objects.get()
    assert (identity.issuer.rstrip("/"), identity.subject) == (independent.issuer, "s-1")
    assert me(client)["githubLogin"] == "Zoe"


def test_a_provider_is_asked_not_to_compress(oidc: Oidc) -> None:
    """Nothing would decompress its answers, and a request that says nothing takes any encoding."""
    asked: list[str | None] = []

    def note(exchange: Any) -> None:
        asked.append(exchange.handler.headers.get("Accept-Encoding"))
        oidc._honest(exchange)

    identity_providers._kept.clear()
    paths = ("/.well-known/openid-configuration", "/jwks", "/token", "/userinfo")
    oidc.instead.update(dict.fromkeys(paths, note))
    assert sign_in_by_oidc(browser()).status_code == 302
    assert asked == ["identity"] * len(paths)
