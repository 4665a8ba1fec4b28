"""Access of callers: public, limited and private agents, blocks, and turns without an agent in the audit."""

from typing import Any

from django.test import Client

from agents.models import Agent, AgentGrant, CallerBlock, Turn
from tests.native.admin import AGENTS as AGENT_ADMIN
from tests.native.admin import SETTINGS, TURNS, act
from tests.native.desk import text
from tests.native.rows import (
    Person,
    api,
    browser,
    make_agent,
    make_session,
    make_turn,
    names,
    patch,
)

AGENTS = "/api/v1/agents"
BLOCKS = "/api/v1/blocks"
BLOCK_ADMIN = "/admin/agents/callerblock/"


def limited(owner: Person, *allowed: Person, slug: str = "helper", **fields: Any) -> Agent:
    agent = make_agent(owner.user, slug, access="limited", **fields)
    for one in allowed:
        AgentGrant.objects.create(agent=agent, user=one.user)
    return agent


def listed(person: Person, query: str = "") -> list[str]:
    return names(api(person.session).get(f"{AGENTS}{query}").json()["items"])


def card(client: Client, handle: str) -> Any:
    return client.get(f"/api/a2a/v1/agents/{handle}/agent-card.json")


def test_an_agent_is_published_limited_to_logins_in_any_case(alice: Person, bob: Person, carol: Person) -> None:
    body = {"name": "x", "access": "limited", "allowedLogins": ["CAROL", "bob", "bob"], "status": "published"}
    session = make_session(alice.user)
    answer = api(alice.session).post(AGENTS, {**body, "sessionId": str(session.public_id)}, format="json")
    assert answer.status_code == 201
    assert (answer.json()["access"], answer.json()["allowedLogins"]) == ("limited", ["bob", "carol"])


def test_whom_an_agent_is_limited_to_is_told_to_its_owner_alone(alice: Person, bob: Person, staff: Person) -> None:
    limited(alice, bob)
    url = f"{AGENTS}/by-handle/alice/helper"
    assert api(alice.session).get(url).json()["allowedLogins"] == ["bob"]
    assert "allowedLogins" not in api(bob.session).get(url).json()
    assert "allowedLogins" not in api(bob.session).get(AGENTS).json()["items"][0]


def test_a_patch_sets_whom_it_names_and_leaves_the_rest(alice: Person, bob: Person, carol: Person) -> None:
    agent = limited(alice, bob)
    assert patch(alice, agent, tagline="new").json()["allowedLogins"] == ["bob"]
    assert patch(alice, agent, allowedLogins=["carol"]).json()["allowedLogins"] == ["carol"]
    assert patch(alice, agent, access="public").json()["allowedLogins"] == ["carol"]
    assert patch(alice, agent, allowedLogins=[]).json()["allowedLogins"] == []


def test_bad_access_is_refused_and_changes_nothing(alice: Person, bob: Person) -> None:
    agent = limited(alice, bob)
    for field, bad in [
        ("access", "secret"),
        ("access", None),
        ("allowedLogins", "bob"),
        ("allowedLogins", None),
        ("allowedLogins", ["bob", "unknown"]),
        ("allowedLogins", ["b\0b"]),
        ("allowedLogins", ["\ud800"]),
        ("allowedLogins", [["bob"]]),
        ("allowedLogins", ["bob"] * 201),
    ]:
        answer = patch(alice, agent, **{field: bad})
        assert (answer.status_code, answer.json()["error"]) == (400, "validation_failed"), (field, bad)
        assert answer.json()["message"].startswith(field), (field, bad)
    agent.refresh_from_db()
    assert (agent.access, [grant.user for grant in agent.grants.all()]) == ("limited", [bob.user])
    answer = patch(alice, agent, allowedLogins=["unknown"])
    assert answer.json()["message"] == "allowedLogins: no user has the login unknown"


def test_the_directory_holds_what_one_may_ask(alice: Person, bob: Person, carol: Person) -> None:
    make_agent(alice.user, "open")
    limited(alice, bob, slug="for-bob")
    limited(alice, bob, slug="draft-for-bob", status="draft")
    make_agent(alice.user, "own", access="private")
    AgentGrant.objects.create(agent=Agent.objects.get(handle="alice/own"), user=bob.user)
    assert listed(alice) == ["alice/for-bob", "alice/open", "alice/own"]
    assert listed(alice, "?mine=true") == ["alice/draft-for-bob", "alice/for-bob", "alice/open", "alice/own"]
    assert listed(bob) == listed(bob, "?owner=alice") == ["alice/for-bob", "alice/open"]
    assert listed(bob, "?mine=true") == []
    assert listed(bob, "?q=for-bob") == ["alice/for-bob"]
    assert listed(carol) == ["alice/open"]


def test_the_card_of_a_limited_agent_is_for_those_who_may_ask(alice: Person, bob: Person, carol: Person) -> None:
    limited(alice, bob)
    answer = card(api(bob.app), "alice/helper")
    assert (answer.status_code, answer["Cache-Control"]) == (200, "private, no-store")
    assert "Access-Control-Allow-Origin" not in answer
    absent = card(browser(), "alice/absent")
    for client in (browser(), browser(carol.session), api(alice.channel), api("cw_sess_wrong")):
        answer = card(client, "alice/helper")
        assert (answer.status_code, answer.content, answer.headers) == (404, absent.content, absent.headers)


def test_the_card_of_a_public_agent_is_for_all(alice: Person, bob: Person) -> None:
    make_agent(alice.user)
    for client in (browser(), browser(bob.session), api("cw_sess_wrong")):
        answer = card(client, "alice/helper")
        assert (answer.status_code, answer["Access-Control-Allow-Origin"]) == (200, "*")


# Blocks.


def test_a_block_is_made_listed_and_lifted_and_again_is_fine(alice: Person, bob: Person) -> None:
    client = api(alice.session)
    first, again = (client.post(BLOCKS, {"login": "BOB"}, format="json") for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    listing = client.get(BLOCKS).json()
    assert listing == {"items": [first.json()], "total": 1}
    assert set(first.json()) == {"login", "createdAt"}
    assert api(bob.session).get(BLOCKS).json() == {"items": [], "total": 0}
    assert api(bob.session).delete(f"{BLOCKS}/bob").json()["removed"] == 0
    assert client.delete(f"{BLOCKS}/Bob").json() == {"ok": True, "login": "Bob", "removed": 1}
    assert client.delete(f"{BLOCKS}/bob").json()["removed"] == 0
    assert not CallerBlock.objects.exists()


def test_who_cannot_be_blocked(alice: Person) -> None:
    for login, status in [
        ("unknown", 404),
        ("", 400),
        (None, 400),
        ("b\0b", 400),
        (["bob"], 400),
        ("alice", 400),
        ("x" * 65, 400),
    ]:
        answer = api(alice.session).post(BLOCKS, {"login": login}, format="json")
        assert answer.status_code == status, (login, status)
        assert {"error", "message"} == set(answer.json()), (login, status)


def test_lifting_a_block_that_cannot_be_is_no_fault(alice: Person) -> None:
    for login in ["unknown", "%00", "%ED%A0%80", "a%2Fb"]:
        assert api(alice.session).delete(f"{BLOCKS}/{login}").status_code in (200, 404), login


# The same in the admin.


def test_an_owner_sets_access_in_the_admin(alice: Person, bob: Person, carol: Person) -> None:
    agent, client = limited(alice, bob), browser(alice.session)
    url = f"{AGENT_ADMIN}{agent.pk}/change/"
    assert ">\nbob</textarea>" in text(client, url)
    chosen = {**SETTINGS, "access": "limited", "allowed_logins": "carol\n\n BOB "}
    assert client.post(url, chosen).status_code == 302
    agent.refresh_from_db()
    assert (agent.access, {grant.user for grant in agent.grants.all()}) == ("limited", {bob.user, carol.user})
    assert client.post(url, {**chosen, "access": "private", "allowed_logins": "unknown"}).status_code == 200
    assert client.post(url, {**chosen, "access": "private", "allowed_logins": ""}).status_code == 302
    agent.refresh_from_db()
    assert (agent.access, agent.grants.count()) == ("private", 0)


def test_an_owner_blocks_and_unblocks_in_the_admin(alice: Person, bob: Person, signed_in: Client) -> None:
    for login, status in (("bob", 302), ("bob", 302), ("alice", 200), ("unknown", 200)):
        assert signed_in.post(f"{BLOCK_ADMIN}add/", {"caller": login}).status_code == status
    made = CallerBlock.objects.get()
    assert (made.owner, made.caller) == (alice.user, bob.user)
    assert ">bob<" in text(signed_in, BLOCK_ADMIN)
    assert "bob" in text(signed_in, f"{BLOCK_ADMIN}{made.pk}/change/")
    assert ">alice<" not in text(browser(bob.session), BLOCK_ADMIN)
    act(browser(bob.session), BLOCK_ADMIN, "delete_selected", made, post="yes")
    assert CallerBlock.objects.exists()
    act(signed_in, BLOCK_ADMIN, "delete_selected", made, post="yes")
    assert not CallerBlock.objects.exists()


# Turns without an agent.


def test_the_audit_shows_asks_of_sessions_to_their_owner(alice: Person, bob: Person, staff: Person) -> None:
    session = make_session(alice.user, "notes")
    turn = make_turn(make_agent(alice.user), bob.user, question="of the session")
    Turn.objects.filter(pk=turn.pk).update(agent=None, session=session, surface="prompt")
    for client in (browser(alice.session), browser(staff.session)):
        page = text(client, TURNS)
        assert "@notes" in page
        assert "of the session" in page
        assert "@notes" in text(client, f"{TURNS}{turn.pk}/change/")
    assert "of the session" not in text(browser(bob.session), TURNS)
    for order in ("1", "2", "-2"):
        assert "of the session" in text(browser(alice.session), f"{TURNS}?o={order}")
