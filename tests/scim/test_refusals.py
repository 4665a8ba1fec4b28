"""What SCIM refuses, and in which form (RFC 7644, section 3.12)."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from accounts import groups
from accounts.limits import GROUP_MEMBERS
from accounts.models import Credential, Group, Membership, ScimGroup, ScimUser, User
from accounts.scim import listing
from accounts.scim.groups import MAX_OTHER_OPERATIONS
from accounts.scim_tokens import end_scim_token, make_scim_token
from hub.logs import error_totals
from tests.native.rows import person
from tests.scim.conftest import BASE, Directory

pytestmark = pytest.mark.django_db
ERROR = "urn:ietf:params:scim:api:messages:2.0:Error"


def check(answer: Any, status: int, scim_type: str | None = None) -> str:
    """Check the form of an error; its text."""
    body = answer.json()
    assert (answer.status_code, body["status"], body["schemas"]) == (status, str(status), [ERROR]), body
    assert answer["Content-Type"] == "application/scim+json"
    assert body.get("scimType") == scim_type, body
    return str(body["detail"])


@pytest.fixture
def root(directory: Directory) -> ScimUser:
    """The last administrator, whom the identity provider has provided."""
    made = directory.create("Users", userName="root@example.org", externalId="r")
    User.objects.filter(scim_user__pk=made["id"]).update(is_staff=True)
    return ScimUser.objects.select_related("user").get(pk=made["id"])


def test_without_a_token_there_is_no_scim(db: None) -> None:
    for path in ("", "/Users", "/ServiceProviderConfig", "/x"):
        assert "manage.py scim_token" in check(Client().get(BASE + path), 404)
    token = make_scim_token().token
    assert Directory(token).send("GET", "/Users").status_code == 200
    again = make_scim_token().token
    check(Directory(token).send("GET", "/Users"), 401)
    assert Directory(again).send("GET", "/Users").status_code == 200
    assert end_scim_token()
    check(Directory(again).send("GET", "/Users"), 404)


def test_no_other_token_opens_scim(directory: Directory) -> None:
    staff = person("boss", is_staff=True)
    for token in ("", "x", staff.session, staff.app, staff.channel):
        answer = Directory(token).send("POST", "/Users", {"userName": "a"})
        check(answer, 401)
        assert answer["WWW-Authenticate"] == "Bearer"
    client = Client()
    client.cookies["cw_session"] = staff.session
    check(client.get(f"{BASE}/Users"), 401)
    assert Client().get("/api/v1/me", headers={"authorization": f"Bearer {directory.token}"}).status_code == 401


@pytest.mark.parametrize(
    "change",
    [
        lambda directory, path: directory.send("DELETE", path),
        lambda directory, path: directory.patch(path, {"op": "replace", "value": {"active": False}}),
        lambda directory, path: directory.patch(path, {"op": "Replace", "path": "active", "value": "False"}),
        lambda directory, path: directory.send("PUT", path, {"userName": "root@example.org", "active": False}),
    ],
    ids=["delete", "Okta", "Entra", "put"],
)
def test_the_last_administrator_is_neither_suspended_nor_deleted(
    directory: Directory, root: ScimUser, change: Any
) -> None:
    path = f"/Users/{root.pk}"
    acts = LogEntry.objects.count()
    assert "last administrator" in check(change(directory, path), 409)
    root.user.refresh_from_db()
    assert (root.user.is_active, root.user.is_staff) == (True, True)
    assert directory.send("GET", path).json()["active"] is True
    assert LogEntry.objects.count() == acts, "an act that did not happen is not in the log"
    person("another", is_staff=True)
    assert change(directory, path).status_code in (200, 204)
    root.user.refresh_from_db()
    assert not root.user.is_active


def test_a_deleted_user_has_no_token_that_a_reinstatement_could_revive(directory: Directory) -> None:
    made = directory.create("Users", userName="ann@example.org")
    ann = person("ann")
    assert ann.user.scim_user.pk == int(made["id"])  # type: ignore[attr-defined]
    assert directory.send("DELETE", f"/Users/{made['id']}").status_code == 204
    assert not Credential.objects.live().filter(user=ann.user).exists()


def test_a_suspension_by_the_staff_is_not_lifted_by_scim(directory: Directory) -> None:
    made = directory.create("Users", userName="ann@example.org")
    User.objects.filter(login="ann").update(is_active=False)
    path = f"/Users/{made['id']}"
    for answer in (
        directory.send("PUT", path, {"userName": "ann@example.org", "active": True}),
        directory.patch(path, {"op": "replace", "path": "active", "value": True}),
        directory.patch(path, {"op": "replace", "path": "displayName", "value": "Ann"}),
        directory.patch(path, {"op": "replace", "path": "active", "value": True}),
    ):
        assert (answer.status_code, answer.json()["active"]) == (200, False)
    assert not User.objects.get(login="ann").is_active


def test_the_last_maintainer_of_a_group_stays(directory: Directory) -> None:
    made = directory.create("Users", userName="ann@example.org")
    given = directory.create("Groups", displayName="Team", members=[{"value": made["id"]}])
    group, ann = Group.objects.get(), User.objects.get(login="ann")
    groups.change_role(group, ann, Membership.Role.MAINTAINER, by=None)
    path = f"/Groups/{given['id']}"
    for answer in (
        directory.patch(path, {"op": "remove", "path": f'members[value eq "{made["id"]}"]'}),
        directory.send("PUT", path, {"displayName": "Renamed"}),
        directory.send("DELETE", path),
    ):
        assert "make another member a maintainer first" in check(answer, 409)
    assert Group.objects.get().name == "Team", "a refused change changes nothing"
    other = person("other")
    groups.add_member(group, other.user, Membership.Role.MAINTAINER, by=None)
    assert directory.send("DELETE", path).status_code == 204
    assert [one.user for one in Membership.objects.all()] == [other.user]


def test_members_that_were_added_by_hand_stay(directory: Directory) -> None:
    alice = person("alice")
    made = directory.create("Users", userName="ann@example.org")
    given = directory.create("Groups", displayName="Team", members=[{"value": made["id"]}])
    group, ann = Group.objects.get(), User.objects.get(login="ann")
    groups.add_member(group, alice.user, by=None)
    path = f"/Groups/{given['id']}"
    assert len(directory.send("GET", path).json()["members"]) == 1
    assert directory.send("PUT", path, {"displayName": "Team", "members": []}).status_code == 200
    assert [one.user for one in Membership.objects.all()] == [alice.user]
    directory.send("PUT", path, {"displayName": "Team", "members": [{"value": made["id"]}]})
    groups.add_member(group, ann, by=None)  # by hand, too
    directory.patch(path, {"op": "replace", "path": "members", "value": []})
    assert {one.user for one in Membership.objects.all()} == {alice.user, ann}
    assert "members" not in directory.send("GET", path).json()


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "scim_type"),
    [
        ("POST", "/Users", {"userName": "ANN@example.org"}, 409, "uniqueness"),
        ("POST", "/Users", {"displayName": "x"}, 400, "invalidValue"),
        ("POST", "/Users", {"userName": ""}, 400, "invalidValue"),
        ("POST", "/Users", {"userName": "x" * 256}, 400, "invalidValue"),
        ("POST", "/Users", {"userName": "a\nb"}, 400, "invalidValue"),
        ("POST", "/Users", {"userName": "a", "externalId": "x" * 256}, 400, "invalidValue"),
        ("POST", "/Users", {"userName": "a", "displayName": "x" * 9000}, 400, "invalidValue"),
        ("POST", "/Users", {"userName": {"a": 1}}, 400, "invalidValue"),
        ("POST", "/Users", {"userName": "a", "active": "maybe"}, 400, "invalidValue"),
        ("POST", "/Users", {"schemas": ["urn:x"], "userName": "a"}, 400, "invalidSyntax"),
        ("POST", "/Users", [], 400, "invalidSyntax"),
        ("POST", "/Users", "{", 400, "invalidSyntax"),
        ("POST", "/Users", '{"userName": "a\\u0000"}', 400, "invalidSyntax"),
        ("POST", "/Users", '{"userName": "a", "userName": "b"}', 400, "invalidSyntax"),
        ("POST", "/Users", b"\xff", 400, "invalidSyntax"),
        ("POST", "/Users", "[" * 100_000, 400, "invalidSyntax"),
        ("POST", "/Users", '{"userName": "' + "x" * 2_000_000 + '"}', 413, None),
        ("POST", "/Groups", {"displayName": "team"}, 409, "uniqueness"),
        ("POST", "/Groups", {"displayName": " "}, 400, "invalidValue"),
        ("POST", "/Groups", {"displayName": "a", "members": [{"value": "0"}]}, 400, "invalidValue"),
        ("POST", "/Groups", {"displayName": "a", "members": [{"value": "x" * 500}]}, 400, "invalidValue"),
        ("POST", "/Groups", {"displayName": "a", "members": [{"type": "Group"}]}, 400, "invalidValue"),
        ("GET", "/Users/0", None, 404, None),
        ("GET", "/Users/x", None, 404, None),
        ("GET", f"/Users/{'9' * 60}", None, 404, None),
        ("GET", "/Nothing", None, 404, None),
        ("PUT", "/Users", {}, 405, None),
        ("POST", "/Schemas", {}, 405, None),
        ("POST", "/Users/1", {}, 405, None),
        ("POST", "/Bulk", {}, 501, None),
        ("GET", "/Me", None, 501, None),
    ],
)
def test_a_request_that_cannot_be_is_refused_by_the_rfc(
    directory: Directory, method: str, path: str, body: Any, status: int, scim_type: str | None
) -> None:
    directory.create("Users", userName="ann@example.org")
    directory.create("Groups", displayName="Team")
    check(directory.send(method, path, body), status, scim_type)
    assert (ScimUser.objects.count(), ScimGroup.objects.count()) == (1, 1)


@pytest.mark.parametrize(
    ("operation", "scim_type"),
    [
        ({"op": "replace", "path": "name[[", "value": "x"}, "invalidPath"),
        ({"op": "replace", "path": "id", "value": "7"}, "mutability"),
        ({"op": "remove"}, "noTarget"),
        ({"op": "remove", "path": "userName"}, "mutability"),
        ({"op": "remove", "path": "active"}, "mutability"),
        ({"op": "jump", "path": "active"}, "invalidValue"),
        ({"op": "add", "path": "active"}, "invalidValue"),
        ({"op": "replace", "path": "active", "value": "x"}, "invalidValue"),
        ({"op": "replace", "path": "userName", "value": "BEN@example.org"}, "uniqueness"),
        ({"op": "replace", "path": 'emails[type co "x"].value', "value": "a@b"}, "noTarget"),
    ],
)
def test_a_patch_that_cannot_be_changes_nothing(
    directory: Directory, operation: dict[str, Any], scim_type: str
) -> None:
    made = directory.create("Users", userName="ann@example.org")
    directory.create("Users", userName="ben@example.org")
    path = f"/Users/{made['id']}"
    first = {"op": "replace", "path": "displayName", "value": "Changed"}
    check(directory.patch(path, first, operation), 409 if scim_type == "uniqueness" else 400, scim_type)
    assert "displayName" not in directory.send("GET", path).json()


@pytest.mark.parametrize(
    ("query", "scim_type"),
    [
        ({"filter": "userName"}, "invalidFilter"),
        ({"filter": 'unheardOf eq "x"'}, "invalidFilter"),
        ({"filter": "active gt true"}, "invalidFilter"),
        ({"filter": 'userName eq "\0"'}, "invalidFilter"),
        ({"filter": "not (" * 300 + "userName pr" + ")" * 300}, "invalidFilter"),
        ({"filter": 'userName eq "' + "x" * 3000 + '"'}, "invalidFilter"),
        ({"sortBy": "unheardOf"}, "invalidPath"),
        ({"count": "many"}, "invalidValue"),
        ({"attributes": "id", "excludedAttributes": "id"}, "invalidValue"),
    ],
)
def test_a_query_that_cannot_be_is_refused(directory: Directory, query: dict[str, str], scim_type: str) -> None:
    check(directory.send("GET", "/Users", **query), 400, scim_type)


def test_other_media_types_are_refused(directory: Directory) -> None:
    check(Directory(directory.token, "text/xml").send("POST", "/Users", {"userName": "a"}), 415)
    for number, media_type in enumerate(("application/json", "application/scim+json; charset=utf-8")):
        made = Directory(directory.token, media_type).send("POST", "/Users", {"userName": f"a{number}"})
        assert made.status_code == 201


def make_users(count: int) -> list[User]:
    """Accounts with rows of SCIM, as many that requests would take long to make them."""
    users = User.objects.bulk_create(User(login=f"many{number}") for number in range(count))
    ScimUser.objects.bulk_create(ScimUser(user=one, user_name=one.login) for one in users)
    return users


def test_a_filter_over_too_many_rows_is_refused(directory: Directory) -> None:
    make_users(listing.MAX_EVALUATED + 1)
    check(directory.send("GET", "/Users", filter='userName sw "m"'), 400, "tooMany")
    assert len(directory.find("Users", filter='userName eq "many1" and active eq true')) == 1
    assert directory.send("GET", "/Users").json()["totalResults"] == listing.MAX_EVALUATED + 1


def test_a_patch_has_a_bounded_number_of_operations(directory: Directory) -> None:
    path = f"/Groups/{directory.create('Groups', displayName='Team')['id']}"
    rename = {"op": "replace", "path": "displayName", "value": "x"}
    assert directory.patch(path, *[rename] * MAX_OTHER_OPERATIONS).status_code == 200
    check(directory.patch(path, *[rename] * (MAX_OTHER_OPERATIONS + 1)), 400, "tooMany")


def test_a_group_takes_no_more_members_than_a_group_may(directory: Directory) -> None:
    path = f"/Groups/{directory.create('Groups', displayName='Team')['id']}"
    team = ScimGroup.objects.get().group
    users = make_users(GROUP_MEMBERS.most)
    Membership.objects.bulk_create(Membership(group=team, user=one) for one in users)
    late = directory.create("Users", userName="late")
    added = {"op": "add", "path": "members", "value": [{"value": late["id"]}]}
    assert "members" in check(directory.patch(path, added), 409)
    assert not Membership.objects.filter(user__login="late").exists()
    Membership.objects.filter(user=users[0]).delete()
    assert directory.patch(path, added).status_code == 200


def test_a_request_for_what_the_hub_does_not_do_is_no_error_of_the_hub(directory: Directory) -> None:
    before = error_totals()
    check(directory.send("POST", "/Bulk", {}), 501)
    assert error_totals() == before
