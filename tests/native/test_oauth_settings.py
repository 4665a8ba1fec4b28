"""The way to GitHub, as far as settings alone decide about it."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from accounts.signup import Signup, read_signup
from tests.native.rows import browser

START = "/api/v1/auth/oauth/start"


@pytest.fixture(autouse=True)
def _github(settings: Any, db: None) -> None:
    settings.GITHUB_CLIENT_ID, settings.GITHUB_CLIENT_SECRET = "id", "secret"


def test_behind_https_the_login_cookie_cannot_be_planted(settings: Any) -> None:
    settings.IS_HTTPS, settings.PUBLIC_URL = True, "https://hub.example"
    answer = browser().get(START)
    cookie = answer.cookies["__Host-cw_login"]
    assert (cookie["secure"], cookie["httponly"], cookie["path"], cookie["domain"]) == (True, True, "/", "")
    assert (cookie["samesite"], cookie["max-age"]) == ("Lax", 600)
    query = parse_qs(urlsplit(answer["Location"]).query)
    assert query["redirect_uri"] == ["https://hub.example/api/v1/auth/oauth/callback"]


def test_the_way_leads_to_the_enterprise_server_that_is_set(settings: Any) -> None:
    settings.GITHUB_URL = "https://github.example.org"
    assert browser().get(START)["Location"].startswith("https://github.example.org/login/oauth/authorize?")


def test_the_development_form_is_closed_where_github_is_configured(settings: Any) -> None:
    settings.DEV_LOGIN = True
    answer = browser().post("/signin", {"login": "any-user"})
    assert "Sign in with GitHub" in answer.content.decode()
    assert "cw_session" not in answer.cookies


def test_sign_up_is_read_as_an_operator_writes_it() -> None:
    for text, read in [
        ("open", Signup(is_open=True)),
        ("CLOSED", Signup()),
        ("Ann, ben org:ACME org:acme", Signup(logins=frozenset({"ann", "ben"}), orgs=("acme",))),
    ]:
        assert read_signup(text) == read, (text, read)


def test_a_sign_up_that_cannot_be_is_refused(subtests: pytest.Subtests) -> None:
    for text in ["", "org:", "a/b", "org:a b/c", "ann;ben"]:
        with subtests.test(text=text), pytest.raises(ValueError):
            read_signup(text)
