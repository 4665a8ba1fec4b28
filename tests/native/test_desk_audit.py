"""The audit of an agent on the desk: figures, list, CSV, pictures, blocks."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.core import figures
from agents.core.figures import window_of
from agents.models import Agent, CallerBlock, Event
from agents.pages.desk import audit
from kit import env, search
from tests.native.desk import sheet, text
from tests.native.rows import Person, browser, make_agent, make_turn, person, spend

NOON = datetime(2031, 3, 31, 12, tzinfo=UTC)


def listed(page: str) -> list[str]:
    return re.findall(r'<p class="said">([^<]*)</p>', page)


# Windows.


def test_days_are_those_of_the_visitors_calendar_over_a_change_of_clocks() -> None:
    window = window_of(NOON, 3, "Europe/Berlin")  # summer time began on the 30th
    assert window.days == (date(2031, 3, 29), date(2031, 3, 30), date(2031, 3, 31))
    assert [start.isoformat() for start in window.starts] == [
        "2031-03-28T23:00:00+00:00",
        "2031-03-29T23:00:00+00:00",
        "2031-03-30T22:00:00+00:00",
    ]
    assert [window.number_of(start) for start in window.starts] == [0, 1, 2]
    assert window.number_of(window.starts[1] - timedelta(microseconds=1)) == 0
    assert window_of(NOON, 1, "Pacific/Kiritimati").days == (date(2031, 4, 1),)  # a day ahead of UTC


# Figures.


def test_asks_are_counted_on_the_day_they_have_in_the_zone(bob: Person, agent: Agent) -> None:
    window = window_of(NOON, 3, "Asia/Kolkata")
    start = window.starts[1]
    make_turn(agent, bob.user, asked_at=start - timedelta(seconds=1))
    make_turn(agent, bob.user, asked_at=start)
    make_turn(agent, bob.user, "failed", reason="timeout", asked_at=start)
    make_turn(agent, bob.user, "denied", reason="busy", repeats=4, asked_at=window.starts[2])
    make_turn(agent, bob.user, None, asked_at=NOON)
    make_turn(agent, bob.user, asked_at=window.since - timedelta(seconds=1))
    turns, cut_at = figures.asks_in_window(agent, window)
    counted = [(day.answered, day.failed, day.refused, day.open) for day in figures.by_day(turns, window)]
    assert (counted, cut_at) == ([(1, 0, 0, 0), (1, 1, 0, 0), (0, 0, 4, 1)], None)
    reasons = {(one.outcome, one.reason): one.count for one in figures.by_reason(turns)}
    assert reasons == {("denied", "busy"): 4, ("completed", ""): 2, ("failed", "timeout"): 1}


def test_percentiles_are_nearest_ranks_of_answers(bob: Person, agent: Agent) -> None:
    window = window_of(NOON, 2, "UTC")
    for size in range(1, 101):
        make_turn(agent, bob.user, asked_at=NOON, latency_ms=size * 10)
    make_turn(agent, bob.user, asked_at=NOON - timedelta(days=1), latency_ms=7)
    make_turn(agent, bob.user, "failed", asked_at=NOON, latency_ms=60_000)
    found = figures.latencies(figures.asks_in_window(agent, window)[0], window)
    assert found.days[0] == figures.Latency(1, 7, 7, 7)
    assert found.days[1] == figures.Latency(100, 500, 950, 990)
    assert (found.all.count, found.all.p50, found.all.p99) == (101, 500, 990)


def test_no_more_asks_are_read_than_the_bound(alice: Person, bob: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "MAX_TURNS", 5)
    agent = make_agent(alice.user)
    now = timezone.now()
    for number in range(8):
        make_turn(agent, bob.user, asked_at=now - timedelta(minutes=number))
    page = text(browser(alice.session), f"/desk/agents/{agent.pk}/audit")
    assert "There were more than 5 asks: only the newest are counted" in page
    assert "<dt>Asks</dt><dd>5</dd>" in page


# The page.


def test_the_page_of_an_agent_without_asks_says_so(alice: Person, agent: Agent) -> None:
    assert "No questions in these days" in text(browser(alice.session), f"/desk/agents/{agent.pk}/audit")


def test_the_page_shows_who_asked_what_and_how_it_went(alice: Person, bob: Person) -> None:
    agent, other = make_agent(alice.user), make_agent(alice.user, "other")
    make_turn(agent, bob.user, question="why?", latency_ms=42)
    make_turn(agent, bob.user, "denied", reason="busy", repeats=3, question="now?")
    make_turn(agent, None, "failed", reason="timeout", question="gone?")
    make_turn(other, bob.user, question="elsewhere?")
    page = text(browser(alice.session), f"/desk/agents/{agent.pk}/audit")
    assert listed(page) == ["gone?", "now?", "why?"]
    assert "<dt>Asks</dt><dd>5</dd>" in page
    assert "<dt>Half within</dt><dd>42 ms</dd>" in page
    assert ": 1 answered, 1 not answered, 3 refused</text>" in page
    table = page.partition('aria-label="Asks per day"')[2].partition("</table>")[0]
    days = [re.findall(r"<td[^>]*>(\d+)<", row) for row in table.split('<th scope="row">')[1:]]
    assert (len(days), days[0][:4]) == (7, ["5", "1", "1", "3"])
    assert "The agent was answering another caller. 3 times." in page
    assert "an account that is gone" in page
    assert re.search(r"<strong>@bob</strong>\s*<p class=\"hint\">4 asks", page)


def test_the_list_is_filtered_and_nonsense_is_no_filter(alice: Person, bob: Person) -> None:
    agent, carol = make_agent(alice.user), person("carol")
    make_turn(agent, bob.user, question="c")
    make_turn(agent, carol.user, "denied", reason="busy", question="d")
    make_turn(agent, carol.user, "failed", reason="timeout", question="f")
    make_turn(agent, bob.user, None, question="o")
    for query, questions in [
        ({"outcome": "completed"}, ["c"]),
        ({"outcome": "denied"}, ["d"]),
        ({"outcome": "failed"}, ["f"]),
        ({"outcome": "open"}, ["o"]),
        ({"asker": "@BOB"}, ["o", "c"]),
        ({"asker": "carol", "outcome": "failed"}, ["f"]),
        ({"asker": "unknown"}, []),
        ({"outcome": "\0", "asker": "\0"}, ["o", "f", "d", "c"]),
        ({"outcome": "x' OR 1=1", "asker": "x" * 5000}, ["o", "f", "d", "c"]),
        ({"days": "9" * 5000, "tz": "../../etc/passwd", "page": "9" * 5000}, ["o", "f", "d", "c"]),
        ({"days": "30", "tz": "\0", "page": "-1"}, ["o", "f", "d", "c"]),
    ]:
        page = text(browser(alice.session), f"/desk/agents/{agent.pk}/audit", **query)
        assert listed(page) == questions, (query, questions)


def test_a_long_list_comes_in_pages_that_keep_the_filter(alice: Person, bob: Person, agent: Agent) -> None:
    for number in range(30):
        make_turn(agent, bob.user, question=f"q{number}")
    client, path = browser(alice.session), f"/desk/agents/{agent.pk}/audit"
    first = text(client, path, asker="bob", days="30")
    assert len(listed(first)) == 25
    assert "?days=30&amp;tz=UTC&amp;asker=bob&amp;page=2#recent" in first
    assert listed(text(client, path, asker="bob", days="30", page="2")) == [
        f"q{number}" for number in (4, 3, 2, 1, 0)
    ]


def test_how_it_went_is_said_in_plain_words(alice: Person, bob: Person, agent: Agent) -> None:
    for reason in ("canceled", "agent_failed", "rejected"):
        make_turn(agent, bob.user, "failed", reason=reason)
    make_turn(agent, bob.user, "failed", reason="canceled", depth=1)
    make_turn(agent, bob.user, "denied", reason="busy", repeats=3)
    make_turn(agent, bob.user, question="A **bold** question\n\n- of [two](https://x.example) lines")
    make_turn(agent, bob.user, reason="input_required")
    page = text(browser(alice.session), f"/desk/agents/{agent.pk}/audit")
    assert '<span class="badge good">asked back</span>' in page
    for badge, words in (
        ('<span class="badge">canceled</span>', "The caller canceled this."),
        ('<span class="badge bad">failed</span>', "The agent said that it failed."),
        ('<span class="badge">declined</span>', "The agent declined to answer."),
        ('<span class="badge">refused</span>', "The agent was answering another caller."),
    ):
        assert f"{badge} {words}" in page
        assert page.count(words) == 2, "in the list and in the table of outcomes"
    assert "Another agent asked this for a question that has ended since." in page
    assert "answering another caller. 3 times." in page
    assert "The agent answers no other caller until it has finished, for at most 60 s." in page
    assert '<p class="said">A bold question of two lines</p>' in page


# Words.


def test_questions_are_searched_for_all_of_the_words(alice: Person, bob: Person) -> None:
    asked = ["what is a lifetime in Rust?", "A LIFETIME?", "100% sure?", "1000 sure?", "is a_b a name?", "axb"]
    asked += ["etwas über dich", "Über was?"]
    agent = make_agent(alice.user)
    for question in asked:
        make_turn(agent, bob.user, question=question)
    for words, questions in [
        ("lifetime", ["A LIFETIME?", "what is a lifetime in Rust?"]),
        ("rust  Lifetime", ["what is a lifetime in Rust?"]),
        ("100%", ["100% sure?"]),
        ("a_b", ["is a_b a name?"]),
        ("ÜBER", ["Über was?", "etwas über dich"]),
        ("nothing like it", []),
        ("\0", ["all"]),
        ("x" * 300, ["all"]),
        ("' OR 1=1 --", []),
    ]:
        page = text(browser(alice.session), f"/desk/agents/{agent.pk}/audit", q=words)
        assert listed(page) == (asked[::-1] if questions == ["all"] else questions), (words, questions)


def test_a_search_reads_no_more_than_its_bounds(
    alice: Person, bob: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "MAX_SEARCHED", 3)
    monkeypatch.setattr(search, "SEARCHED_CHARS", 20)
    agent, now = make_agent(alice.user), timezone.now()
    for number in range(5):
        make_turn(agent, bob.user, question=f"why {number}?", asked_at=now - timedelta(minutes=number))
    client, path = browser(alice.session), f"/desk/agents/{agent.pk}/audit"
    page = text(client, path, q="why")
    assert listed(page) == ["why 0?", "why 1?", "why 2?"]
    assert "Only the newest 3 questions were searched" in page
    assert listed(text(client, path, q="1?")) == ["why 1?"]
    make_turn(agent, bob.user, question=f"{'x' * 20} needle")
    assert listed(text(client, path, q="needle")) == []
    assert "q=needle" in text(client, path, q="needle"), "in the link to the CSV"


# Replies and traces.


def test_the_list_has_replies_and_links_to_their_places(alice: Person, bob: Person, agent: Agent) -> None:
    answered = make_turn(agent, bob.user, question="why?")
    failed = make_turn(agent, bob.user, "failed", reason="agent_failed", question="how?")
    blanked = make_turn(agent, bob.user, question="")
    refused = make_turn(agent, bob.user, "denied", reason="busy", question="now?")
    for turn, reply in ((answered, "because <b>"), (failed, "cannot read it")):
        payload = json.dumps({"text": reply, "chatId": turn.chat_id})
        values = {"kind": "chat", "type": "reply", "payload": payload, "ts": turn.settled_at}
        Event.objects.create(session=agent.session, **values)
    page = text(browser(alice.session), f"/desk/agents/{agent.pk}/audit")
    assert listed(page) == ["now?", "how?", "cannot read it", "why?", "because &lt;b&gt;"]
    assert 'class="hint">Reply</p><p class="said">because' in page
    assert 'class="hint">The agent said</p><p class="said">cannot' in page
    assert page.count("The text of the question is not kept any more.") == 1
    assert page.count("The transcript has no text of a reply.") == 1
    for turn, count in ((answered, 1), (failed, 1), (blanked, 1), (refused, 0)):
        place = f"/desk/sessions/{agent.session.public_id}?turn={turn.pk}#turn-{turn.pk}"
        assert page.count(f'href="{place}"') == count


def test_trace_ids_link_to_the_tracing_ui_where_there_is_one(alice: Person, bob: Person, settings: Any) -> None:
    agent = make_agent(alice.user)
    make_turn(agent, bob.user, traceparent=f"00-{'a1' * 16}-{'b2' * 8}-01")
    make_turn(agent, bob.user)
    client, path = browser(alice.session), f"/desk/agents/{agent.pk}/audit"
    assert f"trace <code>{'a1' * 16}</code>" in text(client, path)
    settings.TRACE_UI_URL = "https://traces.example/x?left={trace_id}&more=%7B%7D"
    page = text(client, path)
    address = f"https://traces.example/x?left={'a1' * 16}&amp;more=%7B%7D"
    assert f'trace <a href="{address}" rel="noreferrer"><code>{"a1" * 16}</code></a>' in page
    assert page.count("traces.example") == 1


def test_the_address_of_a_tracing_ui_has_a_place_for_the_id_or_stops_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for raw in ["", "https://t.example/trace/{trace_id}", "http://127.0.0.1:16686/a?b={trace_id}#{trace_id}"]:
        monkeypatch.setenv("TRACE_UI_URL", raw)
        assert env.link_template("TRACE_UI_URL", "{trace_id}") == raw, raw
    for raw in [
        *("https://t.example/", "t.example/{trace_id}", "javascript:alert({trace_id})", "https://{trace_id}/x"),
        *("https://u:p@t.example/{trace_id}", "https://[::1/{trace_id}", "https://t.example/{trace_id} x", " "),
    ]:
        monkeypatch.setenv("TRACE_UI_URL", raw)
        with pytest.raises(ImproperlyConfigured, match="TRACE_UI_URL"):
            env.link_template("TRACE_UI_URL", "{trace_id}")


# Blocks.


def test_a_caller_is_blocked_from_the_page_and_unblocked(alice: Person, bob: Person, agent: Agent) -> None:
    make_turn(agent, bob.user)
    client, path = browser(alice.session), f"/desk/agents/{agent.pk}/audit?days=30&tz=UTC"
    answer = client.post(path, {"login": "bob", "action": "block"})
    assert (answer.status_code, answer["Location"]) == (302, path)
    block = CallerBlock.objects.get()
    assert (block.owner, block.caller) == (alice.user, bob.user)
    page = text(client, path)
    assert "@bob is blocked" in page
    assert 'value="unblock"' in page
    client.post(path, {"login": "BOB", "action": "unblock"})
    assert not CallerBlock.objects.exists()


def test_who_is_unknown_or_oneself_is_not_blocked(alice: Person, agent: Agent, signed_in: Client) -> None:
    path = f"/desk/agents/{agent.pk}/audit"
    for login in ["", "unknown", "alice", "\0", "x" * 5000, "<b>"]:
        assert signed_in.post(path, {"login": login, "action": "block"}).status_code == 302, login
        assert 'class="notice error"' in text(signed_in, path), login
        assert not CallerBlock.objects.exists(), login


# To take away.


@pytest.fixture
def _no_pool_left(transactional_db: None) -> Iterator[None]:
    """A stream reads in threads; the pool keeps their connections, and a database in use cannot be dropped."""
    yield
    connection.close()
    if connection.vendor == "postgresql":
        connection.close_pool()


@pytest.mark.usefixtures("_no_pool_left")
def test_the_csv_holds_what_the_filter_lets_through_and_no_formula() -> None:
    alice, bob = person("alice"), person("bob")
    agent = make_agent(alice.user)
    starts = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx"]
    for question in [*starts, 'harmless, "quoted"\nand long']:
        make_turn(agent, bob.user, question=question)
    make_turn(agent, bob.user, "denied", reason="busy", question="refused")
    make_turn(make_agent(alice.user, "other"), bob.user, question="elsewhere")
    named, *lines = sheet(browser(alice.session), f"/desk/agents/{agent.pk}/audit.csv?outcome=completed")
    assert named == ['attachment; filename="helper-7-days.csv"']
    assert lines[0][-1] == "question"
    assert [line[-1] for line in lines[:0:-1]] == [
        *(f"'{start}" for start in starts),
        'harmless, "quoted"\nand long',
    ]


def test_many_askers_and_agents_take_no_more_queries_than_one(alice: Person) -> None:
    agent = make_agent(alice.user)
    client = browser(alice.session)

    def counted(path: str) -> int:
        with CaptureQueriesContext(connection) as queries:
            text(client, path)
        return len(queries)

    def ask_and_publish(number: int) -> None:
        make_turn(agent, person(f"asker-{number}").user)
        more = make_agent(alice.user, f"more-{number}")
        make_turn(more, alice.user, latency_ms=1)
        spend(more, 1)

    paths = [f"/desk/agents/{agent.pk}/audit", "/desk"]
    ask_and_publish(0)
    text(client, "/desk")  # the first page of a minute notes the use of the credential
    before = [counted(path) for path in paths]
    for number in range(1, 12):
        ask_and_publish(number)
    assert [counted(path) for path in paths] == before
