"""The owner's desk: its lists, and that it is the owner's alone."""

import itertools
import re
from html.parser import HTMLParser
from typing import Any
from uuid import uuid4

from django.test import Client

from agents.models import Agent, Share
from tests.native.desk import FIELDS, HOSTILE, text
from tests.native.rows import Person, browser, connect, make_agent, make_session, make_turn, spend


class Marks(HTMLParser):
    """Reads a page as a browser does, and keeps what a strict page does not hold."""

    def __init__(self) -> None:
        super().__init__()
        self.bad: list[Any] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        is_inline = tag == "script" and "src" not in named and named.get("type") != "application/json"
        if tag == "style" or is_inline or named.get("src") == "x":
            self.bad.append((tag, named))
        self.bad += [(tag, name) for name in named if name == "style" or name.startswith("on")]


# Who gets in.


SIGNED_IN = ["/desk", "/desk/publish", "/desk/connect", "/desk/agents/1", "/desk/agents/1/audit?days=30"]


def test_a_visitor_signs_in_first_and_comes_back(db: None) -> None:
    for path in SIGNED_IN:
        answer = browser().get(path)
        assert answer.status_code == 302, path
        assert answer["Location"].startswith("/signin?next=%2Fdesk"), path
        assert answer["Location"].endswith(path.replace("/", "%2F").replace("?", "%3F").replace("=", "%3D")), path


def test_a_script_of_a_signed_out_visitor_is_told_so(db: None) -> None:
    for path in ["/desk/states", "/desk/connect/1/state"]:
        answer = browser().get(path)
        assert (answer.status_code, answer.json()["error"]) == (401, "unauthorized"), path


def test_a_deleted_agent_and_a_number_of_none_are_not_found(alice: Person, signed_in: Client) -> None:
    gone = make_agent(alice.user)
    gone.soft_delete()
    for path, pk in itertools.product(("", "/delete", "/audit", "/audit.csv"), (gone.pk, 10**30, "9" * 5000)):
        assert signed_in.get(f"/desk/agents/{pk}{path}").status_code == 404, (path, pk)


def test_no_user_changes_the_agent_of_another_user(bob: Person, agent: Agent) -> None:
    client = browser(bob.session)
    for path in ["", "/delete", "/audit"]:
        for body in (FIELDS, {"action": "unpublish"}, {"action": "block", "login": "bob"}, {}):
            assert client.post(f"/desk/agents/{agent.pk}{path}", body).status_code == 404, path
        agent.refresh_from_db()
        assert (agent.status, agent.deleted_at, agent.name) == ("published", None, "Helper"), path


# The lists.


def test_an_empty_desk_leads_to_the_wizard(alice: Person) -> None:
    page = text(browser(alice.session), "/desk")
    assert "No agents yet" in page
    assert page.count('href="/desk/connect"') >= 3


def test_the_desk_shows_agents_sessions_and_what_is_shared_and_nothing_else(alice: Person, bob: Person) -> None:
    mine = make_agent(alice.user, "mine", "draft", daily_budget=40)
    spend(mine, 7)
    connect(mine.session)
    lent, hidden = make_session(bob.user, "lent"), make_agent(bob.user, "hidden")
    Share.objects.create(session=lent, user=alice.user, role="approver", shared_by=bob.user)
    page = text(browser(alice.session), "/desk")
    assert "@alice/mine" in page
    assert "<span data-left>33</span> of 40" in page
    assert re.search(r'class="state on">online', page)
    assert ">draft<" in page
    assert re.search(r"@lent</strong></a> of @bob <span class=\"badge\">approver", page)
    assert hidden.handle not in page
    assert str(hidden.session.public_id) not in page


def test_long_lists_come_in_pages(alice: Person, signed_in: Client) -> None:
    for number in range(25):
        make_agent(alice.user, f"a{number:02}")
    first, second = text(signed_in, "/desk"), text(signed_in, "/desk", agents="2")
    assert (first.count('class="agent"'), second.count('class="agent"')) == (20, 5)
    assert "?agents=2#agents" in first
    assert "@alice/a24" in second
    for nonsense in ("0", "-1", "x", "9" * 5000, "\0"):
        assert text(signed_in, "/desk", agents=nonsense)


def test_archived_sessions_are_shown_on_demand(alice: Person, signed_in: Client) -> None:
    session = make_session(alice.user, "old")
    session.archived_at = session.started_at
    session.save()
    assert "@old" not in text(signed_in, "/desk")
    assert "@old" in text(signed_in, "/desk", archived="1")


def test_states_tell_of_ones_own_and_shared_sessions_alone(alice: Person, bob: Person) -> None:
    idle, working = make_agent(alice.user, "idle"), make_agent(alice.user, "working")
    foreign, lent = make_agent(bob.user, "foreign"), make_session(bob.user, "lent")
    Share.objects.create(session=lent, user=alice.user, role="viewer", shared_by=bob.user)
    for session in (idle.session, working.session, foreign.session):
        connect(session)
    make_turn(working, bob.user, None)
    spend(idle, 3)
    asked = {
        "session": [one.public_id for one in (idle.session, working.session, foreign.session, lent)],
        "agent": [idle.pk, working.pk, foreign.pk],
    }
    found = browser(alice.session).get("/desk/states", asked).json()
    assert found == {
        "sessions": {
            str(idle.session.public_id): "online",
            str(working.session.public_id): "busy",
            str(lent.public_id): "offline",
        },
        "agents": {str(idle.pk): 3, str(working.pk): 0},
    }


def test_states_of_nonsense_are_empty(alice: Person) -> None:
    asked = {"session": ["", "\0", "x", str(uuid4())], "agent": ["", "-1", "٣", "\0", "9" * 4000, "1.5", "0"]}
    assert browser(alice.session).get("/desk/states", asked).json() == {"sessions": {}, "agents": {}}


def test_no_page_holds_inline_script_or_style_or_hostile_markup(alice: Person, bob: Person) -> None:
    hostile = {"name": HOSTILE[:120], "tagline": HOSTILE, "description": HOSTILE, "claude_md": HOSTILE}
    agent = make_agent(alice.user, "helper", suggested_prompts=[HOSTILE], **hostile)
    agent.session.host, agent.session.cwd = HOSTILE, HOSTILE
    agent.session.save()
    make_session(alice.user, "second", host=HOSTILE, cwd=HOSTILE)
    make_turn(agent, bob.user, question=HOSTILE)
    client, base = browser(alice.session), f"/desk/agents/{agent.pk}"
    for path in (
        *("/", "/signin", "/account", "/demos/a2a/", "/webhooks", "/agents", f"/agents/{agent.handle}"),
        *("/desk", "/desk/publish", "/desk/connect", base, f"{base}/delete"),
        f"{base}/audit?asker={HOSTILE}&outcome={HOSTILE}",
        *("/nothing", "/agents/alice/unknown"),
    ):
        marks = Marks()
        marks.feed(client.get(path).content.decode())
        assert marks.bad == [], path
