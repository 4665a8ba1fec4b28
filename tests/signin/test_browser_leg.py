"""Signing in with a browser, over real HTTP, against a GitHub on a real port."""

import itertools
import re
from collections.abc import Callable

import httpx
import pytest

from tests.github import CLIENT_ID, Exchange, GitHub, deny
from tests.signin.clients import Browser, program, status

START = "/api/v1/auth/oauth/start"


def test_a_browser_goes_to_github_and_comes_back_signed_in(browser: Browser, github: GitHub) -> None:
    address = browser.start(next="/account?x=1")
    assert address.startswith(f"{github.url}/login/oauth/authorize?")
    asked = httpx.URL(address).params
    assert asked["client_id"] == CLIENT_ID
    assert asked["redirect_uri"] == f"{browser.hub.url}/api/v1/auth/oauth/callback"
    assert (asked["code_challenge_method"], len(asked["code_challenge"])) == ("S256", 43)
    assert "scope" not in asked  # who one is needs no permission
    answer = browser.get(browser.agree(address))
    assert (answer.status_code, answer.headers["location"]) == (302, "/account?x=1")
    cookie = next(value for value in answer.headers.get_list("set-cookie") if value.startswith("cw_session="))
    assert re.match(r"cw_session=cw_sess_[0-9a-f]{32};", cookie)
    assert {"HttpOnly", "Path=/", "SameSite=Lax", "Max-Age=2592000"} <= set(cookie.split("; "))
    person = browser.get("/api/v1/me").json()
    assert (person["githubLogin"], person["isAdmin"]) == ("ann", False)
    assert person["avatarUrl"] == "https://avatars.test/ann"
    assert "@ann" in browser.get("/").text


def test_two_tabs_may_sign_in_at_once(browser: Browser) -> None:
    first, second = browser.start(next="/first"), browser.start(next="/second")
    assert browser.get(browser.agree(second)).headers["location"] == "/second"
    assert browser.get(browser.agree(first)).headers["location"] == "/first"


def test_signing_out_ends_the_session_on_the_hub(browser: Browser) -> None:
    browser.sign_in("ann")
    token = browser.session
    assert status(browser.hub, token) == 200
    assert browser.post("/signout", {}).status_code == 302
    assert status(browser.hub, token) == 401


def test_logout_over_rest_ends_the_session_and_the_cookie(browser: Browser) -> None:
    browser.sign_in("ann")
    token = browser.session
    answer = browser.client.post("/api/v1/auth/logout", headers={"Origin": browser.hub.url})
    assert answer.status_code == 204
    assert "cw_session" not in browser.client.cookies
    assert status(browser.hub, token) == 401


def test_who_says_no_at_github_is_told_so(browser: Browser, github: GitHub) -> None:
    github.instead["/login/oauth/authorize"] = deny
    answer = browser.sign_in("ann")
    assert answer.status_code == 400
    assert "did not allow" in answer.text
    assert browser.session is None


def test_the_development_sign_in_is_off_where_github_is_configured(browser: Browser) -> None:
    page = browser.get("/signin?next=/account").text
    assert "Sign in with GitHub" in page
    assert f'href="{START}?next=%2Faccount"' in page
    browser.client.post("/signin", data={"login": "ann"}, headers={"Origin": browser.hub.url})
    assert browser.session is None


LIES = {
    "the id is a text": {"id": "1", "login": "x"},
    "the id is true": {"id": True, "login": "x"},
    "the id is negative": {"id": -1, "login": "x"},
    "no id": {"login": "x"},
    "no login": {"id": 1},
    "a login with a slash": {"id": 1, "login": "a/b"},
    "a login with NUL": {"id": 1, "login": "a\0b"},
    "an endless login": {"id": 1, "login": "a" * 5000},
    "a list": [],
    "nothing": None,
}


def test_a_lying_profile_is_refused(browser: Browser, github: GitHub) -> None:
    for name, lie in LIES.items():
        github.instead["/api/v3/user"] = lambda exchange, lie=lie: exchange.answer(200, lie)
        assert (browser.sign_in("ann").status_code, browser.session) == (502, None), name


FAILURES: dict[str, Callable[[Exchange], None]] = {
    "500": lambda exchange: exchange.answer(500, b"oops"),
    "a page instead of JSON": lambda exchange: exchange.answer(200, b"<html>", Content_Type="text/html"),
    "too much": lambda exchange: exchange.answer(200, b" " * 400_000),
    "elsewhere": lambda exchange: exchange.answer(302, Location="http://127.0.0.1:9/steal"),
    "hangs up": lambda exchange: exchange.handler.connection.close(),
    "a token that is no header": lambda exchange: exchange.answer(
        200, {"access_token": "a\r\nX: y", "token_type": "bearer"}
    ),
}


def test_a_failing_github_is_refused(browser: Browser, github: GitHub) -> None:
    for path, (name, failure) in itertools.product(
        ("/login/oauth/access_token", "/api/v3/user"), FAILURES.items()
    ):
        github.instead = {path: failure}
        answer = browser.sign_in("ann")
        assert answer.status_code in (400, 502), (path, name)
        assert "canary" not in answer.text, (path, name)
        assert browser.session is None, (path, name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "slow"), [("/login/oauth/access_token", Exchange.drip_headers), ("/api/v3/user", Exchange.drip)]
)
def test_a_slow_github_is_given_up_after_one_deadline(
    browser: Browser, github: GitHub, path: str, slow: Callable[[Exchange, float], None]
) -> None:
    github.instead[path] = lambda exchange: slow(exchange, 25)
    answer = browser.sign_in("ann")
    assert answer.status_code == 502
    assert answer.elapsed.total_seconds() < 14


def test_githubs_word_that_a_code_is_bad_counts(browser: Browser, github: GitHub) -> None:
    address = browser.agree(browser.start())
    github.codes.clear()
    answer = browser.get(address)
    assert answer.status_code == 400
    assert browser.session is None


def test_pages_have_a_strict_policy(browser: Browser, subtests: pytest.Subtests) -> None:
    browser.sign_in("ann")
    for path in ("/", "/account", "/device", "/signin"):
        with subtests.test(path=path):
            answer = browser.get(path)
            assert answer.status_code == 200
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert not re.search(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son[a-z]+=", answer.text)


def test_the_account_page_mints_shows_once_and_revokes(browser: Browser) -> None:
    browser.sign_in("mina")
    page = browser.post("/account", {"name": "laptop"})
    token = re.search(r"ck_live_[0-9a-f]{32}", page.text)
    assert token
    assert f"&quot;CLAWBORRATOR_TOKEN&quot;: &quot;{token[0]}&quot;" in page.text
    assert page.headers["cache-control"].count("no-store")
    again = browser.get("/account").text
    assert token[0] not in again
    assert token[0][:14] in again
    assert "Firefox on Linux" in again
    number = re.search(r"/account/revoke/(\d+)", again)
    assert number
    assert browser.post(number[0], {}).status_code == 302
    assert token[0][:14] not in browser.get("/account").text


def test_the_account_page_mints_what_a_program_asks_with(browser: Browser) -> None:
    browser.sign_in("asa")
    page = browser.post("/account", {"name": "script", "kind": "app"})
    token = re.search(r'value="(cw_app_[0-9a-f]+)"', page.text)
    assert token, page.text
    assert f"CLAWBORRATOR_TOKEN&quot;: &quot;{token[1]}" not in page.text  # no agent connects with it
    with program(browser.hub.url, token[1]) as client:
        assert client.get("/api/v1/me").json()["githubLogin"] == "asa"
    for kind in ("session", "admin", ""):
        refused = browser.post("/account", {"name": "script", "kind": kind})
        assert (refused.status_code, "what it is for" in refused.text) == (400, True)
