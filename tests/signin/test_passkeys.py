"""Passkeys: made by a link, used to sign in; the hub in this process."""

from typing import Any
from urllib.parse import urlsplit

import pytest
from django.utils import timezone

from accounts import invitations
from accounts.models import LoginAttempt, Passkey, User
from tests.authenticator import PRESENT, Authenticator
from tests.native.rows import browser
from tests.signin.invited import COOKIE, begin_passkey, invite, make_passkey, options_of, sign_in_by_passkey

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("https_hub")]


def test_a_passkey_signs_in_and_says_when_it_was_used() -> None:
    device, client = make_passkey(), browser()
    page = client.get("/signin?next=/desk").content.decode()
    assert "Sign in with a passkey" in page
    assert "Password" not in page
    state, options = begin_passkey(client)
    assert (options["rpId"], options["userVerification"]) == ("hub.example", "required")
    device.count = 5
    answer = client.post("/signin/passkey", {"state": state, "credential": device.sign(options), "next": "/desk"})
    assert (answer.status_code, answer["Location"]) == (302, "/desk")
    assert client.get("/api/v1/me").json()["githubLogin"] == "ann"
    passkey = Passkey.objects.get()
    assert (passkey.sign_count, passkey.last_used_at is not None) == (5, True)
    assert "a passkey made on" in client.get("/account").content.decode()


def test_a_link_asks_for_a_passkey_that_needs_its_user() -> None:
    options = options_of(browser().get(invite()))
    assert options["authenticatorSelection"]["userVerification"] == "required"
    assert options["authenticatorSelection"]["residentKey"] == "required"
    assert (options["rp"]["id"], options["user"]["name"]) == ("hub.example", "ann")


MADE_WRONG: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "at another origin": ({"origin": "https://evil.example"}, {}),
    "for another host": ({"host": "evil.example"}, {}),
    "without its user": ({"flags": PRESENT}, {}),
    "another challenge": ({}, {"challenge": "MDAw"}),
    "a signature instead": ({}, {"type": "webauthn.get"}),
}


@pytest.mark.parametrize(("device", "lies"), MADE_WRONG.values(), ids=MADE_WRONG)
def test_a_passkey_that_does_not_hold_is_not_kept(device: dict[str, Any], lies: dict[str, str]) -> None:
    link, maker = invite(), Authenticator(**device)
    answer = browser().post(link, {"credential": maker.make(options_of(browser().get(link)), **lies)})
    assert (answer.status_code, "not accepted" in answer.content.decode()) == (400, True)
    assert not User.objects.exists()
    assert browser().get(link).status_code == 200


@pytest.mark.parametrize("answer", ["x", "{}", "[]", "null", '{"id": 7}', "[" * 9000, "x" * 30_000])
def test_what_is_no_answer_of_a_browser_is_refused(answer: str) -> None:
    assert browser().post(invite(), {"credential": answer}).status_code == 400
    make_passkey("ben")
    client = browser()
    state, _ = begin_passkey(client)
    refused = client.post("/signin/passkey", {"state": state, "credential": answer})
    assert (refused.status_code, COOKIE in refused.cookies) == (400, False)


SIGNED_WRONG: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    **{name: wrong for name, wrong in MADE_WRONG.items() if name != "a signature instead"},
    "a new passkey instead": ({}, {"type": "webauthn.create"}),
    "an older count": ({"count": 3}, {}),
}


@pytest.mark.parametrize(("changed", "lies"), SIGNED_WRONG.values(), ids=SIGNED_WRONG)
def test_a_signature_that_does_not_hold_is_refused(changed: dict[str, Any], lies: dict[str, str]) -> None:
    device = make_passkey(device=Authenticator(count=4))
    for name, value in changed.items():
        setattr(device, name, value)
    answer = sign_in_by_passkey(browser(), device, **lies)
    assert (answer.status_code, COOKIE in answer.cookies) == (400, False)


def test_no_user_signs_in_with_anothers_or_a_forgotten_passkey() -> None:
    device = make_passkey()
    stranger = Authenticator(credential_id=device.credential_id)
    client = browser()
    assert sign_in_by_passkey(client, stranger).status_code == 400
    state, options = begin_passkey(client)
    Passkey.objects.all().delete()
    assert client.post("/signin/passkey", {"state": state, "credential": device.sign(options)}).status_code == 400


def test_a_challenge_is_of_one_browser_and_good_once() -> None:
    device, client, thief = make_passkey(), browser(), browser()
    state, options = begin_passkey(client)
    sent = {"state": state, "credential": device.sign(options)}
    begin_passkey(thief)
    assert thief.post("/signin/passkey", sent).status_code == 400
    assert client.post("/signin/passkey", sent).status_code == 302
    assert client.post("/signin/passkey", sent).status_code == 400
    elsewhere = f"/api/v1/auth/oauth/callback?state={begin_passkey(client)[0]}&code=x"
    assert client.get(elsewhere).json()["error"] == "invalid_state"
    LoginAttempt.objects.update(expires_at=timezone.now())
    assert client.post("/signin/passkey", sent).status_code == 400


def test_who_is_suspended_is_not_let_in_by_a_passkey() -> None:
    device = make_passkey()
    User.objects.update(is_active=False)
    assert sign_in_by_passkey(browser(), device).status_code == 400


@pytest.mark.parametrize(
    ("url", "offered"),
    [
        ("https://hub.example", True),
        ("http://localhost:8787", True),
        ("http://hub.lan", False),
        ("http://10.0.0.5:8787", False),
        ("http://127.0.0.1:8787", False),
        ("https://[fd00::1]", False),
    ],
)
def test_passkeys_are_offered_where_browsers_make_them(settings: Any, url: str, offered: bool) -> None:
    settings.PUBLIC_URL = settings.PUBLIC_ORIGIN = url
    settings.IS_HTTPS = url.startswith("https")
    link = urlsplit(invitations.invite("ann", is_admin=False, made_by=None).url).path
    page = browser().get(link).content.decode()
    assert ("data-passkey" in page) is offered
    assert ("choose a password here" in page) is not offered
