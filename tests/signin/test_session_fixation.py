"""Cookies that an attacker planted in a browser before its user signs in, for each way to sign in."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from accounts.authn import digest
from accounts.models import Credential
from tests.authenticator import Authenticator
from tests.github import GitHub
from tests.native.rows import api, browser, person
from tests.oidc import Oidc, me, sign_in_by_oidc
from tests.signin.invited import (
    CHOSEN,
    COOKIE,
    invite,
    make_passkey,
    options_of,
    sign_in_by_passkey,
    sign_in_by_password,
)

pytestmark = [pytest.mark.django_db, pytest.mark.attack]

SignIn = Callable[[Client], Any]
CSRF_COOKIE, CSRF_TOKEN = "csrftoken", "a" * 32


@pytest.fixture
def by_github(github: GitHub, settings: Any) -> SignIn:
    for name, value in github.settings.items():
        setattr(settings, name, value)
    return lambda client: sign_in_by_oidc(client, "/api/v1/auth/oauth/start")


@pytest.fixture
def by_openid_connect(oidc: Oidc) -> SignIn:
    return sign_in_by_oidc


@pytest.fixture
def by_password(https_hub: None) -> SignIn:
    browser().post(invite(), CHOSEN)
    return sign_in_by_password


@pytest.fixture
def by_passkey(https_hub: None) -> SignIn:
    device = make_passkey()
    return lambda client: sign_in_by_passkey(client, device)


@pytest.fixture
def by_link_and_password(https_hub: None) -> SignIn:
    link = invite()
    return lambda client: client.post(link, CHOSEN)


@pytest.fixture
def by_link_and_passkey(https_hub: None) -> SignIn:
    link, device = invite(), Authenticator()
    return lambda client: client.post(link, {"credential": device.make(options_of(client.get(link)))})


@pytest.fixture
def by_login_alone(settings: Any) -> SignIn:
    settings.DEV_LOGIN = True
    return lambda client: client.post("/signin", {"login": "ann"})


WAYS = [
    "by_github",
    "by_openid_connect",
    "by_password",
    "by_passkey",
    "by_link_and_password",
    "by_link_and_passkey",
    "by_login_alone",
]


@pytest.mark.parametrize("is_valid", [False, True], ids=["unknown", "valid"])
@pytest.mark.parametrize("way", WAYS)
def test_session_fixation_a_planted_cookie_is_not_the_session(
    way: str, is_valid: bool, request: pytest.FixtureRequest
) -> None:
    sign_in: SignIn = request.getfixturevalue(way)
    planted = person("mallory").session if is_valid else f"cw_sess_{'0' * 32}"
    client = browser(planted)
    client.cookies[CSRF_COOKIE] = CSRF_TOKEN
    answer = sign_in(client)
    assert answer.status_code == 302, answer.content
    assert answer.cookies[COOKIE].value == client.cookies[COOKIE].value != planted
    assert me(client)["githubLogin"] == "ann"
    assert api(planted).get("/api/v1/me").status_code == 401
    assert not Credential.objects.filter(digest=digest(planted), user__login="ann").exists()
    assert client.cookies[CSRF_COOKIE].value != CSRF_TOKEN
