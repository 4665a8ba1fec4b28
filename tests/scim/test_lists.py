"""Filters, pages and order of the lists, and what the audit log says."""

import pytest
from django.contrib.admin.models import LogEntry

from accounts.models import User
from tests.scim.conftest import Directory

pytestmark = pytest.mark.django_db


@pytest.fixture
def people(directory: Directory) -> dict[str, str]:
    """The ids of three users, by name."""
    found = {}
    for number, name in enumerate(("ann", "Ben", "cara")):
        made = directory.create(
            "Users",
            userName=f"{name}@example.org",
            externalId=f"key-{number}",
            displayName=f"{name} Lee",
            emails=[{"value": f"{name}@mail.example", "type": "work", "primary": True}],
            active=name != "cara",
        )
        found[name] = made["id"]
    return found


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('userName eq "ANN@example.org"', ["ann"]),
        ('username Eq "ben@example.org"', ["Ben"]),
        ('externalId eq "key-1"', ["Ben"]),
        ('externalId eq "KEY-1"', []),
        ('displayName eq "cara lee"', ["cara"]),
        ('emails.value eq "ann@mail.example"', ["ann"]),
        ('emails[type eq "work" and value co "ben"]', ["Ben"]),
        ("active eq false", ["cara"]),
        ('userName co "A"', ["ann", "Ben", "cara"]),
        ('userName sw "a" or userName sw "b"', ["ann", "Ben"]),
        ('userName ne "ann@example.org" and active eq true', ["Ben"]),
        ('not (userName eq "ann@example.org")', ["Ben", "cara"]),
        ("name.givenName pr", []),
        ('meta.lastModified gt "2020-01-01T00:00:00Z"', ["ann", "Ben", "cara"]),
        ('urn:ietf:params:scim:schemas:core:2.0:User:userName eq "ann@example.org"', ["ann"]),
        ('id eq "x"', []),
        ('userName eq "\'; DROP TABLE accounts_user; --"', []),
    ],
)
def test_a_filter_finds_what_the_rfc_says(
    directory: Directory, people: dict[str, str], text: str, names: list[str]
) -> None:
    found = directory.find("Users", filter=text)
    assert [one["userName"].partition("@")[0] for one in found] == names
    schemas = ["urn:ietf:params:scim:api:messages:2.0:SearchRequest"]
    searched = directory.send("POST", "/Users/.search", {"schemas": schemas, "filter": text}).json()
    assert searched["totalResults"] == len(names)


def test_lists_have_pages_and_an_order(directory: Directory, people: dict[str, str]) -> None:
    page = directory.send("GET", "/Users", startIndex="2", count="1").json()
    assert (page["totalResults"], page["startIndex"], page["itemsPerPage"]) == (3, 2, 1)
    assert [one["id"] for one in page["Resources"]] == [people["Ben"]]
    assert directory.send("GET", "/Users", count="0").json()["totalResults"] == 3
    assert directory.send("GET", "/Users", startIndex="-4", count="-1").json()["startIndex"] == 1
    assert directory.send("GET", "/Users", startIndex="9" * 30).json()["itemsPerPage"] == 0
    last = directory.send("GET", "/Users", sortBy="userName", sortOrder="descending", count="1").json()
    assert last["Resources"][0]["id"] == people["cara"]
    [only] = directory.find("Users", filter='externalId eq "key-0"', attributes="userName")
    assert set(only) == {"schemas", "id", "userName"}


def test_each_change_is_in_the_audit_log(directory: Directory, people: dict[str, str]) -> None:
    directory.patch(f"/Users/{people['ann']}", {"op": "replace", "value": {"active": False}})
    made = directory.create("Groups", displayName="Team", members=[{"value": people["Ben"]}])
    directory.send("DELETE", f"/Groups/{made['id']}")
    directory.send("DELETE", f"/Users/{people['ann']}")
    acts = LogEntry.objects.order_by("pk").values_list("user__login", "object_repr", "change_message")
    said = [(name, text) for who, name, text in acts if who == "scim"]
    assert ("ann", "SCIM provided the account (ann@example.org)") in said
    assert ("ann", "SCIM changed the account, suspended it (ann@example.org)") in said
    assert ("cara", "SCIM provided the account, suspended it (cara@example.org)") in said
    assert ("Team", "added @Ben as member") in said
    assert ("Team", "removed @Ben") in said
    assert ("Team", "SCIM deleted: ended the memberships that it gave (@team)") in said
    assert said[-1][1].startswith("SCIM deleted: suspended the account")
    assert User.objects.get(login="scim").is_service
