"""A session's pages: who sees what of them, what was and by whom, and what only its owner does."""

import html
import json
import re
from typing import Any

import pytest
from django.test import Client

from accounts.middleware import PAGE_POLICY
from agents.models import Event, Session, Share, Turn
from agents.transcript.access import sessions_visible_to
from agents.transcript.timeline import NEWEST, Position, TimelineRow, read_history
from operators.service.session_views import row_of
from tests.browser.vectors import VECTORS
from tests.native.rows import Person, browser, make_agent, make_session
from tests.native.transcripts import ROLES, add_events, add_file, add_messages, ago, lend, request_permission

pytestmark = pytest.mark.django_db
MARKUP = re.compile(r"<(?!/?(script (type|src)|script>))(script|img|svg|iframe|body o|base|meta h)[^>]*pwned")
TOGETHER = 20  # hostile texts on one page, which has 50 lines


def home(session: Session) -> str:
    return f"/desk/sessions/{session.public_id}"


def shown(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, answer.content
    assert answer["Content-Security-Policy"] == PAGE_POLICY
    assert "no-store" in answer["Cache-Control"]
    return html.unescape(answer.content.decode())


@pytest.mark.parametrize("role", ROLES)
def test_what_a_role_may_not_do_is_not_there(bob: Person, role: str, session: Session) -> None:
    lend(session, bob.user, role)
    page = shown(browser(bob.session), home(session))
    assert f"you are its <strong>{role}</strong>" in page
    assert ('id="prompt"' in page) == ('id="upload"' in page) == ('id="op"' in page) == (role != "viewer")
    assert ("A allows, D denies" in page) == (role == "approver")
    assert 'id="sharing"' not in page
    assert "/delete" not in page


def test_the_transcript_says_who_said_what(alice: Person, session: Session) -> None:
    add_events(session, type="prompt", payload='{"text": "do it", "authorLogin": "bob"}')
    add_events(session, type="prompt", payload='{"prompt": "typed"}')
    add_events(session, type="reply", payload='{"text": "done", "chatId": "c1"}')
    add_events(session, kind="tail", type="PreToolUse", payload='{"tool_name": "Bash", "tool_input": {"x": 1}}')
    add_messages(session, text="look at this")
    add_file(session, filename="plan.md")
    page = shown(browser(alice.session), home(session))
    for words in ("@bob", "do it", "at its terminal", "typed", "done", "Tool call", "Bash", '"x": 1'):
        assert words in page
    for words in ("look at this", "operators only", "@alice uploaded plan.md (5 bytes)", 'data-chat="c1"'):
        assert words in page


def test_any_payload_is_shown(alice: Person) -> None:
    session, events = make_session(alice.user), []
    for payload in ("[]", "7", "nothing", '{"text": 7, "chatId": []}', "{}", "[" * 5000):
        for type_ in ("prompt", "reply", "odd"):
            events += add_events(session, type=type_, payload=payload)
    page = shown(browser(alice.session), home(session))
    assert [one.payload for one in events if f'id="e{one.pk}"' not in page] == []


def test_notes_and_artifacts_are_lines_with_words(session: Session) -> None:
    for type_, payload, title, shown in [
        ("task_status", {"state": "working", "text": "reading page 3"}, "Status", "reading page 3"),
        ("task_artifact", {"artifactId": "a1", "name": "The plan", "parts": []}, "Artifact", "The plan"),
        ("task_artifact", {"artifactId": "a1", "parts": []}, "Artifact", "a1"),
        (
            "PreToolUse",
            {"tool_name": "Read", "tool_input": {"limit": 3, "file": "a.py"}},
            "Tool call",
            "Read a.py",
        ),
        ("PreToolUse", {"tool_name": "Read", "tool_input": ["a.py"]}, "Tool call", "Read"),
        ("Stop", {}, "Stop", ""),
    ]:
        [event] = add_events(session, type=type_, payload=json.dumps(payload))
        row = row_of(TimelineRow(event.ts, event))
        assert (row.look, row.title, row.text) == ("note", title, shown), (type_, payload, title, shown)


def add_turn(session: Session, chat_id: str, minutes: float = 0, **fields: Any) -> Turn:
    """A turn whose question is in the transcript."""
    asked_at = ago(minutes)
    question = json.dumps({"text": f"question {chat_id}", "authorLogin": "bob", "chatId": chat_id})
    add_events(session, type="prompt", payload=question, ts=asked_at)
    ended = {"outcome": "completed", "settled_at": asked_at, **fields}
    return Turn.objects.create(
        chat_id=chat_id, session=session, surface="prompt", question="q", asked_at=asked_at, **ended
    )


def test_an_answer_is_markdown_and_leads_to_its_question(alice: Person, session: Session) -> None:
    turn = add_turn(session, "c1")
    add_turn(session, "c2", outcome="failed", reason="timeout")
    add_events(session, payload='{"text": "**yes** <b>", "chatId": "c1"}')
    page = browser(alice.session).get(f"{home(session)}?turn={turn.pk}").content.decode()
    assert f'id="turn-{turn.pk}"' in page
    assert 'id="prompt"' in page  # the newest part, live
    assert f'href="#turn-{turn.pk}">its question' in page
    assert "data-markdown>**yes** &lt;b&gt;" in page
    assert "The agent did not answer in time." in page


def test_a_link_to_an_old_turn_opens_its_part_of_the_transcript(session: Session, signed_in: Client) -> None:
    for minute in range(200, 130, -1):
        add_events(session, ts=ago(minute))
    add_messages(session, ts=ago(150))
    turn = add_turn(session, "c1", 125)
    add_messages(session, text="right after", ts=ago(124))
    for minute in range(120, 20, -1):
        add_events(session, ts=ago(minute))
    anchor = f'id="turn-{turn.pk}"'
    assert anchor not in shown(signed_in, home(session))
    assert anchor in shown(signed_in, f"{home(session)}?turn={turn.chat_id}")
    page = shown(signed_in, f"{home(session)}?turn={turn.pk}")
    rows = re.findall(r'<li id="([emf]\d+)"', page)
    assert anchor in page
    assert page.index(anchor) < page.index("right after")
    assert len(rows) == 50
    assert "An earlier part" in page
    assert 'id="prompt"' not in page
    older = shown(signed_in, home(session) + re.findall(r'id="older" href="[^"?]+([^"]+)"', page)[0])
    assert not set(rows) & set(re.findall(r'<li id="([emf]\d+)"', older))
    newer = shown(signed_in, home(session) + re.findall(r'href="[^"?]+(\?from=[^"]+)"', page)[0])
    assert len(set(re.findall(r'<li id="([emf]\d+)"', newer)) - set(rows)) == 50


def test_a_turn_that_is_not_in_the_transcript_is_said(alice: Person, bob: Person, session: Session) -> None:
    add_turn(make_session(bob.user, "other"), "of-another")
    add_turn(session, "forgotten")
    Event.objects.filter(session=session).delete()
    for name in ["", "7", "9" * 18, "x" * 65, "\0", "of-another", "forgotten"]:
        answer = browser(alice.session).get(home(session), {"turn": name})
        assert "This turn is not in the transcript" in answer.content.decode(), name


@pytest.mark.parametrize("role", ROLES)
def test_requests_wait_at_the_end_and_have_lines_in_their_place(bob: Person, role: str, session: Session) -> None:
    lend(session, bob.user, role)
    request_permission(session, tool="Read", status="allowed", resolved_at=ago(1), resolver=bob.user)
    request_permission(session, tool="Write", expires_at=ago(1))
    request_permission(session, tool="Bash", input_preview="<i>ls</i>", request_id="waits")
    page = browser(bob.session).get(home(session)).content.decode()
    done, waiting = page.split('id="waiting"')
    assert "allowed by @bob" in done
    assert "expired" in done
    assert re.search(r"<span class=\"badge\">waiting</span> Bash", done)
    assert 'data-request="waits"' in waiting
    assert "&lt;i&gt;ls&lt;/i&gt;" in waiting
    assert ('data-decision="allow"' in waiting) == (role == "approver")
    assert '<span class="badge" id="permission-count">1</span>' in page


def test_long_texts_are_cut_and_lead_to_the_whole(session: Session, signed_in: Client) -> None:
    (event,) = add_events(session, payload='{"text": "%s"}' % ("x" * 100_000))
    page = shown(signed_in, home(session))
    assert len(page) < 30_000
    (address,) = re.findall(r'href="(/api/v1/[^"]+limit=1)"', page)
    (item,) = signed_in.get(address).json()["items"]
    assert (item["id"], len(item["payload"]["text"])) == (event.pk, 100_000)


def test_the_way_to_older_lines_loses_and_repeats_none(alice: Person) -> None:
    session, other = make_session(alice.user), make_session(alice.user, "other")
    for number in range(130):
        moment = ago(200 - number)
        add_events(session, ts=moment)
        if number % 3 == 0:
            add_messages(session, ts=moment)
            add_events(other, ts=moment)
        if number % 10 == 0:
            add_file(session, uploaded_at=moment)
    client, seen, path = browser(alice.session), [], home(session)
    while path:
        page = shown(client, path)
        seen[:0] = re.findall(r'<li id="([emf]\d+)"', page)
        path = next(iter(re.findall(r'id="older" href="([^"]+)"', page)), "")
    assert len(seen) == len(set(seen)) == 130 + 44 + 13
    assert [one for one in seen if one[0] == "e"] == sorted(
        (one for one in seen if one[0] == "e"), key=lambda one: int(one[1:])
    )


def test_lines_out_of_step_with_time_are_not_lost(session: Session) -> None:
    for minutes in (5, 1, 9, 2, 8, 3):
        add_events(session, ts=ago(minutes))
    before: Position | None = NEWEST
    seen: list[int] = []
    while before is not None:
        page = read_history(session.pk, before, 2)
        seen += [moment.row.pk for moment in reversed(page.moments)]
        before = page.before
    assert seen == sorted(seen, reverse=True)
    assert len(seen) == 6


def test_a_cursor_is_read_as_it_was_written() -> None:
    for before in [NEWEST, Position(event=3), Position(1, 2, 3, 4)]:
        assert Position.read(str(before)) == before, before


def test_a_broken_cursor_is_the_newest_end(alice: Person, session: Session) -> None:
    add_events(session)
    for text in ["", "1", "1-2", "1-2-3", "1-2-3-x", "9" * 40, "1-2-3-4\n", "\0", "٣-٣-٣-٣"]:
        answer = browser(alice.session).get(home(session), {"before": text})
        assert 'id="e' in answer.content.decode(), text


def test_lines_cost_the_same_queries_however_many(alice: Person, django_assert_num_queries: Any) -> None:
    session = make_session(alice.user)
    client = browser(alice.session)
    client.get(home(session) + "/rows")
    for _ in range(2):
        add_events(session, 30, payload='{"text": "hi", "chatId": "c1"}')
        add_messages(session, 10)
        request_permission(session, expires_at=ago(-10))
        with django_assert_num_queries(8):
            client.get(home(session) + "/rows")


# What only the owner does.


def post(person: Person, session: Session, verb: str, **fields: str) -> Any:
    return browser(person.session).post(f"{home(session)}/{verb}", fields, follow=True)


def test_an_owner_shares_and_takes_back(alice: Person, bob: Person, session: Session) -> None:
    assert (
        "Shared with @bob, as prompter"
        in post(alice, session, "share", login="@BOB", role="prompter").content.decode()
    )
    assert Share.objects.get().role == "prompter"
    assert "@bob no longer sees" in post(alice, session, "unshare", login="bob").content.decode()
    assert not sessions_visible_to(bob.user.pk).exists()


def test_what_cannot_be_shared_is_said(alice: Person, bob: Person) -> None:
    for fields in [
        {},
        {"login": "unknown"},
        {"login": "bob", "role": "owner"},
        {"login": "alice"},
        {"login": "b\0b"},
        {"login": "x" * 999},
    ]:
        answer = post(alice, make_session(alice.user), "share", **{"role": "viewer", **fields})
        assert answer.status_code == 200, fields
        assert 'class="notice' in answer.content.decode(), fields
        assert not Share.objects.exists(), fields


def test_an_owner_puts_a_session_away(alice: Person, session: Session) -> None:
    assert "Archived. It comes back" in post(alice, session, "archive").content.decode()
    session.refresh_from_db()
    assert session.archived_at
    assert "archived already" in post(alice, session, "archive").content.decode()


def test_deleting_says_what_goes_and_takes_it(alice: Person) -> None:
    session = make_agent(alice.user).session
    add_events(session, 3)
    add_file(session, b"12345678")
    page = shown(browser(alice.session), f"{home(session)}/delete")
    assert re.search(r">events</th><td class=\"number\">3<", page)
    assert Session.objects.filter(pk=session.pk).exists()
    done = post(alice, session, "delete")
    assert "Deleted @helper: 3 events, 8 bytes of files." in done.content.decode()
    assert not Session.objects.filter(pk=session.pk).exists()


def test_no_text_becomes_markup(alice: Person, signed_in: Client) -> None:
    for start in range(0, len(VECTORS), TOGETHER):
        session = make_session(alice.user, "s", cwd=VECTORS[start][:1024])
        for vector in VECTORS[start : start + TOGETHER]:
            add_messages(session, text=vector)
            add_file(session, filename=vector[:255])
        page = signed_in.get(home(session)).content.decode()
        assert page.count("<li id=") == 2 * len(VECTORS[start : start + TOGETHER])
        assert not MARKUP.findall(page)
