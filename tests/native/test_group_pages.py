"""The pages of groups, acting for a group, and the audit for its auditors."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from accounts import groups
from accounts.models import Credential, Group, GroupInvitation, Membership
from agents.core.directory import revise_agent
from agents.models import Agent
from tests.native.rows import Person, api, browser, make_agent, make_turn, person

pytestmark = pytest.mark.django_db
Role = Membership.Role
TEAM = "/groups/team"


@pytest.fixture
def team(alice: Person) -> Group:
    return groups.create_group("team", "The team", made_by=alice.user)


def role_of(who: Person, team: Group) -> str | None:
    return Membership.objects.filter(group=team, user=who.user).values_list("role", flat=True).first()


def join(team: Group, login: str, role: str) -> tuple[Person, Client]:
    who = person(login)
    groups.add_member(team, who.user, role, by=None)
    return who, browser(who.session)


def post(client: Client, action: str, **fields: Any) -> Any:
    return client.post(TEAM, {"action": action, **fields})


def test_a_group_is_made_on_the_page(alice: Person) -> None:
    client = browser(alice.session)
    assert "You are in no group" in client.get("/groups").content.decode()
    made = client.post("/groups", {"slug": "@Team", "name": "The team"})
    assert (made.status_code, made["Location"]) == (302, "/groups/team")
    assert "The team" in client.get("/groups").content.decode()
    refused = client.post("/groups", {"slug": "team", "name": "Again"})
    assert refused.status_code == 400
    assert "@team is taken" in refused.content.decode()


def test_a_group_is_absent_for_others_and_read_only_for_members(alice: Person, bob: Person, team: Group) -> None:
    stranger = browser(bob.session)
    assert stranger.get(f"{TEAM}/export").status_code == 404
    for path in (TEAM, "/groups/nowhere", f"{TEAM}/erase"):
        assert stranger.get(path).status_code == stranger.post(path, {"action": "leave"}).status_code == 404
    assert browser(None).get("/groups").status_code == 302
    assert "The team" not in stranger.get("/groups").content.decode()
    for role in (Role.MEMBER, Role.AUDITOR):
        _, client = join(team, f"is-{role}", role)
        assert client.get(TEAM).status_code == 200
        for action in ("add", "role", "remove", "rename", "invite", "mint", "revoke-link", "revoke-token", "?"):
            assert post(client, action, login="bob", role="maintainer", name="x").status_code == 404, action
        assert client.get(f"{TEAM}/erase").status_code == client.get(f"{TEAM}/export").status_code == 404
    assert role_of(bob, team) is None


def test_a_maintainer_adds_changes_and_removes_members(alice: Person, bob: Person, team: Group) -> None:
    client = browser(alice.session)
    post(client, "add", login="@Bob", role="member")
    assert role_of(bob, team) == Role.MEMBER
    row = Membership.objects.get(group=team, user=bob.user).pk
    post(client, "role", id=row, role="auditor")
    assert role_of(bob, team) == Role.AUDITOR
    post(client, "remove", id=row)
    assert role_of(bob, team) is None
    for action, fields, text in (
        ("add", {"login": "no-such-user", "role": "member"}, "No user has the login"),
        ("add", {"login": "bob", "role": "king"}, "Choose a role"),
        ("remove", {"id": row}, "not in the group any more"),
        ("leave", {}, "would have no maintainer"),
        ("rename", {"name": ""}, "Name: give 1 to 100"),
    ):
        refused = post(client, action, **fields)
        assert (refused.status_code, text in refused.content.decode()) == (400, True), (action, text)
    shown = client.get(TEAM).content.decode()
    assert "added @bob as member" in shown
    assert "removed @bob" in shown


def test_a_member_leaves(team: Group) -> None:
    who, client = join(team, "carol", Role.MEMBER)
    assert post(client, "leave")["Location"] == "/groups"
    assert role_of(who, team) is None


def test_a_link_lets_one_user_join_once(alice: Person, bob: Person, team: Group) -> None:
    maintainer = browser(alice.session)
    made = post(maintainer, "invite", role="auditor").content.decode()
    path = "/groups/join/" + made.partition("/groups/join/")[2].partition('"')[0]
    assert path.rpartition("/")[2] not in str(list(GroupInvitation.objects.values()))
    assert browser(None).get(path)["Location"].startswith("/signin?next=")
    client = browser(bob.session)
    assert "invites you to the group" in client.get(path).content.decode()
    assert role_of(bob, team) is None
    assert client.post(path)["Location"] == TEAM
    assert role_of(bob, team) == Role.AUDITOR
    late = browser(person("carol").session)
    assert late.get(path).status_code == late.post(path).status_code == 404
    assert late.get("/groups/join/unknown").status_code == 404


def test_a_link_ends_when_it_is_revoked_and_when_its_maker_is_no_maintainer(alice: Person, team: Group) -> None:
    maintainer, guest = browser(alice.session), browser(person("guest").session)
    links = []
    for _ in range(2):
        made = post(maintainer, "invite", role="member").content.decode()
        links.append("/groups/join/" + made.partition("/groups/join/")[2].partition('"')[0])
    first = GroupInvitation.objects.order_by("pk").first()
    assert first is not None
    post(maintainer, "revoke-link", id=first.pk)
    assert guest.get(links[0]).status_code == 404
    assert guest.get(links[1]).status_code == 200
    join(team, "next", Role.MAINTAINER)
    groups.change_role(team, alice.user, Role.MEMBER, by=None)
    assert guest.post(links[1]).status_code == 404


def test_only_a_maintainer_acts_for_a_group(alice: Person, team: Group) -> None:
    agent = make_agent(team.account, "shared")
    client = browser(alice.session)
    edit = f"/desk/agents/{agent.pk}"
    assert client.get(edit).status_code == 404
    assert client.post("/acting", {"group": "team"})["Location"] == "/desk"
    assert client.get(edit).status_code == 200
    assert "for @team" in client.get("/desk").content.decode()
    person("caller")
    assert client.post(f"{edit}/audit", {"login": "caller", "action": "block"}).status_code == 302
    assert team.account.caller_blocks.count() == 1
    act = LogEntry.objects.order_by("-pk").first()
    assert act is not None
    assert act.user == alice.user
    assert act.change_message == f"POST {edit}/audit for @team"
    assert f"POST {edit}/audit" in client.get(TEAM).content.decode()
    assert "Your account" in client.get("/account").content.decode()
    client.post("/acting")
    assert client.get(edit).status_code == 404
    for role in (Role.MEMBER, Role.AUDITOR):
        _, other = join(team, f"is-{role}", role)
        assert other.post("/acting", {"group": "team"}).status_code == 404
        assert other.get(edit).status_code == 404
    assert browser(person("stranger").session).post("/acting", {"group": "team"}).status_code == 404


def test_acting_ends_with_the_role_and_is_checked_by_each_request(alice: Person, team: Group) -> None:
    agent = make_agent(team.account, "shared")
    who, client = join(team, "carol", Role.MAINTAINER)
    client.post("/acting", {"group": "team"})
    assert client.get(f"/desk/agents/{agent.pk}").status_code == 200
    Membership.objects.filter(user=who.user).update(role=Role.MEMBER)
    assert client.get(f"/desk/agents/{agent.pk}").status_code == 404
    Membership.objects.filter(user=who.user).update(role=Role.MAINTAINER)
    team.account.is_active = False
    team.account.save()
    assert client.get(f"/desk/agents/{agent.pk}").status_code == 404


def test_an_auditor_reads_the_audit_and_nothing_else(alice: Person, team: Group) -> None:
    agent, caller = make_agent(team.account, "shared", access="private"), person("caller")
    make_turn(agent, caller.user, question="what is asked")
    _, auditor = join(team, "audrey", Role.AUDITOR)
    _, member = join(team, "carol", Role.MEMBER)
    audit = f"/desk/agents/{agent.pk}/audit"
    page = auditor.get(audit).content.decode()
    assert "what is asked" in page
    assert "Block @caller" not in page
    assert auditor.get(f"{audit}.csv").status_code == 200
    audrey, log = person("audrey"), f"/api/v1/agents/{agent.pk}/inbound"
    assert "what is asked" in api(audrey.session).get(log).content.decode()
    assert api(caller.session).get(log).status_code == 404
    assert api(audrey.session).patch(f"/api/v1/agents/{agent.pk}", {}, format="json").status_code == 404
    assert auditor.post(audit, {"login": "caller", "action": "block"}).status_code == 404
    assert auditor.get(f"/desk/agents/{agent.pk}").status_code == 404
    assert auditor.get("/agents/team/shared").status_code == 404
    assert member.get(audit).status_code == 404
    assert member.get("/agents/team/shared").status_code == 200
    assert browser(caller.session).get(audit).status_code == 404
    assert browser(alice.session).get(audit).status_code == 200


def test_tokens_of_a_group_manage_what_it_owns_and_make_no_tokens(alice: Person, team: Group) -> None:
    agent = make_agent(team.account, "shared")
    client = browser(alice.session)
    made = post(client, "mint", kind="app", name="ours").content.decode()
    token = "cw_app_" + made.partition("cw_app_")[2].partition('"')[0]
    ours = api(token)
    assert ours.patch(f"/api/v1/agents/{agent.pk}", {"tagline": "new"}, format="json").status_code == 200
    did = LogEntry.objects.order_by("-pk").first()
    assert did is not None
    assert (did.user, did.change_message) == (alice.user, f"PATCH /api/v1/agents/{agent.pk} for @team")
    assert ours.post("/api/v1/tokens/channel", {"name": "further"}, format="json").status_code == 403
    row = Credential.objects.get(user=team.account)
    assert row.minted_by == alice.user
    join(team, "carol", Role.MAINTAINER)
    groups.remove_member(team, alice.user, by=None)
    assert ours.get("/api/v1/me").status_code == 401


def test_the_page_shows_agents_and_budgets(alice: Person, bob: Person, team: Group) -> None:
    make_agent(team.account, "shared")
    asked, hidden = make_agent(bob.user, "asked"), make_agent(bob.user, "hidden", access="private")
    for one in (asked, hidden):
        revise_agent(one.pk, {}, budgets={team.account: 7})
    page = browser(alice.session).get(TEAM).content.decode()
    assert "@team/shared" in page
    assert "@bob/asked" in page
    assert "@bob/hidden" not in page


def test_a_group_is_deleted_by_its_typed_name(alice: Person, team: Group) -> None:
    agent = make_agent(team.account, "shared")
    client = browser(alice.session)
    assert client.get(f"{TEAM}/export").status_code == 200
    assert "Type <strong>team</strong>" in client.get(f"{TEAM}/erase").content.decode()
    assert client.post(f"{TEAM}/erase", {"slug": "tea"}).status_code == 400
    assert client.post(f"{TEAM}/erase", {"slug": "@team"})["Location"] == "/groups"
    assert client.get(TEAM).status_code == 404
    assert not Agent.objects.kept().filter(pk=agent.pk).exists()
