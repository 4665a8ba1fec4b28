"""Accounts without a provider: links, passkeys and passwords; the hub in this process."""

import json
import re
from datetime import timedelta
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.admin.models import LogEntry
from django.core.management import CommandError, call_command
from django.utils import timezone

from accounts import invitations, throttle
from accounts.models import Credential, Invitation, LoginAttempt, Passkey, ProviderIdentity, User
from accounts.tokens import digest
from tests.authenticator import PRESENT, Authenticator
from tests.native.house import Person, browser, person

pytestmark = pytest.mark.django_db

COOKIE, GOOD = "cw_session", "nine lives of a lobster"
CHOSEN = {"password": GOOD, "again": GOOD}


@pytest.fixture(autouse=True)
def _hub(settings: Any) -> None:
    """A hub of https under a name. Hashing is cheap, and each test has its own counts of tries."""
    settings.PUBLIC_URL = settings.PUBLIC_ORIGIN = "https://hub.example"
    settings.IS_HTTPS, settings.ALLOWED_HOSTS = True, ["*"]
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    throttle._limiter.cache_clear()


@pytest.fixture
def root() -> Person:
    return person("root", is_staff=True)


def path_of(url: str) -> str:
    assert url.startswith("https://hub.example/join/")
    return urlsplit(url).path


def invite(login: str = "ann", *, admin: bool = False, by: User | None = None) -> str:
    return path_of(invitations.invite(login, is_admin=admin, made_by=by).url)


def options_of(answer: Any) -> dict[str, Any]:
    found = re.search(r'data-options="([^"]*)"', answer.content.decode())
    assert found
    options: dict[str, Any] = json.loads(unescape(found[1]))
    return options


def with_passkey(login: str = "ann", device: Authenticator | None = None) -> Authenticator:
    """An account that a passkey signs in to."""
    device, client, link = device or Authenticator(), browser(), invite(login)
    answer = client.post(link, {"credential": device.make(options_of(client.get(link)))})
    assert answer.status_code == 302, answer.content
    return device


def begin(client: Any) -> tuple[str, dict[str, Any]]:
    body = client.post("/signin/passkey/options").json()
    return body["state"], body["options"]


def sign_in(client: Any, login: str = "ann", password: str = GOOD, **more: str) -> Any:
    return client.post("/signin/password", {"login": login, "password": password, **more})


def test_the_operators_link_sets_up_an_administrator_with_a_password(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("invite", "ann", admin=True)
    link = path_of(capsys.readouterr().out.strip())
    client = browser()
    page = client.get(link).content.decode()
    assert "@ann" in page
    assert "as an administrator" in page
    answer = client.post(link, CHOSEN)
    assert (answer.status_code, answer["Location"]) == (302, "/")
    assert (answer.cookies[COOKIE]["secure"], answer.cookies[COOKIE]["httponly"]) == (True, True)
    user = User.objects.get()
    assert (user.login, user.is_staff, user.is_superuser) == ("ann", True, True)
    assert Credential.objects.get().source == "web"
    again = sign_in(browser(), "ANN", next="/account")
    assert (again.status_code, again["Location"]) == (302, "/account")


def test_only_hashes_are_stored(root: Person) -> None:
    link = invite(by=root.user)
    token = link.rpartition("/")[2]
    assert Invitation.objects.get().digest == digest(token)
    browser().post(link, CHOSEN)
    rows = [*User.objects.values(), *Invitation.objects.values(), *LogEntry.objects.values()]
    assert token not in str(rows)
    assert GOOD not in str(rows)


def test_used_expired_revoked_and_absent_links_look_the_same(root: Person) -> None:
    used, old, revoked = invite("ann"), invite("ben"), invite("cat")
    assert browser().post(used, CHOSEN).status_code == 302
    Invitation.objects.filter(login="ben").update(expires_at=timezone.now() - timedelta(seconds=1))
    row = Invitation.objects.get(login="cat")
    assert browser(root.session).post(f"/invitations/{row.pk}/revoke").status_code == 302
    answers = {
        (answer.status_code, answer.content)
        for link in (used, old, revoked, "/join/" + "0" * 32, "/join/x")
        for answer in (browser().get(link), browser().post(link, CHOSEN))
    }
    assert len(answers) == 1
    assert answers.pop()[0] == 404
    assert [user.login for user in User.objects.order_by("pk")] == ["root", "ann"]


def test_opening_a_link_does_not_use_it() -> None:
    link = invite()
    for _ in range(3):
        assert browser().get(link).status_code == 200
    assert browser().post(link, CHOSEN | {"again": "x"}).status_code == 400
    assert browser().post(link, CHOSEN).status_code == 302


def test_a_newer_link_ends_the_older_one() -> None:
    older, newer = invite("ann"), invite("ANN")
    assert browser().get(older).status_code == 404
    assert browser().get(newer).status_code == 200


def test_a_login_that_was_taken_meanwhile_is_not_taken_over() -> None:
    link = invite("ann")
    holder = person("Ann", github_id=5)
    answer = browser().post(link, CHOSEN)
    assert answer.status_code == 409
    assert "another account" in answer.content.decode()
    holder.user.refresh_from_db()
    assert not holder.user.password
    assert Invitation.objects.get().used_at is None


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"password": "short", "again": "short"}, "too short"),
        ({"password": "password1234", "again": "password1234"}, "too common"),
        ({"password": "12345678901", "again": "12345678901"}, "entirely numeric"),
        ({"password": "invited-ann", "again": "invited-ann"}, "too similar"),
        ({"password": GOOD, "again": GOOD + "x"}, "differ"),
        ({"password": "x" * 1025, "again": "x" * 1025}, "at most"),
        ({}, "too short"),
    ],
)
def test_a_password_that_is_not_good_is_not_taken(typed: dict[str, str], said: str) -> None:
    link = invite("invited-ann")
    answer = browser().post(link, typed)
    assert (answer.status_code, said in answer.content.decode()) == (400, True)
    assert not User.objects.exists()


def test_the_staff_makes_links_on_a_page_and_sees_each_once(root: Person) -> None:
    client = browser(root.session)
    page = client.post("/invitations", {"login": "ann", "admin": "on"}).content.decode()
    found = re.search(r'value="(https://hub\.example/join/[0-9a-f]{32})"', page)
    assert found
    later = client.get("/invitations").content.decode()
    assert found[1] not in later
    assert "@ann" in later
    assert "by @root" in later
    assert LogEntry.objects.filter(user=root.user, change_message="invited @ann").exists()
    assert browser().post(path_of(found[1]), CHOSEN).status_code == 302
    assert "No link is open" in client.get("/invitations").content.decode()


def test_the_page_is_for_the_staff_alone(root: Person) -> None:
    row = invitations.invite("ann", is_admin=False, made_by=root.user).invitation
    for client in (browser(), browser(person("bob").session), browser(root.channel), browser(root.app)):
        assert client.get("/invitations").status_code == 404
        assert client.post("/invitations", {"login": "eve", "admin": "on"}).status_code == 404
        assert client.post(f"/invitations/{row.pk}/revoke").status_code == 404
    assert Invitation.objects.filter(used_at=None, expires_at__gt=timezone.now()).count() == 1


def test_the_staff_takes_over_no_account_that_has_another_way_in(root: Person) -> None:
    vouched = person("olga")
    ProviderIdentity.objects.create(user=vouched.user, issuer="https://a.example", subject="1")
    person("gil", github_id=7)
    person("bot", is_service=True)
    person("boss", is_staff=True)
    person("gone", is_active=False)
    browser().post(invite("pat"), CHOSEN)
    client = browser(root.session)
    for login in ("olga", "gil", "bot", "boss", "root", "GIL", "gone", "pat"):
        assert client.post("/invitations", {"login": login}).status_code == 400, login
    assert not Invitation.objects.filter(made_by=root.user).exists()
    person("local")
    assert client.post("/invitations", {"login": "local"}).status_code == 200
    assert client.post("/invitations", {"login": "no login"}).status_code == 400


def test_a_link_dies_with_the_rights_of_who_made_it(root: Person) -> None:
    person("local")
    link, other = invite("ann", by=root.user), invite("local", by=root.user)
    User.objects.filter(login="local").update(github_id=3)
    assert browser().get(other).status_code == 404
    User.objects.filter(login="root").update(is_staff=False)
    assert browser().post(link, CHOSEN).status_code == 404


def test_a_link_for_an_account_signs_it_out_everywhere() -> None:
    held = person("local")
    assert browser(held.session).get("/account").status_code == 200
    assert browser().post(invite("local"), CHOSEN).status_code == 302
    assert browser(held.session).get("/account").status_code == 302
    assert Credential.objects.live().filter(user=held.user, kind="session").count() == 1


def test_the_operators_link_gives_an_account_a_new_way_in_and_a_suspended_one_none() -> None:
    held = person("gil", github_id=7)
    assert browser().post(invite("gil"), CHOSEN).status_code == 302
    assert sign_in(browser(), "gil").status_code == 302
    held.user.refresh_from_db()
    assert held.user.github_id == 7
    User.objects.update(is_active=False)
    with pytest.raises(CommandError, match="suspended"):
        call_command("invite", "gil")
    with pytest.raises(CommandError, match="no login"):
        call_command("invite", "a b")


def test_who_is_suspended_after_the_invitation_does_not_get_in() -> None:
    person("ann")
    link = invite()
    User.objects.update(is_active=False)
    assert browser().post(link, CHOSEN).status_code == 404


def test_a_wrong_password_an_absent_and_a_suspended_user_look_the_same() -> None:
    for login in ("ann", "sue"):
        browser().post(invite(login), CHOSEN)
    User.objects.filter(login="sue").update(is_active=False)
    person("tokens-only")
    shown = set()
    for login, password in (("ann", "x"), ("sue", GOOD), ("nobody", GOOD), ("tokens-only", ""), ("a b", GOOD)):
        answer = sign_in(browser(), login, password)
        assert COOKIE not in answer.cookies
        page = re.sub(r'value="[^"]*"', "", answer.content.decode())
        shown.add((answer.status_code, page))
    assert len(shown) == 1


def test_tries_of_a_password_are_counted_by_login_from_wherever_they_come() -> None:
    browser().post(invite(), CHOSEN)
    statuses = [
        browser(REMOTE_ADDR=f"192.0.2.{number}")
        .post("/signin/password", {"login": "AnN", "password": "x"})
        .status_code
        for number in range(12)
    ]
    assert statuses == [400] * throttle.PASSWORDS_PER_MINUTE + [429] * 2
    assert sign_in(browser()).status_code == 429
    assert sign_in(browser(), "ben").status_code == 400


def test_passwords_are_refused_when_tries_cannot_be_counted(settings: Any) -> None:
    browser().post(invite(), CHOSEN)
    settings.RATE_STORAGE = "redis://127.0.0.1:9/0"
    throttle._limiter.cache_clear()
    assert sign_in(browser()).status_code == 429


def test_a_passkey_signs_in_and_says_when_it_was_used() -> None:
    device, client = with_passkey(), browser()
    page = client.get("/signin?next=/desk").content.decode()
    assert "Sign in with a passkey" in page
    assert "Password" not in page
    state, options = begin(client)
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
    with_passkey("ben")
    client = browser()
    state, _ = begin(client)
    refused = client.post("/signin/passkey", {"state": state, "credential": answer})
    assert (refused.status_code, COOKIE in refused.cookies) == (400, False)


SIGNED_WRONG: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    **{name: wrong for name, wrong in MADE_WRONG.items() if name != "a signature instead"},
    "a new passkey instead": ({}, {"type": "webauthn.create"}),
    "an older count": ({"count": 3}, {}),
}


@pytest.mark.parametrize(("changed", "lies"), SIGNED_WRONG.values(), ids=SIGNED_WRONG)
def test_a_signature_that_does_not_hold_lets_nobody_in(changed: dict[str, Any], lies: dict[str, str]) -> None:
    device = with_passkey(device=Authenticator(count=4))
    for name, value in changed.items():
        setattr(device, name, value)
    client = browser()
    state, options = begin(client)
    answer = client.post("/signin/passkey", {"state": state, "credential": device.sign(options, **lies)})
    assert (answer.status_code, COOKIE in answer.cookies) == (400, False)


def test_nobody_signs_in_with_anothers_or_a_forgotten_passkey() -> None:
    device = with_passkey()
    stranger = Authenticator(credential_id=device.credential_id)
    client = browser()
    state, options = begin(client)
    assert (
        client.post("/signin/passkey", {"state": state, "credential": stranger.sign(options)}).status_code == 400
    )
    state, options = begin(client)
    Passkey.objects.all().delete()
    assert client.post("/signin/passkey", {"state": state, "credential": device.sign(options)}).status_code == 400


def test_a_challenge_is_of_one_browser_and_good_once() -> None:
    device, client, thief = with_passkey(), browser(), browser()
    state, options = begin(client)
    sent = {"state": state, "credential": device.sign(options)}
    begin(thief)
    assert thief.post("/signin/passkey", sent).status_code == 400
    assert client.post("/signin/passkey", sent).status_code == 302
    assert client.post("/signin/passkey", sent).status_code == 400
    assert (
        client.get(f"/api/v1/auth/oauth/callback?state={begin(client)[0]}&code=x").json()["error"]
        == "invalid_state"
    )
    LoginAttempt.objects.update(expires_at=timezone.now())
    assert client.post("/signin/passkey", sent).status_code == 400


def test_who_is_suspended_is_not_let_in_by_a_passkey() -> None:
    device, client = with_passkey(), browser()
    state, options = begin(client)
    User.objects.update(is_active=False)
    assert client.post("/signin/passkey", {"state": state, "credential": device.sign(options)}).status_code == 400


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


def test_a_hub_with_nothing_set_up_says_what_to_do() -> None:
    page = browser().get("/signin").content.decode()
    for way in ("manage.py invite", "OIDC_ISSUER", "GITHUB_CLIENT_ID", "mint_token", "/join/"):
        assert way in page
    browser().post(invite(), CHOSEN)
    assert browser().get("/signin").status_code == 200


def test_forms_need_the_token_of_our_pages(root: Person) -> None:
    link = invite()
    for path, form in (
        (link, CHOSEN),
        ("/signin/password", {"login": "ann", "password": GOOD}),
        ("/signin/passkey", {}),
        ("/signin/passkey/options", {}),
        ("/invitations", {"login": "eve"}),
    ):
        answer = browser(root.session, enforce_csrf_checks=True).post(path, form)
        assert answer.status_code == 403, path
    assert not User.objects.exclude(login="root").exists()


CLI = {
    "redirect_uri": "http://localhost:5173/callback",
    "state": "some-state",
    "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
    "code_challenge_method": "S256",
    "machine_id": "laptop",
}
VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"


def landing(answer: Any) -> dict[str, str]:
    """What the listener of a command line is told."""
    address = urlsplit(answer["Location"])
    assert f"{address.scheme}://{address.netloc}{address.path}" == CLI["redirect_uri"]
    return {name: one for name, [one] in parse_qs(address.query).items()}


def test_a_command_line_signs_in_by_a_password() -> None:
    browser().post(invite(), CHOSEN)
    client = browser()
    consent = client.get("/api/v1/auth/oauth/start", CLI)["Location"]
    first = client.get(consent)["Location"]
    assert first.startswith("/signin?next=%2Fconsent")
    next_path = parse_qs(urlsplit(first).query)["next"][0]
    assert sign_in(client, next=next_path)["Location"] == next_path
    page = client.get(next_path).content.decode()
    assert "Sign in your command line?" in page
    assert "@ann" in page
    told = landing(client.post("/consent", CLI | {"decision": "allow"}))
    assert told["state"] == CLI["state"]
    spent = {"code": told["code"], "code_verifier": VERIFIER}
    minted = browser().post("/api/v1/auth/oauth/token", spent, content_type="application/json").json()
    assert minted["user"]["githubLogin"] == "ann"
    assert minted["session"]["token"].startswith("cw_sess_")


def test_a_command_line_whose_user_says_no_is_told_so() -> None:
    client = browser(person("ann").session)
    told = landing(client.post("/consent", CLI | {"decision": "deny"}))
    assert told == {"error": "access_denied", "state": "some-state"}


def test_a_command_line_is_told_at_once_where_nothing_is_set_up() -> None:
    told = landing(browser().get("/api/v1/auth/oauth/start", CLI, headers={"accept": "text/html"}))
    assert (told["error"], told["state"]) == ("oauth_not_configured", "some-state")


@pytest.mark.parametrize("query", [CLI | {"redirect_uri": "https://evil.example/x"}, CLI | {"state": ""}, {}])
def test_a_browser_whose_start_is_refused_ends_on_a_page(query: dict[str, str]) -> None:
    answer = browser().get("/api/v1/auth/oauth/start", query, headers={"accept": "text/html"})
    assert answer.status_code in (400, 503)
    assert answer["Content-Type"].startswith("text/html")
    assert 'href="/signin"' in answer.content.decode()
    assert "Location" not in answer
