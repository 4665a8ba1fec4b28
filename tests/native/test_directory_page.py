"""The directory as a page: who is listed, the search, the paging, the states, and what it costs."""

import re
from datetime import timedelta
from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.models import AgentGrant
from agents.pages.availability import RECENT, load_availability, typical_latencies
from tests.native.rows import Person, browser, connect, make_agent, make_turn, person, spend


def listed(query: dict[str, str] | None = None, visitor: Person | None = None) -> list[str]:
    """The handles on one page of the directory."""
    return re.findall(r'<h3><a href="/agents/([^"]+)" ', page(query, visitor))


def page(query: dict[str, str] | None = None, visitor: Person | None = None) -> str:
    answer = browser(visitor and visitor.session).get("/agents", query or {})
    assert answer.status_code == 200
    text: str = answer.content.decode()
    return text


def test_it_lists_whom_the_visitor_may_ask(alice: Person, bob: Person) -> None:
    make_agent(alice.user, "open")
    make_agent(alice.user, "draft", "draft")
    make_agent(alice.user, "private", access="private")
    AgentGrant.objects.create(agent=make_agent(alice.user, "limited", access="limited"), user=bob.user)
    make_agent(person("gone", is_active=False).user, "suspended")
    assert listed() == ["alice/open"]
    assert listed(visitor=bob) == ["alice/limited", "alice/open"]
    assert listed(visitor=alice) == ["alice/limited", "alice/open", "alice/private"]


def test_filters_for_the_connected_and_ones_own(alice: Person, bob: Person) -> None:
    connect(make_agent(alice.user, "awake").session)
    make_agent(alice.user, "asleep")
    gone = make_agent(bob.user, "gone")
    connect(gone.session, beat_at=timezone.now() - timedelta(hours=1))
    assert listed({"online": "1"}) == ["alice/awake"]
    assert listed({"mine": "1"}, bob) == ["bob/gone"]
    assert listed({"mine": "1", "online": "1"}, alice) == ["alice/awake"]
    assert len(listed({"mine": "1"})) == 3, "without a user there is no `mine`"


def test_pages_keep_the_search_and_their_order(alice: Person) -> None:
    for number in range(50):
        make_agent(alice.user, f"a{number:02}")
    pages = [listed({"q": "alice", "page": number}) for number in "123"]
    assert [len(each) for each in pages] == [24, 24, 2]
    handles = [handle for each in pages for handle in each]
    assert handles == sorted(handles)
    second = page({"q": "alice", "page": "2"})
    assert "Page 2 of 3" in second
    assert 'rel="next" href="?q=alice&amp;page=3"' in second
    assert "50 agents found" in second


def test_any_text_and_any_page_number_give_a_page(alice: Person) -> None:
    make_agent(alice.user)
    for number in ["0", "-1", "x", "²", "\0", "9" * 5000, "1e9", ""]:
        assert listed({"page": number}) == ["alice/helper"], number
    for text in ["%", "co\0unt", "x" * 5000]:
        assert listed({"q": text}) == [], text


def test_an_entry_says_how_the_agent_is(alice: Person, bob: Person) -> None:
    agent = make_agent(alice.user, "notes", tagline="<b>Knows</b>", daily_budget=10, isolated=False)
    connect(agent.session)
    spend(agent, 3)
    for latency_ms in (100, 4200, 90_000):
        make_turn(agent, bob.user, latency_ms=latency_ms, released_at=timezone.now())
    shown = page()
    for words in ("7 of 10 questions left today", "answers in about 4 s", "may ask others", "&lt;b&gt;Knows"):
        assert words in shown
    assert 'class="state on"' in shown
    make_turn(agent, bob.user, None)
    assert 'class="state busy"' in page()
    assert 'class="state on"' in page(visitor=bob), "a question of one's own does not make the agent busy"


def test_an_empty_directory_says_what_to_do(alice: Person) -> None:
    assert "No agent is published yet" in page()
    assert "/signin" in page()
    assert "Connect an agent" in page(visitor=alice)
    make_agent(alice.user)
    assert "Nothing matches" in page({"q": "unknown"})
    assert "None is online now" in page({"online": "1"})
    assert "You have published no agent" in page({"mine": "1"}, person("carol"))


def test_a_page_costs_the_same_however_many_it_lists(alice: Person, bob: Person) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            page(visitor=bob)
        return len(captured)

    make_agent(alice.user, "a0")
    page(visitor=bob)  # the first notes that the credential is in use
    one = queries()
    for number in range(1, 24):
        make_agent(alice.user, f"a{number}")
    assert queries() == one


def test_the_typical_latency_is_that_of_the_latest_answers(alice: Person, bob: Person) -> None:
    agent, unasked = make_agent(alice.user), make_agent(alice.user, "unasked")
    long_ago = timezone.now() - timedelta(days=1)
    for _ in range(RECENT + 5):
        make_turn(agent, bob.user, latency_ms=60_000, asked_at=long_ago)
    for _ in range(RECENT - 1):
        make_turn(agent, bob.user, latency_ms=1000)
    make_turn(agent, bob.user, "denied", reason="busy")
    assert typical_latencies([agent.pk, unasked.pk]) == {agent.pk: 1000}
    assert typical_latencies([]) == {}


def test_a_held_session_is_busy_for_others_until_its_claim_runs_out(alice: Person, bob: Person) -> None:
    agent = make_agent(alice.user)
    connect(agent.session)
    turn = make_turn(agent, bob.user, None)

    def states() -> list[Any]:
        return [
            load_availability([agent], visitor)[agent.pk].state for visitor in (None, alice.user.pk, bob.user.pk)
        ]

    assert states() == ["busy", "busy", "online"]
    turn.claim_until = timezone.now() - timedelta(seconds=1)
    turn.save()
    assert states() == ["online", "online", "online"]
