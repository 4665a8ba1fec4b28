"""Staff rights in the admin: given and taken on one page, never from the last administrator."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from accounts.access import LAST_ADMINISTRATOR, NO_PROGRAM, NOT_ONESELF, NOT_STAFF_NOW
from accounts.invitations import NoInvitation, find, invite
from accounts.models import Credential, Passkey, ProviderIdentity, User
from hub.account_data.erasure import close
from hub.admin import NO_RIGHTS_LEFT, AccessForm
from tests.native.desk import text
from tests.native.rows import Person, api, browser, person

USERS = "/admin/accounts/user/"
STAFF_PAGES = ("/health", "/limits", "/invitations")
BOTH = {"is_active": "on", "is_staff": "on"}


@pytest.fixture
def chief(db: None) -> Person:
    """Another member of the staff."""
    return person("chief", is_staff=True, is_superuser=True)


def page_of(user: User) -> str:
    return f"{USERS}{user.pk}/change/"


def rights(user: User) -> tuple[bool, bool, bool]:
    found = User.objects.get(pk=user.pk)
    return found.is_active, found.is_staff, found.is_superuser


def acts() -> list[tuple[str, str, str]]:
    """The recorded acts: user, act and object, oldest first."""
    rows = LogEntry.objects.order_by("pk").select_related("user")
    return [(row.user.login, row.change_message, row.object_repr) for row in rows]


def refusal(client: Client, user: User, given: dict[str, str]) -> str:
    """The page that the form is answered with when it is refused."""
    answer = client.post(page_of(user), given)
    assert answer.status_code == 200
    return answer.content.decode()


def test_rights_that_are_taken_away_end_with_the_next_request(staff: Person, chief: Person) -> None:
    link = invite("newcomer", is_admin=False, made_by=chief.user).url.rpartition("/")[2]
    theirs, program = browser(chief.session), api(chief.app)
    for path in (USERS, *STAFF_PAGES):
        assert theirs.get(path).status_code == 200, path
    assert program.get("/api/v1/admin/users").status_code == 200
    assert browser(staff.session).post(page_of(chief.user), {"is_active": "on"}).status_code == 302
    assert rights(chief.user) == (True, False, False)
    assert theirs.get(USERS).status_code == 403
    for path in STAFF_PAGES:
        assert theirs.get(path).status_code == 404, path
    assert program.get("/api/v1/admin/users").status_code == 403
    with pytest.raises(NoInvitation):
        find(link)
    assert theirs.get("/admin/").status_code == 200
    assert theirs.get("/account").status_code == 200


def test_what_was_done_is_in_the_history(alice: Person, staff: Person) -> None:
    client = browser(staff.session)
    for given in (BOTH, {"is_active": "on"}, {}, BOTH):
        assert client.post(page_of(alice.user), given).status_code == 302
    done = ["gave staff rights", "took staff rights away", "suspended", "reinstated, gave staff rights"]
    assert [act for act in acts() if act[2] == "alice"] == [("root", one, "alice") for one in done]
    history = text(client, f"{USERS}{alice.user.pk}/history/")
    assert all(one in history for one in done)
    assert rights(alice.user) == (True, True, True)


@pytest.mark.parametrize("given", [{"is_active": "on"}, {"is_staff": "on"}, {}], ids=["rights", "active", "both"])
def test_the_last_administrator_keeps_the_rights(staff: Person, chief: Person, given: dict[str, str]) -> None:
    User.objects.filter(pk=chief.user.pk).update(is_active=False)
    assert LAST_ADMINISTRATOR in refusal(browser(staff.session), staff.user, given)
    assert rights(staff.user)[:2] == (True, True)
    assert acts() == []


def test_an_administrator_who_is_not_the_last_gives_up_the_rights(staff: Person, chief: Person) -> None:
    client = browser(staff.session)
    answer = client.post(page_of(staff.user), {"is_active": "on", "_continue": "1"}, follow=True)
    assert answer.redirect_chain == [("/admin/", 302)]
    assert NO_RIGHTS_LEFT in answer.content.decode()
    assert client.get(USERS).status_code == 403
    assert acts() == [("root", "took staff rights away", "root")]


def test_staff_do_not_suspend_themselves(staff: Person, chief: Person) -> None:
    assert NOT_ONESELF in refusal(browser(staff.session), staff.user, {"is_staff": "on"})
    assert rights(staff.user)[0]


def test_a_program_is_not_of_the_staff(staff: Person) -> None:
    program = User.objects.create(login="robot", is_service=True)
    assert NO_PROGRAM in refusal(browser(staff.session), program, BOTH)
    assert rights(program) == (True, False, False)


def test_an_erased_account_gets_nothing_back(alice: Person, staff: Person) -> None:
    close(alice.user.pk)
    client = browser(staff.session)
    assert client.get(page_of(alice.user)).status_code == 200
    assert client.post(page_of(alice.user), BOTH).status_code == 403
    assert rights(alice.user) == (False, False, False)


@pytest.mark.django_db
def test_a_form_of_a_user_who_lost_the_rights_meanwhile_is_refused(
    alice: Person, staff: Person, chief: Person
) -> None:
    """The view has checked them before it locks the administrators."""
    User.objects.filter(pk=staff.user.pk).update(is_staff=False)
    form: Any = type("Form", (AccessForm,), {"changed_by": staff.user})({"is_active": "on"}, instance=chief.user)
    assert form.errors == {"__all__": [NOT_STAFF_NOW]}


def test_one_page_shows_the_access_the_ways_to_sign_in_and_the_sessions(alice: Person, staff: Person) -> None:
    ProviderIdentity.objects.create(user=alice.user, issuer="https://id.example", subject="s-1")
    Passkey.objects.create(user=alice.user, credential_id="AAAA", public_key="BBBB", name="Firefox on Linux")
    User.objects.filter(pk=alice.user.pk).update(github_id=583231)
    session = Credential.objects.get(prefix=alice.session[:14])
    Credential.objects.filter(pk=session.pk).update(user_agent="Mozilla/5.0 (X11; Linux) Firefox/130")
    client = browser(staff.session)
    page = text(client, page_of(alice.user))
    for shown in ("Access", "Sign-in", "GitHub (account 583231)", "https://id.example", "Firefox on Linux"):
        assert shown in page, shown
    assert reverse("admin:accounts_credential_change", args=[session.pk]) in page
    assert "2 accepted" in page
    listed = text(client, f"/admin/accounts/credential/?user__id__exact={alice.user.pk}&good=yes")
    assert alice.app[:14] in listed
    assert staff.app[:14] not in listed
    for secret in (session.digest, alice.session, "AAAA", "BBBB", "s-1", "password"):
        assert secret not in page, secret
    Credential.objects.filter(pk=session.pk).revoke()
    assert reverse("admin:accounts_credential_change", args=[session.pk]) not in text(client, page_of(alice.user))
