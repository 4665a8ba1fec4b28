"""The account of a user for the staff: the page, REST and the command end and change things, and are logged."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.core.management import CommandError, call_command

from accounts import groups
from accounts.access import ERASED, LAST_ADMINISTRATOR, NOT_ONESELF
from accounts.limits import LIVE_TOKENS
from accounts.models import Membership, User
from agents.models import Halt
from tests.native.desk import text
from tests.native.rows import Person, api, browser, make_client_grant, person

pytestmark = pytest.mark.django_db
ACCOUNTS = "/api/v1/admin/accounts"


def page(login: str) -> str:
    return f"/staff/accounts/{login}"


def acts() -> list[tuple[str, str]]:
    """Who did what, oldest first."""
    rows = LogEntry.objects.order_by("pk").select_related("user")
    return [(row.user.login, row.change_message) for row in rows]


def press(staff: Person, login: str, action: str, **fields: Any) -> Any:
    """Send a form of the page."""
    return browser(staff.session).post(page(login), {"action": action, **fields})


def test_accounts_are_for_the_staff_alone(alice: Person, bob: Person, staff: Person) -> None:
    for path in (page("bob"), page("absent")):
        assert browser(alice.session).get(path).status_code == 404
        assert browser(alice.session).post(path, {"action": "suspend"}).status_code == 404
        assert browser().get(path).status_code == 404
    for ending in ("", "/sessions", "/tokens", "/credentials/1", "/clients", "/clients/1", "/groups", "/groups/x"):
        for method in ("get", "patch", "put", "delete"):
            answer = getattr(api(alice.app), method)(f"{ACCOUNTS}/bob{ending}", {}, format="json")
            assert answer.status_code in (403, 405), (method, ending)
            assert getattr(api(None), method)(f"{ACCOUNTS}/bob{ending}").status_code in (401, 405)
    assert browser(staff.session).get(page("absent")).status_code == 404
    assert api(staff.app).get(f"{ACCOUNTS}/absent").status_code == 404
    assert acts() == []
    assert bob.user.credentials.live().count() == 3


def test_the_page_shows_what_an_account_has(alice: Person, staff: Person) -> None:
    groups.create_group("team", "The team", made_by=alice.user)
    make_client_grant(alice.user, app_name="Notebook")
    shown = text(browser(staff.session), page("ALICE"))
    for wanted in ("@alice", "Notebook", "The team", "maintainer", "live tokens", "TOKENS_PER_OWNER", "End all"):
        assert wanted in shown, wanted
    assert "account of a group" in text(browser(staff.session), page("team"))
    assert "In no group" in text(browser(staff.session), page("root"))


def test_rest_shows_the_same(alice: Person, staff: Person) -> None:
    groups.create_group("team", "The team", made_by=alice.user)
    make_client_grant(alice.user)
    program = api(staff.app)
    found = program.get(f"{ACCOUNTS}/@alice").json()
    expected = {"login": "alice", "kind": "person", "isActive": True, "isStaff": False, "closedAt": None}
    assert (
        found.items() >= (expected | {"sessions": 1, "tokens": 2, "clients": 1, "groups": 1, "halts": []}).items()
    )
    [tokens] = [one for one in found["limits"] if one["name"] == LIVE_TOKENS.name]
    assert tokens == {
        "name": "live tokens",
        "used": 3,
        "most": LIVE_TOKENS.most,
        "unit": "",
        "setting": "TOKENS_PER_OWNER",
    }
    assert [one["name"] for one in program.get(f"{ACCOUNTS}/alice/sessions").json()["items"]] == ["test"]
    listed = program.get(f"{ACCOUNTS}/alice/tokens").json()
    assert ([one["kind"] for one in listed["items"]], listed["total"]) == (["channel", "app"], 2)
    assert program.get(f"{ACCOUNTS}/alice/clients").json()["items"][0]["appName"] == "an agent"
    assert program.get(f"{ACCOUNTS}/alice/groups").json()["items"][0]["role"] == "maintainer"


def by_page(staff: Person, action: str) -> Callable[[], Any]:
    return lambda: press(staff, "alice", action)


def by_rest(staff: Person, method: str, ending: str, body: Any = None) -> Callable[[], Any]:
    return lambda: getattr(api(staff.app), method)(f"{ACCOUNTS}/alice{ending}", body, format="json")


@pytest.mark.parametrize("way", ["page", "rest"])
def test_all_sign_ins_end_and_then_all_tokens(alice: Person, staff: Person, way: str) -> None:
    make_client_grant(alice.user)
    is_page = way == "page"
    end_sessions = by_page(staff, "end-sessions") if is_page else by_rest(staff, "delete", "/sessions")
    revoke = by_page(staff, "revoke-tokens") if is_page else by_rest(staff, "delete", "/tokens")
    assert end_sessions().status_code in (200, 302)
    assert {one.kind for one in alice.user.credentials.live()} == {"channel", "app"}
    assert browser(alice.session).get("/account").status_code == 302
    assert revoke().status_code in (200, 302)
    assert not alice.user.credentials.live().exists()
    assert not alice.user.client_grants.live().exists()
    revoked = "revoked a token of @alice"
    done = ["ended a sign-in of @alice", "signed out a program of @alice", revoked, revoked]
    assert acts() == [("root", one) for one in done]
    assert browser(staff.session).get(page("alice")).status_code == 200


def test_the_sign_in_or_token_of_the_caller_stays(staff: Person) -> None:
    press(staff, "root", "end-sessions")
    assert browser(staff.session).get(page("root")).status_code == 200
    assert api(staff.app).delete(f"{ACCOUNTS}/root/tokens").json() == {"ended": 1}
    assert api(staff.app).get(f"{ACCOUNTS}/root").json()["tokens"] == 1


def test_one_credential_one_program_and_one_role(alice: Person, bob: Person, staff: Person) -> None:
    group = groups.create_group("team", "The team", made_by=bob.user)
    membership = groups.add_member(group, alice.user, "member", by=bob.user)
    grants = [make_client_grant(alice.user, app_name=name) for name in ("one", "two")]
    token, other = alice.user.credentials.exclude(kind="session")
    LogEntry.objects.all().delete()
    program = api(staff.app)
    assert press(staff, "alice", "revoke", id=token.pk).status_code == 302
    for _ in range(2):
        assert program.delete(f"{ACCOUNTS}/alice/credentials/{other.pk}").status_code == 204
    assert press(staff, "alice", "end-client", id=grants[0].pk).status_code == 302
    assert program.delete(f"{ACCOUNTS}/alice/clients/{grants[1].pk}").status_code == 204
    assert press(staff, "alice", "role", id=membership.pk, role="auditor").status_code == 302
    changed = program.put(f"{ACCOUNTS}/alice/groups/team", {"role": "maintainer"}, format="json")
    assert changed.json()["role"] == "maintainer"
    assert program.delete(f"{ACCOUNTS}/alice/groups/team").status_code == 204
    assert program.delete(f"{ACCOUNTS}/alice/groups/team").status_code == 404
    assert [act for _, act in acts()] == [
        *["revoked a token of @alice"] * 2,
        *["signed out a program of @alice"] * 2,
        "made @alice auditor, before member",
        "made @alice maintainer, before auditor",
        "removed @alice, maintainer before",
    ]
    assert {who for who, _ in acts()} == {"root"}


def test_what_belongs_to_another_account_is_absent(alice: Person, bob: Person, staff: Person) -> None:
    theirs = bob.user.credentials.first()
    assert theirs is not None
    program = api(staff.app)
    assert program.delete(f"{ACCOUNTS}/alice/credentials/{theirs.pk}").status_code == 404
    grant = make_client_grant(bob.user)
    assert program.delete(f"{ACCOUNTS}/alice/clients/{grant.pk}").status_code == 404
    press(staff, "alice", "revoke", id=theirs.pk)
    press(staff, "alice", "end-client", id=grant.pk)
    for fields in ({"action": "revoke", "id": "x"}, {"action": "role", "id": "1"}, {"action": "no such"}, {}):
        assert browser(staff.session).post(page("alice"), fields).status_code == 404
    assert bob.user.credentials.live().count() == 3
    assert bob.user.client_grants.live().exists()
    assert acts() == []


def test_the_only_maintainer_stays(alice: Person, staff: Person) -> None:
    group = groups.create_group("team", "The team", made_by=alice.user)
    membership = Membership.objects.get(group=group)
    assert press(staff, "alice", "leave", id=membership.pk).status_code == 409
    assert api(staff.app).delete(f"{ACCOUNTS}/alice/groups/team").status_code == 409


def test_switches_of_access(alice: Person, staff: Person) -> None:
    for action in ("suspend", "suspend", "reinstate", "give-staff", "take-staff"):
        assert press(staff, "alice", action).status_code == 302
    program = api(staff.app)
    body = {"isActive": False, "isStaff": False}
    assert program.patch(f"{ACCOUNTS}/alice", body, format="json").json()["isActive"] is False
    assert program.patch(f"{ACCOUNTS}/alice", {}, format="json").json()["isActive"] is False
    done = ["suspended", "reinstated", "gave staff rights", "took staff rights away", "suspended"]
    assert acts() == [("root", one) for one in done]


def test_the_last_administrator_stays(alice: Person, staff: Person) -> None:
    program = api(staff.app)
    for body, why in (({"isStaff": False}, LAST_ADMINISTRATOR), ({"isActive": False}, LAST_ADMINISTRATOR)):
        refused = program.patch(f"{ACCOUNTS}/root", body, format="json")
        assert (refused.status_code, refused.json()["message"]) == (409, why)
    assert LAST_ADMINISTRATOR in press(staff, "root", "take-staff").content.decode()
    person("chief", is_staff=True)
    assert NOT_ONESELF in press(staff, "root", "suspend").content.decode()
    User.objects.filter(pk=alice.user.pk).update(closed_at=staff.user.created_at, is_active=False)
    assert ERASED in press(staff, "alice", "reinstate").content.decode()
    given_up = press(staff, "root", "take-staff")
    assert (given_up.status_code, given_up.headers["Location"]) == (302, "/")
    assert acts() == [("root", "took staff rights away")]


def test_halts_of_an_account(alice: Person, staff: Person) -> None:
    for action in ("halt-asks", "halt-agents"):
        press(staff, "alice", action)
    assert {one["kind"] for one in api(staff.app).get(f"{ACCOUNTS}/alice").json()["halts"]} == {"caller", "owner"}
    assert "Resume its questions" in text(browser(staff.session), page("alice"))
    press(staff, "alice", "resume-asks")
    assert [one.kind for one in Halt.objects.active()] == ["owner"]
    halted = ["halted alice's questions", "halted alice's agents", "lifted the halt of alice's questions"]
    assert acts() == [("root", one) for one in halted]


def test_the_command_shows_and_changes(alice: Person, staff: Person, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("account", "--login", "alice", "--suspend", "--end-sessions", "--revoke-tokens", "--give-staff")
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["@alice\tsuspended, staff", "sign-ins\t0", "tokens\t0", "programs\t0"]
    with pytest.raises(CommandError, match="last administrator"):
        call_command("account", "--login", "root", "--take-staff")
    with pytest.raises(CommandError, match="no user"):
        call_command("account", "--login", "absent")
    call_command("account", "--login", "alice", "--reinstate", "--take-staff")
    assert User.objects.get(login="alice").is_active
    assert acts() == []


def test_the_queries_of_the_page_do_not_grow(
    alice: Person, staff: Person, django_assert_max_num_queries: Callable[..., Any]
) -> None:
    for number in range(3):
        make_client_grant(alice.user)
        groups.create_group(f"team-{number}", "A team", made_by=alice.user)
    client = browser(staff.session)
    client.get(page("alice"))
    with django_assert_max_num_queries(60):
        client.get(page("alice"))
