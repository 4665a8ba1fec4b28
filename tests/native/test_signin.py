"""Signing in and out with a browser, and the front page."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.authn import COOKIE
from accounts.models import Credential, User
from agents.models import AgentGrant
from tests.native.rows import Person, browser, connect, make_agent


@pytest.fixture(autouse=True)
def _dev_login(settings: Any, db: None) -> None:
    settings.DEV_LOGIN = True


def sign_in(client: Client, login: str = "alice", next_path: str = "") -> Any:
    return client.post("/signin", {"login": login, "next": next_path}, headers={"user-agent": "Firefox"})


def test_signing_in_makes_the_account_and_sets_a_guarded_cookie() -> None:
    client = browser()
    answer = sign_in(client)
    assert (answer.status_code, answer["Location"]) == (302, "/")
    cookie = answer.cookies[COOKIE]
    assert re.fullmatch("cw_sess_[0-9a-f]{32}", cookie.value)
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "Lax", "/")
    assert (cookie["max-age"], cookie["secure"]) == (30 * 86_400, "")
    credential = Credential.objects.get()
    assert (credential.kind, credential.user.login, credential.user_agent) == ("session", "alice", "Firefox")
    assert timezone.now() + timedelta(days=29) < credential.expires_at < timezone.now() + timedelta(days=31)
    assert "@alice" in client.get("/").content.decode()


def test_behind_https_the_cookie_is_secure(settings: Any) -> None:
    settings.IS_HTTPS = True
    assert sign_in(browser()).cookies[COOKIE]["secure"] is True


def test_a_login_in_another_case_is_the_same_account(alice: Person) -> None:
    sign_in(browser(), "ALICE")
    assert User.objects.get().login == "alice"


def test_what_is_no_login_gets_the_form_back_with_the_reason() -> None:
    for login in ["", "two words", "-x", "x" * 40, "a/b", "nul\0", "<script>"]:
        answer = sign_in(browser(), login, "/admin/")
        assert answer.status_code == 400, login
        page = answer.content.decode()
        assert 'role="alert">A login is' in page, login
        assert 'name="next" value="/admin/"' in page, login
        assert "<script>" not in page, login
        assert COOKIE not in answer.cookies, login


def test_a_suspended_user_does_not_get_in(alice: Person) -> None:
    assert sign_in(browser()).status_code == 302
    alice.user.is_active = False
    alice.user.save()
    answer = sign_in(browser())
    assert answer.status_code == 403
    assert "suspended" in answer.content.decode()
    assert COOKIE not in answer.cookies


def test_next_leads_nowhere_but_into_this_hub() -> None:
    for wanted, leads_to in [
        ("/admin/?x=1", "/admin/?x=1"),
        ("", "/"),
        ("https://evil.example/", "/"),
        ("//evil.example/", "/"),
        ("/\\evil.example", "/"),
        ("\\\\evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("evil", "/"),
        ("/a\r\nSet-Cookie: x=1", "/a%0D%0ASet-Cookie:%20x=1"),
    ]:
        assert sign_in(browser(), next_path=wanted)["Location"] == leads_to, (wanted, leads_to)


def test_the_form_carries_next_over() -> None:
    page = browser().get("/signin", {"next": "/admin/agents/turn/?q=a&b=1"}).content.decode()
    assert 'name="next" value="/admin/agents/turn/?q=a&amp;b=1"' in page


def test_signing_in_and_out_needs_the_token_of_our_form(alice: Person) -> None:
    client = browser(enforce_csrf_checks=True)
    assert sign_in(client).status_code == 403
    token = client.get("/signin").cookies["csrftoken"].value
    assert client.post("/signin", {"login": "alice", "csrfmiddlewaretoken": token}).status_code == 302
    assert client.post("/signout").status_code == 403


def test_signing_in_anew_revokes_the_session_before() -> None:
    client = browser()
    sign_in(client, "alice")
    sign_in(client, "bob")
    assert [c.user.login for c in Credential.objects.live()] == ["bob"]


def test_signing_out_kills_the_session_on_the_hub_too_and_is_never_a_link(alice: Person) -> None:
    client, copied = browser(alice.session), browser(alice.session)
    assert client.get("/signout").status_code == 405
    assert copied.get("/api/v1/me").status_code == 200
    answer = client.post("/signout")
    assert (answer.status_code, answer["Location"], answer.cookies[COOKIE].value) == (302, "/", "")
    assert copied.get("/api/v1/me").status_code == 401
    assert client.post("/signout").status_code == 302


def test_where_no_sign_in_is_set_up_the_page_says_so(settings: Any) -> None:
    assert browser().get("/signin").status_code == 200
    settings.DEV_LOGIN = False
    for answer in (browser().get("/signin"), sign_in(browser())):
        assert answer.status_code == 503
        assert "mint_token" in answer.content.decode()
    assert not User.objects.exists()


def test_the_front_page_of_an_empty_hub_says_what_to_do() -> None:
    answer = browser().get("/")
    assert answer.status_code == 200
    page = answer.content.decode()
    assert "No agent is published yet" in page
    assert "/signin" in page
    assert "no-store" in answer["Cache-Control"]


def test_the_front_page_lists_six_that_the_visitor_may_ask_those_online_first(alice: Person, bob: Person) -> None:
    for number in range(6):
        make_agent(alice.user, f"a{number:02}")
    make_agent(alice.user, "a-draft", "draft")
    AgentGrant.objects.create(agent=make_agent(alice.user, "a-limited", access="limited"), user=bob.user)
    connect(make_agent(alice.user, "z", daily_budget=10).session)
    for visitor, is_shown in ((None, False), (bob.session, True), (alice.session, True)):
        page = browser(visitor).get("/").content.decode()
        assert page.count('class="agent"') == 6
        assert page.index("@alice/z") < page.index("@alice/a00")
        assert "10 of 10 questions left today" in page
        assert ("@alice/a-limited" in page, "a-draft" in page) == (is_shown, False)
    assert '<a class="button quiet" href="/agents">All agents</a>' in page
