"""A turn ends once; the count is given back only when nothing left; refusals do not fill the table."""

import datetime

import pytest

from agents.core.errors import OverBudget, RateLimited, Unavailable
from agents.core.ledger.batch import commit
from agents.core.ledger.work import Admit, Deny, Settle
from agents.core.types import SettledTurn, TurnEnding
from agents.models import DailyUsage, Turn
from agents.models.choices import Outcome, TurnFailure
from tests.contracts.rows import COMPLETED, HOME, admitted, ask, decide, end, published

pytestmark = [pytest.mark.django_db, pytest.mark.ledger]

LOST = TurnEnding(outcome=Outcome.FAILED, reason=TurnFailure.CHANNEL_LOST)
NOT_SENT = TurnEnding(outcome=Outcome.FAILED, reason=TurnFailure.NOT_DELIVERED, returns_budget=True)


def test_the_first_end_stands_and_the_loser_is_told_the_winner() -> None:
    turn = admitted(ask(published()))
    assert end(turn, LOST) == SettledTurn(Outcome.FAILED, TurnFailure.CHANNEL_LOST)
    assert end(turn, COMPLETED) == SettledTurn(Outcome.FAILED, TurnFailure.CHANNEL_LOST)
    assert Turn.objects.get().outcome == "failed"


def test_two_ends_in_one_batch_have_one_winner() -> None:
    turn = admitted(ask(published()))
    first, second = commit([Settle(turn, COMPLETED), Settle(turn, LOST)], home=HOME).results
    assert isinstance(first, SettledTurn)
    assert isinstance(second, SettledTurn)
    assert first.outcome == second.outcome == Turn.objects.get().outcome


def test_a_settled_turn_has_its_end_and_latency_and_holds_nothing() -> None:
    turn = admitted(ask(published()))
    end(turn)
    row = Turn.objects.get()
    assert (row.outcome, row.latency_ms) == ("completed", 5)
    assert row.settled_at == row.released_at


def test_an_ask_that_never_left_is_given_back_on_the_day_it_was_counted() -> None:
    agent = published()
    turn = admitted(ask(agent))
    yesterday = Turn.objects.get().usage_day - datetime.timedelta(days=1)
    Turn.objects.update(usage_day=yesterday)
    DailyUsage.objects.update(day=yesterday, queries=7)
    end(turn, NOT_SENT)
    assert list(DailyUsage.objects.values_list("day", "queries")) == [(yesterday, 6)]
    assert Turn.objects.get().usage_day is None


def test_an_ask_that_failed_after_it_left_stays_counted() -> None:
    agent = published(daily_budget=1)
    end(admitted(ask(agent)), LOST)
    assert isinstance(decide(ask(agent))[0], OverBudget)


def test_losing_the_race_gives_nothing_back() -> None:
    agent = published()
    turn = admitted(ask(agent))
    end(turn, LOST)
    end(turn, NOT_SENT)
    assert agent.spent == 1


def test_a_retried_batch_whose_commit_did_happen_counts_once_and_leaves_nothing_open() -> None:
    agent = published()
    work = [Admit(ask(agent)), Admit(ask(agent))]
    commit(work, home=HOME)
    results = commit(work, home=HOME, is_retry=True).results
    assert [type(result) for result in results] == [Unavailable, Unavailable]
    assert [row.reason for row in agent.turns] == ["not_delivered"] * 2
    assert agent.spent == 0


def test_a_retried_batch_that_was_rolled_back_is_done_as_if_new() -> None:
    agent = published()
    (turn,) = commit([Admit(ask(agent))], home=HOME, is_retry=True).results
    assert turn is not None
    assert not isinstance(turn, Exception)
    assert agent.spent == 1


def test_refusals_beyond_twenty_a_minute_share_the_last_row() -> None:
    agent = published(online=False)
    decide(*(ask(agent) for _ in range(15)))
    decide(*(ask(agent) for _ in range(15)))
    decide(*(ask(agent) for _ in range(3)))
    rows = agent.turns
    assert len(rows) == 20
    assert [row.repeats for row in rows[:19]] == [1] * 19
    assert rows[19].repeats == 14
    assert sum(row.repeats for row in rows) == 33


def test_each_caller_agent_and_reason_has_its_own_twenty() -> None:
    agent = published(online=False)
    decide(*(ask(agent, "alice") for _ in range(25)), *(ask(agent, "bob") for _ in range(25)))
    commit([Deny(ask(agent, "alice"), RateLimited(9)) for _ in range(25)], home=HOME)
    assert len(agent.turns) == 60


def test_a_refusal_of_the_rate_limit_is_audited_like_the_others() -> None:
    agent = published()
    commit([Deny(ask(agent), RateLimited(9))], home=HOME)
    (row,) = agent.turns
    assert (row.outcome, row.reason, row.repeats) == ("denied", "rate_limited", 1)
