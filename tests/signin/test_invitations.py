"""Accounts without a provider: links that set them up, and passwords; the hub in this process."""

import re
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.admin.models import LogEntry
from django.core.management import CommandError, call_command
from django.utils import timezone

from accounts import invitations, throttle
from accounts.authn import digest
from accounts.models import Credential, Invitation, ProviderIdentity, User
from tests.attempts import Attempts
from tests.native.rows import Person, browser, person
from tests.signin.invited import CHOSEN, COOKIE, GOOD, invite, path_of, sign_in_by_password

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("https_hub")]


@pytest.fixture
def root() -> Person:
    return person("root", is_staff=True)


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
    again = sign_in_by_password(browser(), "ANN", next="/account")
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


def test_pages_lead_the_staff_to_it_and_no_one_else(root: Person) -> None:
    link = '<a href="/invitations"'
    for page in ("/", "/desk", "/health"):
        assert link in browser(root.session).get(page).content.decode()
    for client in (browser(), browser(person("bob").session)):
        assert link not in client.get("/").content.decode()


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
    assert sign_in_by_password(browser(), "gil").status_code == 302
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
    for login, password in (("ann", "x"), ("sue", GOOD), ("unknown", GOOD), ("tokens-only", ""), ("a b", GOOD)):
        answer = sign_in_by_password(browser(), login, password)
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
    assert sign_in_by_password(browser()).status_code == 429
    assert sign_in_by_password(browser(), "ben").status_code == 400


@pytest.mark.attack
def test_one_address_locks_no_user_out(attempts: Attempts) -> None:
    browser().post(invite(), CHOSEN)
    attacker = browser(REMOTE_ADDR="192.0.2.1")
    statuses = [
        attacker.post("/signin/password", {"login": "ann", "password": "x"}).status_code
        for _ in range(2 * throttle.PASSWORDS_PER_MINUTE)
    ]
    assert statuses == [400] * 5 + [429] * 15
    is_in = COOKIE in sign_in_by_password(browser()).cookies
    attempts.count("wrong passwords from one address, to lock a user out", len(statuses), not is_in)
    assert is_in


@pytest.mark.attack
def test_a_user_who_is_locked_out_comes_in_by_a_new_link(attempts: Attempts) -> None:
    browser().post(invite(), CHOSEN)
    for number in range(throttle.PASSWORDS_PER_MINUTE):
        tried = browser(REMOTE_ADDR=f"192.0.2.{number}")
        tried.post("/signin/password", {"login": "ann", "password": "x"})
    assert sign_in_by_password(browser()).status_code == 429
    is_in = COOKIE in browser().post(invite(), CHOSEN).cookies
    tries = throttle.PASSWORDS_PER_MINUTE
    attempts.count("wrong passwords from many addresses, to lock a user out for good", tries, not is_in)
    assert is_in


def test_passwords_are_refused_when_tries_cannot_be_counted(settings: Any) -> None:
    browser().post(invite(), CHOSEN)
    settings.RATE_STORAGE = "redis://127.0.0.1:9/0"
    throttle._limiter.cache_clear()
    assert sign_in_by_password(browser()).status_code == 429


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
    """The parameters that the listener of a command line gets."""
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
    assert sign_in_by_password(client, next=next_path)["Location"] == next_path
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
    assert "manage.py invite" in told["error_description"]
    start = browser().get("/api/v1/auth/oauth/start")
    spent = {"code": "x", "code_verifier": VERIFIER}
    exchange = browser().post("/api/v1/auth/oauth/token", spent, content_type="application/json")
    for answer in (start, exchange):
        assert (answer.status_code, answer.json()["error"]) == (503, "oauth_not_configured")


@pytest.mark.parametrize("query", [CLI | {"redirect_uri": "https://evil.example/x"}, CLI | {"state": ""}, {}])
def test_a_browser_whose_start_is_refused_ends_on_a_page(query: dict[str, str]) -> None:
    answer = browser().get("/api/v1/auth/oauth/start", query, headers={"accept": "text/html"})
    assert answer.status_code in (400, 503)
    assert answer["Content-Type"].startswith("text/html")
    assert 'href="/signin"' in answer.content.decode()
    assert "Location" not in answer
