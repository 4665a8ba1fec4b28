"""The figures on the desk: the last 7 days, in all and for each agent."""

from datetime import timedelta

import pytest
from django.utils import timezone

from agents.core.explanations import OUTCOME_LABELS
from agents.models import Agent
from agents.models.choices import Outcome
from agents.pages.desk import overview as week
from agents.pages.desk.overview import WeekCounts, load_week
from tests.native.desk import text
from tests.native.rows import Person, browser, make_agent, make_turn, spend


def test_asks_are_counted_by_agent_and_in_all(alice: Person, bob: Person) -> None:
    one, other, foreign = make_agent(alice.user, "one"), make_agent(alice.user, "two"), make_agent(bob.user)
    long_ago = timezone.now() - timedelta(days=7, minutes=1)
    for latency_ms in range(1, 41):
        make_turn(one, bob.user, latency_ms=latency_ms)
    make_turn(one, bob.user, asked_at=long_ago, latency_ms=9_000)
    make_turn(one, bob.user, "denied", reason="busy", repeats=3)
    make_turn(other, bob.user, "failed", reason="timeout")
    make_turn(other, bob.user, None)
    make_turn(foreign, alice.user, latency_ms=5_000)
    found = load_week(alice.user, timezone.now(), [one.pk, other.pk])
    assert found.counts_of(one.pk) == WeekCounts(answered=40, refused=3, p95_ms=38)
    assert found.counts_of(other.pk) == WeekCounts(failed=1, open=1)
    assert found.total == WeekCounts(answered=40, failed=1, refused=3, open=1, p95_ms=38)
    assert foreign.pk not in found.counts_by_agent


@pytest.mark.parametrize(("count", "p95_ms"), [(1, 1), (2, 2), (19, 19), (20, 19), (21, 20), (100, 95), (101, 96)])
def test_the_latency_is_the_nearest_rank(alice: Person, count: int, p95_ms: int, agent: Agent) -> None:
    for latency_ms in range(count, 0, -1):
        make_turn(agent, alice.user, latency_ms=latency_ms)
    found = load_week(alice.user, timezone.now(), [agent.pk])
    assert (found.counts_of(agent.pk).p95_ms, found.total.p95_ms) == (p95_ms, p95_ms)


def test_what_is_left_is_that_of_published_agents(alice: Person) -> None:
    spend(make_agent(alice.user, "half", daily_budget=10), 4)
    spend(make_agent(alice.user, "over", daily_budget=5), 9)
    make_agent(alice.user, "draft", "draft", daily_budget=500)
    found = load_week(alice.user, timezone.now(), [])
    assert (found.published, found.left_today) == (2, 6)


def test_more_asks_than_are_counted_are_the_newest(alice: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(week, "MAX_TURNS", 3)
    agent, now = make_agent(alice.user), timezone.now()
    for hours in range(5):
        make_turn(agent, alice.user, asked_at=now - timedelta(hours=hours), latency_ms=hours)
    found = load_week(alice.user, now, [agent.pk])
    assert (found.total.total, found.cut_at) == (3, now - timedelta(hours=3))
    assert "only the newest are counted" in text(browser(alice.session), "/desk")


def test_the_page_shows_a_row_for_each_agent_and_totals(alice: Person, bob: Person) -> None:
    agent = make_agent(alice.user, "asked", daily_budget=40)
    spend(agent, 7)
    for _ in range(3):
        make_turn(agent, bob.user, latency_ms=2_400)
    make_turn(agent, bob.user, "denied", reason="busy", repeats=12)
    for reason in ("canceled", "rejected"):
        make_turn(agent, bob.user, "failed", reason=reason)
    page = text(browser(alice.session), "/desk")
    assert page.count("<dt>Asks</dt><dd>17</dd>") == 2
    assert page.count(f"<dt>{OUTCOME_LABELS[Outcome.FAILED].capitalize()}</dt><dd>2</dd>") == 2
    assert ">Failed<" not in page
    assert page.count("<dt>Refused</dt><dd>12</dd>") == 2
    assert page.count("<dd>2.4 s</dd>") == 2
    assert "<span data-left>33</span> of 40" in page
