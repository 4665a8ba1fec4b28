"""The owner's desk: lists, forms, the wizard, and that it is the owner's alone."""

import itertools
import re
from datetime import date
from html.parser import HTMLParser
from typing import Any
from uuid import uuid4

import pytest

from accounts.models import Credential
from agents.desk.charts import latency_chart, scale
from agents.desk.figures import Latency
from agents.models import Agent, AgentGrant, Connection, Share
from tests.native.house import Person, browser, connect, make_agent, make_session, make_turn, spend

FIELDS: dict[str, Any] = {
    "name": "Helper",
    "tagline": "knows things",
    "description": "# Hello",
    "status": "published",
    "access": "public",
    "isolated": "on",
    "daily_budget": "10",
    "concurrency_cap": "2",
    "wait_s": "900",
    "agent_style": "task-generating",
    "suggested_prompts": "What is new?\r\nAnd why?",
    "allowed_logins": "",
    "claude_md": "",
    "personalization_prompt": "",
}
HOSTILE = "<script>pwned(1)</script>\"'><img src=x onerror=pwned(2)>"


class Marks(HTMLParser):
    """Reads a page as a browser does, and keeps what a strict page does not hold."""

    def __init__(self) -> None:
        super().__init__()
        self.bad: list[Any] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if tag == "style" or (tag == "script" and "src" not in named) or named.get("src") == "x":
            self.bad.append((tag, named))
        self.bad += [(tag, name) for name in named if name == "style" or name.startswith("on")]


def text(client: Any, path: str, status: int = 200, **query: Any) -> str:
    answer = client.get(path, query)
    assert answer.status_code == status, answer.content.decode()[:500]
    return str(answer.content.decode())


# Who gets in.


SIGNED_IN = ["/desk", "/desk/publish", "/desk/connect", "/desk/agents/1", "/desk/agents/1/audit?days=30"]


@pytest.mark.parametrize("path", SIGNED_IN)
def test_a_visitor_signs_in_first_and_comes_back(db: None, path: str) -> None:
    answer = browser().get(path)
    assert answer.status_code == 302
    assert answer["Location"].startswith("/signin?next=%2Fdesk")
    assert answer["Location"].endswith(path.replace("/", "%2F").replace("?", "%3F").replace("=", "%3D"))


@pytest.mark.parametrize("path", ["/desk/states", "/desk/connect/1/state"])
def test_a_script_of_somebody_signed_out_is_told_so(db: None, path: str) -> None:
    answer = browser().get(path)
    assert (answer.status_code, answer.json()["error"]) == (401, "unauthorized")


def test_a_program_with_a_token_is_no_visitor(alice: Person) -> None:
    answer = browser().get("/desk", headers={"authorization": f"Bearer {alice.app}"})
    assert answer.status_code == 302


PATHS = ["", "/delete", "/audit", "/audit.csv", "/audit/asks.svg", "/audit/latency.svg"]


@pytest.mark.parametrize("path", PATHS)
def test_an_agent_of_somebody_else_a_deleted_and_an_absent_one_are_the_same_404(
    alice: Person, bob: Person, path: str
) -> None:
    agent, gone = make_agent(alice.user, "there"), make_agent(bob.user, "gone")
    gone.soft_delete()
    assert browser(alice.session).get(f"/desk/agents/{agent.pk}{path}").status_code == 200
    answers = [
        browser(bob.session).get(f"/desk/agents/{pk}{path}")
        for pk in (agent.pk, gone.pk, 10**6, 10**30, "9" * 5000)
    ]
    assert {(one.status_code, one.content) for one in answers} == {(404, answers[0].content)}


@pytest.mark.parametrize("path", ["", "/delete", "/audit"])
def test_nobody_changes_the_agent_of_somebody_else(alice: Person, bob: Person, path: str) -> None:
    agent = make_agent(alice.user)
    client = browser(bob.session)
    for body in (FIELDS, {"action": "unpublish"}, {"action": "block", "login": "bob"}, {}):
        assert client.post(f"/desk/agents/{agent.pk}{path}", body).status_code == 404
    agent.refresh_from_db()
    assert (agent.status, agent.deleted_at, agent.name) == ("published", None, "Helper")


@pytest.mark.parametrize(
    "path",
    ["/desk/publish", "/desk/connect", "/desk/agents/{}", "/desk/agents/{}/delete", "/desk/agents/{}/audit"],
)
def test_every_form_needs_its_token(alice: Person, path: str) -> None:
    agent = make_agent(alice.user)
    assert browser(alice.session, enforce_csrf_checks=True).post(path.format(agent.pk), FIELDS).status_code == 403


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
    assert re.search(r'<meter min="0" max="40" value="7"', page)
    assert re.search(r'class="state on">online', page)
    assert ">draft<" in page
    assert re.search(r"@lent</strong></a> of @bob <span class=\"badge\">approver", page)
    assert hidden.handle not in page
    assert str(hidden.session.public_id) not in page


def test_long_lists_come_in_pages(alice: Person) -> None:
    for number in range(25):
        make_agent(alice.user, f"a{number:02}")
    client = browser(alice.session)
    first, second = text(client, "/desk"), text(client, "/desk", agents="2")
    assert (first.count('class="agent"'), second.count('class="agent"')) == (20, 5)
    assert "?agents=2#agents" in first
    assert "@alice/a24" in second
    for nonsense in ("0", "-1", "x", "9" * 5000, "\0"):
        assert text(client, "/desk", agents=nonsense)


def test_archived_sessions_are_shown_on_demand(alice: Person) -> None:
    session = make_session(alice.user, "old")
    session.archived_at = session.started_at
    session.save()
    client = browser(alice.session)
    assert "@old" not in text(client, "/desk")
    assert "@old" in text(client, "/desk", archived="1")


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


# Publishing and editing.


def test_a_session_is_published_with_what_the_form_says(alice: Person, bob: Person) -> None:
    session = make_session(alice.user, "word-counter")
    client = browser(alice.session)
    page = text(client, f"/desk/publish?session={session.public_id}")
    assert 'value="Word counter"' in page
    assert 'value="word-counter"' in page
    assert re.findall(r'value="(\w+)"[^>]*checked', page) == ["published", "public"]
    body = FIELDS | {"session": session.pk, "slug": "words", "access": "limited", "allowed_logins": "BOB"}
    answer = client.post(f"/desk/publish?session={session.public_id}", body)
    assert (answer.status_code, answer["Location"]) == (302, "/desk")
    agent = Agent.objects.get()
    assert (agent.handle, agent.session, agent.status, agent.access) == (
        "alice/words",
        session,
        "published",
        "limited",
    )
    assert agent.suggested_prompts == ["What is new?", "And why?"]
    assert (agent.daily_budget, agent.concurrency_cap, agent.isolated) == (10, 2, True)
    assert (agent.wait_s, agent.agent_style) == (900, "task-generating")
    assert AgentGrant.objects.get().user == bob.user
    assert "@alice/words is there, and open to callers." in text(client, "/desk")


BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"name": ""}, "id_name", "required"),
    ({"name": "x" * 121}, "id_name", "at most 120"),
    ({"name": "nul\0"}, "id_name", "Null characters"),
    ({"description": "x" * 4097}, "id_description", "at most 4096"),
    ({"daily_budget": "-1"}, "id_daily_budget", "greater than or equal to 0"),
    ({"daily_budget": "9" * 30}, "id_daily_budget", "less than or equal to"),
    ({"daily_budget": "many"}, "id_daily_budget", "whole number"),
    ({"concurrency_cap": "0"}, "id_concurrency_cap", "greater than or equal to 1"),
    ({"wait_s": "0"}, "id_wait_s", "greater than or equal to 1"),
    ({"wait_s": "3601"}, "id_wait_s", "less than or equal to 3600"),
    ({"wait_s": "soon"}, "id_wait_s", "whole number"),
    ({"agent_style": "chatty"}, "id_agent_style", "valid choice"),
    ({"status": "open"}, "id_status", "valid choice"),
    ({"access": "\0"}, "id_access", "valid choice"),
    ({"suggested_prompts": "\n".join("abcdefg")}, "id_suggested_prompts", "At most 6"),
    ({"allowed_logins": "nobody-here"}, "id_allowed_logins", "nobody here is called"),
    ({"allowed_logins": "<script>"}, "id_allowed_logins", "nobody here is called &lt;script&gt;"),
]


@pytest.mark.parametrize(("wrong", "field", "said"), BAD)
def test_what_is_wrong_is_said_beside_its_field(
    alice: Person, wrong: dict[str, Any], field: str, said: str
) -> None:
    agent = make_agent(alice.user)
    answer = browser(alice.session).post(f"/desk/agents/{agent.pk}", FIELDS | wrong)
    assert answer.status_code == 400
    page = answer.content.decode()
    error = re.search(rf'<p class="error" role="alert" id="{field}_error">([^<]*)</p>', page)
    assert error is not None, page
    assert said in error[1]
    assert f'href="#{field}"' in page
    assert re.search(rf'aria-describedby="[^"]*{field}_error', page)
    agent.refresh_from_db()
    assert (agent.name, agent.tagline) == ("Helper", "")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"slug": "Not A Slug"}, "want 1 to 64"),
        ({"slug": "taken"}, "is yours already"),
        ({"session": "\0"}, "Null characters"),
        ({"session": "1e9"}, "valid choice"),
    ],
)
def test_a_place_that_is_no_place_is_said_so(alice: Person, wrong: dict[str, Any], said: str) -> None:
    make_agent(alice.user, "taken")
    session = make_session(alice.user, "free")
    answer = browser(alice.session).post("/desk/publish", FIELDS | {"session": session.pk, "slug": "x"} | wrong)
    assert answer.status_code == 400
    assert said in answer.content.decode()
    assert Agent.objects.count() == 1


def test_a_session_of_somebody_else_is_no_choice(alice: Person, bob: Person) -> None:
    session = make_session(bob.user, "foreign")
    client = browser(alice.session)
    assert "@foreign" not in text(client, f"/desk/publish?session={session.public_id}")
    assert client.post("/desk/publish", FIELDS | {"session": session.pk}).status_code == 400
    assert not Agent.objects.exists()


def test_a_deleted_agent_comes_back_under_its_handle(alice: Person) -> None:
    agent = make_agent(alice.user)
    client = browser(alice.session)
    assert "Delete @alice/helper?" in text(client, f"/desk/agents/{agent.pk}/delete")
    assert Agent.objects.kept().exists()
    assert client.post(f"/desk/agents/{agent.pk}/delete")["Location"] == "/desk"
    assert not Agent.objects.kept().exists()
    client.post("/desk/publish", FIELDS | {"session": agent.session_id, "slug": "helper"})
    assert Agent.objects.kept().get().pk == agent.pk
    assert "is back, with its log" in text(client, "/desk")


def test_saving_changes_what_was_changed_and_line_ends_do_not_count(alice: Person) -> None:
    agent = make_agent(
        alice.user, description="a\nb\n", claude_md="# Rules\n", tagline="old", suggested_prompts=["one"]
    )
    page = browser(alice.session).post(
        f"/desk/agents/{agent.pk}",
        FIELDS
        | {"description": "a\r\nb\r\n", "claude_md": "# Rules\r\n", "tagline": "new", "suggested_prompts": "one"},
    )
    assert page.status_code == 302
    agent.refresh_from_db()
    assert (agent.description, agent.claude_md, agent.tagline) == ("a\nb\n", "# Rules\n", "new")
    assert (agent.personalization_prompt, agent.suggested_prompts) == (None, ["one"])


def test_unpublishing_needs_no_valid_form_and_publishing_undoes_it(alice: Person) -> None:
    agent = make_agent(alice.user)
    client = browser(alice.session)
    for action, status in (("unpublish", "draft"), ("publish", "published")):
        assert client.post(f"/desk/agents/{agent.pk}", {"action": action}).status_code == 302
        agent.refresh_from_db()
        assert agent.status == status


def test_a_preview_is_safe_markdown_and_saves_nothing(alice: Person) -> None:
    agent = make_agent(alice.user)
    body = FIELDS | {
        "description": f"**bold** {HOSTILE} [x](javascript:pwned(3))",
        "name": "",
        "action": "preview",
    }
    answer = browser(alice.session).post(f"/desk/agents/{agent.pk}", body)
    page = answer.content.decode()
    shown = page.partition('id="preview"')[2].partition("</section>")[0]
    assert answer.status_code == 200
    assert "<strong>bold</strong>" in shown
    assert not re.search(r"<script|<img|href=.javascript", shown)
    agent.refresh_from_db()
    assert agent.description == ""


# The wizard.


def test_the_wizard_shows_the_token_once_with_all_there_is_to_copy(alice: Person, settings: Any) -> None:
    settings.PUBLIC_URL = "https://hub.example"
    client = browser(alice.session)
    page = client.post("/desk/connect", {"name": "My Agent!"}).content.decode()
    credential = Credential.objects.latest("pk")
    assert (credential.kind, credential.name, credential.user) == ("channel", "my-agent", alice.user)
    token = re.search("ck_live_[0-9a-f]{32}", page)
    assert token is not None
    for copied in (
        "export CLAWBRIDGE_HUB=https://hub.example",
        f"export CLAWBRIDGE_TOKEN={token[0]}",
        "python -m connect --name my-agent --session-file ~/.my-agent-session --echo",
        "wss://hub.example",
        "clawborrator-mcp",
    ):
        assert copied in page
    later = text(client, f"/desk/connect/{credential.pk}")
    assert token[0] not in later
    assert "was shown when it was made" in later


@pytest.mark.parametrize("name", ["", "   ", "!!!", "\0", "x" * 65, "日本"])
def test_a_name_that_is_none_gets_the_form_back(alice: Person, name: str) -> None:
    before = Credential.objects.count()
    answer = browser(alice.session).post("/desk/connect", {"name": name})
    assert answer.status_code == 400
    assert 'id="name-error"' in answer.content.decode()
    assert Credential.objects.count() == before


def test_the_wizard_knows_when_the_agent_has_come_and_where_to_go_next(alice: Person) -> None:
    client = browser(alice.session)
    client.post("/desk/connect", {"name": "newcomer"})
    credential = Credential.objects.latest("pk")
    path = f"/desk/connect/{credential.pk}"
    assert client.get(f"{path}/state").json() == {"connected": False}
    assert "Check again" in text(client, path)
    session = make_session(alice.user, "newcomer")
    connect(session)
    assert client.get(f"{path}/state").json() == {"connected": False}
    Connection.objects.update(credential=credential)
    href = f"/desk/publish?session={session.public_id}"
    expected = {"connected": True, "name": "@newcomer", "href": href, "action": "Publish @newcomer"}
    assert client.get(f"{path}/state").json() == expected
    assert href in text(client, path)
    answer = client.post(href, FIELDS | {"session": session.pk, "slug": ""})
    assert answer.status_code == 302
    agent = Agent.objects.get()
    assert client.get(f"{path}/state").json()["href"] == f"/desk/agents/{agent.pk}"


def test_a_token_of_somebody_else_a_revoked_one_and_a_session_are_the_same_404(alice: Person, bob: Person) -> None:
    browser(alice.session).post("/desk/connect", {"name": "hers"})
    hers = Credential.objects.latest("pk")
    browser(bob.session).post("/desk/connect", {"name": "his"})
    his = Credential.objects.latest("pk")
    Credential.objects.filter(pk=his.pk).revoke()
    own_session = bob.user.credentials.filter(kind="session").first()
    assert own_session is not None
    client = browser(bob.session)
    for suffix in ("", "/state"):
        answers = [client.get(f"/desk/connect/{pk}{suffix}") for pk in (hers.pk, his.pk, own_session.pk, 10**30)]
        assert {(one.status_code, one.content) for one in answers} == {(404, answers[0].content)}


def test_no_page_of_the_desk_holds_inline_script_or_style_or_hostile_markup(alice: Person, bob: Person) -> None:
    hostile = {"name": HOSTILE[:120], "tagline": HOSTILE, "description": HOSTILE, "claude_md": HOSTILE}
    agent = make_agent(alice.user, "helper", suggested_prompts=[HOSTILE], **hostile)
    agent.session.host, agent.session.cwd = HOSTILE, HOSTILE
    agent.session.save()
    make_session(alice.user, "second", host=HOSTILE, cwd=HOSTILE)
    make_turn(agent, bob.user, question=HOSTILE)
    client = browser(alice.session)
    base = f"/desk/agents/{agent.pk}"
    for path in (
        "/desk",
        "/desk/publish",
        "/desk/connect",
        base,
        f"{base}/delete",
        f"{base}/audit?asker={HOSTILE}&outcome={HOSTILE}",
    ):
        page = text(client, path)
        marks = Marks()
        marks.feed(page)
        assert marks.bad == [], path


@pytest.mark.parametrize("most", [0, 1, 4, 5, 7, 41, 999, 100_000])
def test_the_numbers_beside_the_bars_are_few_and_in_equal_steps(most: int) -> None:
    numbers = scale(most)
    assert 2 <= len(numbers) <= 5
    assert numbers[0] == 0
    assert numbers[-1] >= most
    assert len({after - before for before, after in itertools.pairwise(numbers)}) == 1


@pytest.mark.parametrize(
    ("slowest_ms", "unit", "numbers"),
    [(14, "ms", "0 5 10 15"), (1000, "seconds", "0 1 2"), (4700, "seconds", "0 2 4 6")],
)
def test_the_numbers_beside_the_lines_are_whole_and_end_above_them(
    slowest_ms: int, unit: str, numbers: str
) -> None:
    chart = latency_chart([date(2026, 1, 2)], [Latency(3, 2, slowest_ms, slowest_ms)]).decode()
    assert f">{unit}</text>" in chart
    axis = chart.partition('class="axis y')[2].partition("</g></g>")[0]
    assert re.findall(r"<text[^>]*>(\d+)</text>", axis) == numbers.split()
