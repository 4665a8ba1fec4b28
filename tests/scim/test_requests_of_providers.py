"""The requests of Okta and Entra, as their documentation shows them, in the order in which they send them."""

from typing import Any

import pytest

from accounts.models import Group, Membership, ScimUser, User
from tests.scim.conftest import Directory

pytestmark = pytest.mark.django_db
CORE = "urn:ietf:params:scim:schemas:core:2.0:"
ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
OKTA_USER = {
    "schemas": [f"{CORE}User"],
    "userName": "test.user@okta.local",
    "name": {"givenName": "Test", "familyName": "User"},
    "emails": [{"primary": True, "value": "test.user@okta.local", "type": "work"}],
    "displayName": "Test User",
    "locale": "en-US",
    "externalId": "00ujl29u0le5T6Aj10h7",
    "groups": [],
    "password": "1mz050nq",
    "active": True,
}
ENTRA_USER = {
    "schemas": [f"{CORE}User", ENTERPRISE],
    "externalId": "0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef",
    "userName": "Test_User_ab6490ee@contoso.com",
    "active": True,
    "emails": [{"primary": True, "type": "work", "value": "Test_User_fd0ea19b@testuser.com"}],
    "meta": {"resourceType": "User"},
    "name": {"formatted": "givenName familyName", "familyName": "familyName", "givenName": "givenName"},
    "roles": [],
    ENTERPRISE: {"department": "Design"},
}


def members(group: str) -> set[str]:
    """The logins of a group by its slug."""
    return set(Membership.objects.filter(group__account__login=group).values_list("user__login", flat=True))


def test_okta_creates_changes_deactivates_and_reactivates_a_user(directory: Directory) -> None:
    query = {"filter": 'userName eq "test.user@okta.local"', "startIndex": "1", "count": "100"}
    assert directory.find("Users", **query) == []
    made = directory.create("Users", **OKTA_USER)
    assert (made["userName"], made["externalId"]) == ("test.user@okta.local", "00ujl29u0le5T6Aj10h7")
    assert "password" not in made
    user = User.objects.get(login="test-user")
    assert (user.is_active, user.password) == (True, "")
    assert [one["id"] for one in directory.find("Users", **query)] == [made["id"]]
    path = f"/Users/{made['id']}"
    changed = directory.send("PUT", path, {**OKTA_USER, "id": made["id"], "displayName": "T. User"})
    assert (changed.status_code, changed.json()["displayName"]) == (200, "T. User")
    off = directory.patch(path, {"op": "replace", "value": {"active": False}})
    assert (off.status_code, off.json()["active"]) == (200, False)
    user.refresh_from_db()
    assert not user.is_active
    assert directory.send("PUT", path, {**OKTA_USER, "active": True}).json()["active"] is True
    user.refresh_from_db()
    assert user.is_active


def test_okta_pushes_a_group(directory: Directory) -> None:
    ids = [directory.create("Users", userName=f"u{number}@okta.local")["id"] for number in range(3)]
    assert directory.find("Groups", filter='displayName eq "Test SCIMv2"', startIndex="1", count="100") == []
    made = directory.create("Groups", schemas=[f"{CORE}Group"], displayName="Test SCIMv2", members=[])
    path = f"/Groups/{made['id']}"
    group = Group.objects.get()
    assert (group.slug, group.name, members(group.slug)) == ("test-scimv2", "Test SCIMv2", set())
    renamed = {"op": "replace", "value": {"id": made["id"], "displayName": "Test SCIMv2 new"}}
    assert directory.patch(path, renamed).json()["displayName"] == "Test SCIMv2 new"
    directory.patch(
        path,
        {"op": "add", "path": "members", "value": [{"value": ids[0], "display": "u0@okta.local"}]},
        {"op": "add", "path": "members", "value": [{"value": ids[1], "display": "u1@okta.local"}]},
    )
    assert members("test-scimv2") == {"u0", "u1"}
    directory.patch(path, {"op": "remove", "path": f'members[value eq "{ids[0]}"]'})
    assert members("test-scimv2") == {"u1"}
    directory.patch(path, {"op": "replace", "path": "members", "value": [{"value": ids[2], "display": "u2"}]})
    assert members("test-scimv2") == {"u2"}
    assert Membership.objects.get().role == Membership.Role.MEMBER
    assert directory.send("DELETE", path).status_code == 204
    assert (directory.send("GET", path).status_code, members("test-scimv2")) == (404, set())


@pytest.mark.parametrize("no", [False, "False"], ids=["by the RFC", "before aadOptscim062020"])
def test_entra_creates_changes_deactivates_and_deletes_a_user(directory: Directory, no: Any) -> None:
    assert directory.find("Users", filter=f'userName eq "{ENTRA_USER["userName"]}"') == []
    made = directory.create("Users", **ENTRA_USER)
    assert made["schemas"] == [f"{CORE}User"]
    path = f"/Users/{made['id']}"
    changed = directory.patch(
        path,
        {"op": "Replace", "path": 'emails[type eq "work"].value', "value": "updatedEmail@contoso.com"},
        {"op": "Replace", "path": "name.familyName", "value": "updatedFamilyName"},
        {"op": "Add", "path": f"{ENTERPRISE}:department", "value": "Sales"},
        {"op": "Add", "path": 'phoneNumbers[type eq "mobile"].value', "value": "1"},
        {"op": "Add", "path": 'emails[type eq "home"].value', "value": "home@contoso.com"},
        {"op": "Replace", "value": {"displayName": "New", "name.givenName": "Changed"}},
    )
    assert changed.status_code == 200, changed.content
    assert [one["value"] for one in changed.json()["emails"]] == ["updatedEmail@contoso.com", "home@contoso.com"]
    assert changed.json()["name"]["familyName"] == "updatedFamilyName"
    assert (changed.json()["name"]["givenName"], changed.json()["displayName"]) == ("Changed", "New")
    off = directory.patch(path, {"op": "Replace", "path": "active", "value": no})
    assert (off.status_code, off.json()["active"]) == (200, False)
    assert not User.objects.get(scim_user__pk=made["id"]).is_active
    assert directory.send("DELETE", path).status_code == 204
    assert directory.send("DELETE", path).status_code == 404


def test_entra_keeps_a_group(directory: Directory) -> None:
    ids = [directory.create("Users", userName=f"e{number}@contoso.com")["id"] for number in range(3)]
    group = {"externalId": "8aa1a0c0-c4c3-4bc0-b4a5-2ef676900159", "displayName": "Data platform"}
    made = directory.create("Groups", schemas=[f"{CORE}Group", "http://schemas.microsoft.com/2006/11/x"], **group)
    path = f"/Groups/{made['id']}"
    shown = directory.send("GET", path, excludedAttributes="members").json()
    assert (shown["displayName"], "members" in shown) == ("Data platform", False)
    [found] = directory.find("Groups", excludedAttributes="members", filter='displayName eq "Data Platform"')
    assert found["id"] == made["id"]
    added = [{"$ref": None, "value": one} for one in ids[:2]]
    assert directory.patch(path, {"op": "Add", "path": "members", "value": added}).status_code == 200
    assert members("data-platform") == {"e0", "e1"}
    asked = f'id eq "{made["id"]}" and members eq "{ids[0]}"'
    assert [one["id"] for one in directory.find("Groups", filter=asked, attributes="id")] == [made["id"]]
    assert directory.find("Groups", filter=f'id eq "{made["id"]}" and members eq "{ids[2]}"') == []
    directory.patch(path, {"op": "Remove", "path": "members", "value": [{"$ref": None, "value": ids[0]}]})
    assert members("data-platform") == {"e1"}
    directory.patch(
        path, {"op": "Replace", "path": "displayName", "value": "1879db59-3bdf-4490-ad68-ab880a269474"}
    )
    assert Group.objects.get().name.startswith("1879db59")
    assert Group.objects.get().slug == "data-platform"


def test_a_user_that_comes_again_under_the_same_key_gets_the_same_account(directory: Directory) -> None:
    first = directory.create("Users", **ENTRA_USER)
    directory.send("DELETE", f"/Users/{first['id']}")
    assert directory.find("Users") == []
    user = User.objects.get(scim_user__external_id=ENTRA_USER["externalId"])
    assert not user.is_active
    again = directory.create("Users", **ENTRA_USER)
    user.refresh_from_db()
    assert (user.is_active, ScimUser.objects.get().user, again["id"]) == (True, user, first["id"])
    directory.send("DELETE", f"/Users/{again['id']}")
    other = directory.create("Users", **{**ENTRA_USER, "externalId": "another"})
    assert ScimUser.objects.get(pk=other["id"]).user != user, "a name that another person has now"
