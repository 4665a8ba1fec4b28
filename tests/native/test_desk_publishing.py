"""The desk's forms: what is published, what is wrong beside its field, and what comes of it."""

import re
from typing import Any

from django.test import Client

from agents.models import Agent, AgentGrant
from tests.native.desk import FIELDS, HOSTILE, text
from tests.native.rows import Person, browser, connect, make_agent, make_session, make_turn


def test_a_session_is_published_with_what_the_form_says(alice: Person, bob: Person, signed_in: Client) -> None:
    session = make_session(alice.user, "word-counter")
    page = text(signed_in, f"/desk/publish?session={session.public_id}")
    assert 'value="Word counter"' in page
    assert 'value="word-counter"' in page
    assert re.findall(r'value="(\w+)"[^>]*checked', page) == ["published", "public"]
    body = FIELDS | {"session": session.pk, "slug": "words", "access": "limited", "allowed_logins": "BOB"}
    answer = signed_in.post(f"/desk/publish?session={session.public_id}", body)
    agent = Agent.objects.get()
    assert (answer.status_code, answer["Location"]) == (302, f"/desk/agents/{agent.pk}/published")
    assert (agent.handle, agent.session, agent.status, agent.access) == (
        "alice/words",
        session,
        "published",
        "limited",
    )
    assert agent.suggested_prompts == ["What is new?", "And why?"]
    assert (agent.daily_budget, agent.concurrency_cap, agent.isolated) == (10, 2, True)
    assert (agent.wait_s, agent.agent_style) == (900, "task-generating")
    assert (agent.queue_max, agent.queue_wait_s) == (3, 30)
    assert AgentGrant.objects.get().user == bob.user
    page = text(signed_in, answer["Location"])
    assert "@alice/words is there, and open to callers." in page
    assert 'href="/agents/alice/words#ask"' in page
    assert "/api/a2a/v1/agents/alice/words \\\n" in page
    agent.set_status("draft")
    agent.save()
    assert 'value="publish"' in text(signed_in, answer["Location"])


BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"name": ""}, "id_name", "required"),
    ({"name": "nul\0"}, "id_name", "Null characters"),
    (
        {"description": "x" * 4097},
        "id_description",
        "at most 4096",
    ),  # other bounds: tests/contracts/test_columns.py
    ({"daily_budget": "9" * 30}, "id_daily_budget", "less than or equal to"),
    ({"wait_s": "0"}, "id_wait_s", "greater than or equal to 1"),
    ({"wait_s": "soon"}, "id_wait_s", "whole number"),
    ({"skills": "name: Sum up"}, "id_skills", "Line 1: a skill begins with its id"),
    ({"skills": "id: sum\r\nSum up"}, "id_skills", "Line 2: want one of id, name, description, tag"),
    ({"skills": "id: sum\r\nname: a\r\nname: b"}, "id_skills", "Line 3: the skill sum has a name already"),
    ({"skills": "id: sum"}, "id_skills", "Skill sum, name: "),
    ({"skills": "id: a\r\nname: A\r\ninput: html"}, "id_skills", "Skill a, inputModes: "),
    ({"skills": "id: a\nname: A\n\nid: a\nname: B"}, "id_skills", "Skill ids must differ: a is used twice."),
    ({"skills": "id: a\r\nname: A\r\n" * 21}, "id_skills", "At most 20 skills."),
    ({"input_modes": "image/png"}, "id_input_modes", "Want text/plain or application/json among them."),
    ({"output_modes": "text/plain\r\npictures"}, "id_output_modes", "“pictures” is no media type"),
    ({"output_modes": "image/png"}, "id_output_modes", "Want text/plain or application/json among them."),
    ({"status": "open"}, "id_status", "valid choice"),
    ({"access": "\0"}, "id_access", "valid choice"),
    ({"suggested_prompts": "\n".join("abcdefg")}, "id_suggested_prompts", "At most 6"),
    ({"allowed_logins": "unknown-here"}, "id_allowed_logins", "no user has the login"),
    ({"allowed_logins": "<script>"}, "id_allowed_logins", "no user has the login &lt;script&gt;"),
]


def test_what_is_wrong_is_said_beside_its_field(alice: Person, agent: Agent) -> None:
    for wrong, field, said in BAD:
        answer = browser(alice.session).post(f"/desk/agents/{agent.pk}", FIELDS | wrong)
        assert answer.status_code == 400, (wrong, field, said)
        page = answer.content.decode()
        error = re.search(rf'<p class="error" role="alert" id="{field}_error">([^<]*)</p>', page)
        assert error is not None, page
        assert said in error[1], (wrong, field, said)
        assert f'href="#{field}"' in page, (wrong, field, said)
        assert re.search(rf'aria-describedby="[^"]*{field}_error', page), (wrong, field, said)
        agent.refresh_from_db()
        assert (agent.name, agent.tagline) == ("Helper", ""), (wrong, field, said)


def test_a_place_that_is_no_place_is_said_so(alice: Person) -> None:
    make_agent(alice.user, "taken")
    session = make_session(alice.user, "free")
    for wrong, said in [
        ({"slug": "Not A Slug"}, "want 1 to 64"),
        ({"slug": "taken"}, "is yours already"),
        ({"session": "\0"}, "Null characters"),
        ({"session": "1e9"}, "valid choice"),
    ]:
        answer = browser(alice.session).post(
            "/desk/publish", FIELDS | {"session": session.pk, "slug": "x"} | wrong
        )
        assert answer.status_code == 400, (wrong, said)
        assert said in answer.content.decode(), (wrong, said)
        assert Agent.objects.count() == 1, (wrong, said)


def test_what_a_card_says_is_typed_as_lines_and_comes_back_as_them(alice: Person, agent: Agent) -> None:
    client, path = browser(alice.session), f"/desk/agents/{agent.pk}"
    skills = "id: sum\r\nname: Sum up\r\ndescription: Short.\r\n  And plain.\r\ntag: text\r\ntag: short"
    skills += "\r\nexample: Sum up: x"
    typed = {"skills": skills, "input_modes": "text/plain\r\nimage/*", "output_modes": "text/plain\r\nimage/png"}
    assert (
        client.post(path, FIELDS | typed | {"max_body_bytes": "4096", "task_store": "journal"}).status_code == 302
    )
    agent.refresh_from_db()
    assert agent.skills == [
        {
            "id": "sum",
            "name": "Sum up",
            "description": "Short.\nAnd plain.",
            "tags": ["text", "short"],
            "examples": ["Sum up: x"],
        }
    ]
    assert (agent.input_modes, agent.output_modes) == (["text/plain", "image/*"], ["text/plain", "image/png"])
    assert (agent.max_body_bytes, agent.task_store) == (4096, "journal")
    page = text(client, path)
    assert skills.replace("\r\n", "\n") in page
    assert "text/plain\nimage/*</textarea>" in page
    assert client.post(path, FIELDS | {"output_modes": ""}).status_code == 302
    agent.refresh_from_db()
    assert (agent.skills, agent.input_modes, agent.output_modes, agent.max_body_bytes) == ([], [], [], None)


def test_a_session_of_another_user_is_no_choice(alice: Person, bob: Person, signed_in: Client) -> None:
    session = make_session(bob.user, "foreign")
    connect(make_session(alice.user, "notes", host="box"))
    page = text(signed_in, f"/desk/publish?session={session.public_id}")
    assert "@foreign" not in page
    assert "@notes (box), online" in page
    assert signed_in.post("/desk/publish", FIELDS | {"session": session.pk}).status_code == 400
    assert not Agent.objects.exists()


def test_a_deleted_agent_comes_back_under_its_handle(alice: Person, agent: Agent, signed_in: Client) -> None:
    assert "Delete @alice/helper?" in text(signed_in, f"/desk/agents/{agent.pk}/delete")
    assert Agent.objects.kept().exists()
    assert signed_in.post(f"/desk/agents/{agent.pk}/delete")["Location"] == "/desk"
    assert not Agent.objects.kept().exists()
    signed_in.post("/desk/publish", FIELDS | {"session": agent.session_id, "slug": "helper"})
    assert Agent.objects.kept().get().pk == agent.pk
    assert "is back, with its log" in text(signed_in, "/desk")


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


def test_unpublishing_needs_no_valid_form_and_publishing_undoes_it(agent: Agent, signed_in: Client) -> None:
    for action, status in (("unpublish", "draft"), ("publish", "published")):
        assert signed_in.post(f"/desk/agents/{agent.pk}", {"action": action}).status_code == 302
        agent.refresh_from_db()
        assert agent.status == status


def test_a_preview_is_safe_markdown_and_saves_nothing(alice: Person, agent: Agent) -> None:
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


def test_an_agent_moves_to_another_session_from_its_edit_page(alice: Person, bob: Person) -> None:
    agent, other = make_agent(alice.user), make_session(alice.user, "laptop", host="box")
    foreign = make_session(bob.user, "foreign")
    client, url = browser(alice.session), f"/desk/agents/{agent.pk}"
    page = text(client, url)
    assert re.search(r'<details class="panel" id="session" open>', page)  # offline: it may have to move
    assert "@laptop (box), last seen" in page
    assert "@foreign" not in page
    assert "move the agent to its new session" in text(client, "/agents/alice/helper")
    refused = client.post(url, {**FIELDS, "session": foreign.pk})
    assert (refused.status_code, 'id="id_session_error"' in refused.content.decode()) == (400, True)
    turn = make_turn(agent, bob.user, None)
    busy = client.post(url, {**FIELDS, "session": other.pk})
    assert (busy.status_code, "Not moved: a question to the agent is open" in busy.content.decode()) == (409, True)
    turn.delete()
    assert client.post(url, {**FIELDS, "session": other.pk}).status_code == 302
    agent.refresh_from_db()
    assert agent.session == other
