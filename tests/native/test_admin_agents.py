"""Agents in the admin: their owners publish, halt, change, move, add and delete them.

The forms of the admin are the desk's: test_desk_publishing.py and test_callers_settings.py test their rules.
"""

from django.test import Client

from agents.models import Agent, Halt, Turn
from tests.native.admin import AGENTS, SETTINGS, TURNS, act
from tests.native.desk import text
from tests.native.rows import Person, browser, connect, make_agent, make_session, make_turn, spend


def test_the_list_shows_what_is_spent_of_the_budget_and_who_is_online(alice: Person) -> None:
    agent = make_agent(alice.user, daily_budget=50)
    connect(agent.session)
    spend(agent, 7)
    page = text(browser(alice.session), AGENTS)
    assert "7 / 50" in page
    assert 'alt="True"' in page
    assert "7 / 50" in text(browser(alice.session), f"{AGENTS}{agent.pk}/change/")


def test_an_owner_publishes_and_unpublishes_in_the_list(alice: Person) -> None:
    agent, client = make_agent(alice.user, status="draft"), browser(alice.session)
    act(client, AGENTS, "publish", agent)
    agent.refresh_from_db()
    assert agent.status == "published"
    assert agent.published_at is not None
    act(client, AGENTS, "unpublish", agent)
    agent.refresh_from_db()
    assert agent.status == "draft"


def test_agents_are_halted_and_resumed_in_the_list(alice: Person, bob: Person, staff: Person) -> None:
    agent, owner, admin = make_agent(alice.user), browser(alice.session), browser(staff.session)
    act(owner, AGENTS, "halt", agent)
    act(browser(bob.session), AGENTS, "resume", agent)
    assert [halt.by_staff for halt in Halt.objects.active()] == [False]
    assert ">halted<" in text(owner, f"{AGENTS}?state=halted")
    act(admin, AGENTS, "halt", agent)
    refused = act(owner, AGENTS, "resume", agent).content.decode()
    assert "An administrator made the other halts" in refused
    assert [halt.by_staff for halt in Halt.objects.active()] == [True]
    act(admin, AGENTS, "resume", agent)
    assert not Halt.objects.active().exists()
    assert "0 agents" in text(owner, f"{AGENTS}?state=halted")


def test_an_owner_changes_settings_but_not_the_place(alice: Person, bob: Person) -> None:
    agent = make_agent(alice.user, status="draft")
    moved = {"handle": "bob/x", "owner": bob.user.pk}
    changed = {
        **SETTINGS,
        **moved,
        "status": "published",
        "daily_budget": "9",
        "suggested_prompts": "one\n\n two \n",
    }
    answer = browser(alice.session).post(f"{AGENTS}{agent.pk}/change/", changed)
    assert answer.status_code == 302
    before, session_id = agent.handle, agent.session_id
    agent.refresh_from_db()
    assert (agent.status, agent.daily_budget, agent.suggested_prompts) == ("published", 9, ["one", "two"])
    assert agent.published_at is not None
    assert (agent.handle, agent.owner, agent.session_id) == (before, alice.user, session_id)


def test_an_agent_with_an_open_question_does_not_move(alice: Person, bob: Person) -> None:
    agent, other = make_agent(alice.user), make_session(alice.user, "laptop")
    make_turn(agent, bob.user, None)
    moved = {**SETTINGS, "session": other.pk}
    answer = browser(alice.session).post(f"{AGENTS}{agent.pk}/change/", moved, follow=True)
    assert "Not saved: a question to the agent is open" in answer.content.decode()


def test_a_new_agent_is_published_from_a_session_of_ones_own(alice: Person, bob: Person) -> None:
    session, foreign = make_session(alice.user, "notes", host="box"), make_session(bob.user, "foreign")
    make_agent(alice.user, "used")
    client = browser(alice.session)
    page = text(client, f"{AGENTS}add/")
    assert "@notes (box), last seen" in page
    assert "@foreign" not in page
    assert "@used" not in page
    refused = client.post(f"{AGENTS}add/", {**SETTINGS, "session": foreign.pk, "slug": "x"})
    assert (refused.status_code, Agent.objects.filter(owner=alice.user).count()) == (200, 1)
    body = {**SETTINGS, "session": session.pk, "slug": "", "status": "published"}
    answer = client.post(f"{AGENTS}add/", {**body, "access": "limited", "allowed_logins": "bob"})
    assert answer.status_code == 302
    agent = Agent.objects.get(handle="alice/notes")
    assert (agent.owner, agent.session, agent.status) == (alice.user, session, "published")
    assert (agent.access, [grant.user for grant in agent.grants.all()]) == ("limited", [bob.user])


def test_deleting_is_soft_one_by_one_and_in_numbers(alice: Person, signed_in: Client) -> None:
    one, two = make_agent(alice.user, "one"), make_agent(alice.user, "two")
    turn = make_turn(one, alice.user)
    assert "Are you sure" in text(signed_in, f"{AGENTS}{one.pk}/delete/")
    signed_in.post(f"{AGENTS}{one.pk}/delete/", {"post": "yes"})
    assert list(Agent.objects.kept()) == [two]
    act(signed_in, AGENTS, "delete_selected", two, post="yes")
    assert not Agent.objects.kept().exists()
    assert Agent.objects.count() == 2
    assert Turn.objects.get() == turn
    assert "alice/one" in text(signed_in, TURNS)


def test_saving_a_draft_says_that_it_cannot_be_asked_yet(alice: Person) -> None:
    client, note = browser(alice.session), "it cannot be asked yet"
    body = {**SETTINGS, "session": make_session(alice.user, "notes").pk, "slug": ""}
    assert note in client.post(f"{AGENTS}add/", body, follow=True).content.decode()
    url = f"{AGENTS}{Agent.objects.get().pk}/change/"
    assert note in client.post(url, SETTINGS, follow=True).content.decode()
    published = client.post(url, {**SETTINGS, "status": "published"}, follow=True)
    assert note not in published.content.decode()
