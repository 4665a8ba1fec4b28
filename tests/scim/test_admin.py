"""SCIM in the admin: the staff makes the token, which is shown once, and links accounts and groups that exist."""

import re

import pytest

from accounts import groups
from accounts.models import Group, ScimGroup, ScimToken, ScimUser
from tests.native.rows import browser, person
from tests.scim.conftest import Directory

pytestmark = pytest.mark.django_db
TOKENS, USERS, GROUPS = (f"/admin/accounts/scim{name}/" for name in ("token", "user", "group"))


def test_the_token_is_shown_once_and_ended_in_the_admin(db: None) -> None:
    client = browser(person("root", is_staff=True).session)
    page = client.post(f"{TOKENS}add/", {"issuer": ""}).content.decode()
    [token] = re.findall(r"scim_live_[0-9a-f]{32}", page)
    directory = Directory(token)
    assert directory.send("GET", "/Users").status_code == 200
    row = ScimToken.objects.get()
    for path in (TOKENS, f"{TOKENS}{row.pk}/change/", f"{TOKENS}{row.pk}/history/"):
        text = client.get(path).content.decode()
        assert token[:14] in text
        assert token not in text
        assert row.digest not in text
    wrong = client.post(f"{TOKENS}add/", {"issuer": "https://unheard.example"}).content.decode()
    assert "is no provider of OIDC_ISSUER" in wrong
    chosen = {"action": "end", "_selected_action": [str(row.pk)]}
    assert "SCIM is off" in client.post(TOKENS, chosen, follow=True).content.decode()
    assert directory.send("GET", "/Users").status_code == 404


def test_the_staff_links_an_account_and_a_group_that_exist(directory: Directory) -> None:
    root, ann = person("root", is_staff=True), person("ann")
    team = groups.create_group("team", "The team", made_by=ann.user)
    client = browser(root.session)
    assert client.post(f"{USERS}add/", {"login": "ann", "user_name": "ann@example.org"}).status_code == 302
    assert client.post(f"{GROUPS}add/", {"slug": "team", "display_name": "Team"}).status_code == 302
    again = client.post(f"{USERS}add/", {"login": "ann", "user_name": "other"}).content.decode()
    assert "linked already" in again
    assert (
        "no account of a person"
        in client.post(f"{USERS}add/", {"login": "team", "user_name": "t"}).content.decode()
    )
    [user] = directory.find("Users", filter='userName eq "ann@example.org"')
    [group] = directory.find("Groups", filter='displayName eq "team"')
    assert "members" not in group, "the maintainer was added by hand"
    directory.patch(f"/Groups/{group['id']}", {"op": "add", "path": "members", "value": [{"value": user["id"]}]})
    assert directory.send("DELETE", f"/Groups/{group['id']}").status_code == 204
    assert [one.user for one in team.memberships.all()] == [ann.user]
    assert client.post(f"{GROUPS}add/", {"slug": "team", "display_name": "Team"}).status_code == 302
    assert ScimGroup.objects.count() == 1
    assert client.get(f"{USERS}{ScimUser.objects.get().pk}/change/").status_code == 200
    renamed = {"name": "The team", "claim_value": "team-id"}
    assert client.post(f"/admin/accounts/group/{team.pk}/change/", renamed).status_code == 302
    assert Group.objects.get().claim_value == "team-id"


def test_others_see_nothing_of_scim(directory: Directory) -> None:
    client = browser(person("ann").session)
    for path in (TOKENS, USERS, GROUPS):
        assert client.get(path).status_code == 403
        assert client.get(f"{path}add/").status_code == 403
    assert client.post(f"{TOKENS}add/", {"issuer": ""}).status_code == 403
    assert ScimToken.objects.count() == 1
