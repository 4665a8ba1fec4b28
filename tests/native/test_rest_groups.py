"""Groups over REST."""

from typing import Any

import pytest

from accounts import groups
from accounts.models import Credential, Group, Membership
from agents.models import Agent
from tests.native.rows import Person, api, make_agent, person

pytestmark = pytest.mark.django_db
Role = Membership.Role
V = "/api/v1/groups"


@pytest.fixture
def team(alice: Person) -> Group:
    return groups.create_group("team", "The team", made_by=alice.user)


def send(who: Person, method: str, path: str, body: Any = None) -> Any:
    return getattr(api(who.session), method)(f"{V}{path}", body, format="json")


def test_a_group_is_made_and_changed_by_rest(alice: Person, bob: Person) -> None:
    made = send(alice, "post", "", {"slug": "Team", "name": "The team"})
    assert made.status_code == 201
    assert (made.json()["slug"], made.json()["role"]) == ("team", "maintainer")
    assert send(alice, "post", "", {"slug": "bob", "name": "x"}).status_code == 400
    assert send(alice, "patch", "/team", {"name": "Ours"}).json()["name"] == "Ours"
    added = send(alice, "put", "/team/members/bob", {"role": "auditor"})
    assert (added.status_code, added.json()["addedBy"]) == (200, "alice")
    assert send(alice, "put", "/team/members/bob", {}).json()["role"] == "member"
    assert [one["login"] for one in send(bob, "get", "/team/members").json()["items"]] == ["alice", "bob"]
    assert send(bob, "get", "").json()["total"] == 1
    assert send(alice, "put", "/team/members/alice", {"role": "member"}).status_code == 409
    assert send(alice, "delete", "/team/members/alice").status_code == 409
    assert send(alice, "put", "/team/members/no-such", {}).status_code == 404
    assert send(bob, "delete", "/team/members/bob").status_code == 204
    assert send(bob, "get", "/team").status_code == 404


def test_links_are_made_listed_and_revoked(alice: Person, team: Group) -> None:
    made = send(alice, "post", "/team/invitations", {"role": "auditor"}).json()
    assert "/groups/join/" in made["url"]
    [listed] = send(alice, "get", "/team/invitations").json()["items"]
    assert listed == {name: value for name, value in made.items() if name != "url"}
    assert send(alice, "delete", f"/team/invitations/{made['id']}").status_code == 204
    assert send(alice, "delete", f"/team/invitations/{made['id']}").status_code == 404


def test_tokens_of_a_group_name_their_maker(alice: Person, team: Group) -> None:
    made = send(alice, "post", "/team/tokens", {"name": "ours", "kind": "channel"})
    assert made.status_code == 201
    row = Credential.objects.get(pk=made.json()["id"])
    assert (row.user, row.minted_by, row.kind) == (team.account, alice.user, "channel")
    assert api(alice.app).post(f"{V}/team/tokens", {"name": "a", "kind": "app"}, format="json").status_code == 201
    Credential.objects.filter(user=alice.user, kind="app").update(scopes="publish read")
    assert api(alice.app).post(f"{V}/team/tokens", {"name": "a", "kind": "app"}, format="json").status_code == 403


def test_a_group_is_absent_for_others_by_rest(alice: Person, bob: Person, team: Group) -> None:
    for role, status in ((None, 404), (Role.MEMBER, 200), (Role.AUDITOR, 200)):
        if role:
            groups.add_member(team, bob.user, role, by=None)
        for path in ("/team", "/team/members"):
            assert send(bob, "get", path).status_code == status
        for method, path, body in (
            ("patch", "/team", {"name": "x"}),
            ("put", "/team/members/bob", {"role": "maintainer"}),
            ("delete", "/team/members/alice", None),
            ("get", "/team/invitations", None),
            ("post", "/team/invitations", {}),
            ("delete", "/team/invitations/1", None),
            ("post", "/team/tokens", {"name": "x", "kind": "app"}),
            ("delete", "/team/account?slug=team", None),
        ):
            assert send(bob, method, path, body).status_code == 404, (role, method, path)
    assert api(None).get(f"{V}/team").status_code == 401
    assert Membership.objects.get(group=team, user=bob.user).role == Role.AUDITOR


def test_a_group_is_deleted_with_what_it_owns(alice: Person, team: Group) -> None:
    agent = make_agent(team.account, "shared")
    assert send(alice, "delete", "/team/account").status_code == 400
    assert send(alice, "delete", "/team/account?slug=team").status_code == 204
    assert send(alice, "get", "/team").status_code == 404
    assert not Agent.objects.kept().filter(pk=agent.pk).exists()


def test_an_agent_names_groups_beside_users(alice: Person, bob: Person, team: Group) -> None:
    groups.add_member(team, bob.user, by=None)
    agent, carol = make_agent(person("owner").user, "desk"), person("carol")
    patch = {"access": "limited", "allowedLogins": ["team"], "callerBudgets": {"team": 5}}
    changed = api(person("owner").session).patch(f"/api/v1/agents/{agent.pk}", patch, format="json")
    assert changed.status_code == 200, changed.content
    for who, status in ((bob, 200), (carol, 404)):
        assert api(who.session).get("/api/v1/agents/by-handle/owner/desk").status_code == status
