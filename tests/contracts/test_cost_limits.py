"""Limits of the cost of a day: asks are refused before they are sent, once ended ones have cost as much."""

from datetime import timedelta

import pytest
from django.db import connection

from agents.core.directory import find_caller_spending
from agents.core.errors import Denied, OverBudget, OverCallerCostLimit, OverCostLimit
from agents.core.types import OpenTurn, TurnEnding
from agents.models import CallerBudget, DailyUsage
from agents.models.choices import Outcome
from agents.transcript.pieces import Usage
from tests.contracts.rows import Published, admitted, ask, decide, end, published, user

pytestmark = [pytest.mark.django_db, pytest.mark.ledger]

CENT = 10_000


def answered(cents: int) -> TurnEnding:
    return TurnEnding(outcome=Outcome.COMPLETED, text="so", latency_ms=5, usage=Usage(cost_microusd=cents * CENT))


def refusal(agent: Published, caller: str = "alice") -> type[Denied] | None:
    """The reason for refusing one more ask; None: the ask is admitted, and open."""
    (result,) = decide(ask(agent, caller))
    return type(result) if isinstance(result, Denied) else None


def test_the_next_ask_is_refused_once_the_day_cost_its_limit() -> None:
    agent = published(daily_limit_microusd=10 * CENT, concurrency_cap=20)
    end(admitted(ask(agent)), answered(9))
    end(admitted(ask(agent)), answered(1))
    assert refusal(agent) is OverCostLimit
    assert refusal(agent, "bob") is OverCostLimit
    assert [turn.reason for turn in agent.turns if turn.outcome == "denied"] == ["cost_limit_reached"] * 2
    assert agent.spent == 2


def test_asks_that_are_answered_at_once_exceed_it_by_what_they_cost() -> None:
    """No cost is known before the answer: both are admitted while the sum is below."""
    agent = published(daily_limit_microusd=10 * CENT, concurrency_cap=20)
    first, second = admitted(ask(agent)), admitted(ask(agent))
    end(first, answered(30))
    assert refusal(agent) is OverCostLimit
    end(second, answered(30))
    assert DailyUsage.objects.get().cost_microusd == 60 * CENT


@pytest.mark.parametrize(("limit", "admits"), [(0, False), (1, True)])
def test_asks_without_a_reported_cost_cost_nothing(limit: int, admits: bool) -> None:
    agent = published(daily_limit_microusd=limit, concurrency_cap=20)
    results = decide(*(ask(agent) for _ in range(3)))
    assert all(isinstance(result, OpenTurn if admits else OverCostLimit) for result in results)


def test_one_caller_reaches_their_own_limit_and_no_other() -> None:
    agent = published(caller_limit_microusd=5 * CENT, concurrency_cap=20)
    end(admitted(ask(agent)), answered(5))
    assert refusal(agent) is OverCallerCostLimit
    end(admitted(ask(agent, "bob")), answered(4))
    spending = find_caller_spending(agent.agent, user("bob").pk)
    assert spending is not None
    assert (spending.cost_microusd, spending.has_reached_cost_limit) == (4 * CENT, False)
    assert refusal(agent, "bob") is None


def test_a_named_callers_questions_are_limited_in_cost_too() -> None:
    agent = published(caller_limit_microusd=5 * CENT, concurrency_cap=20)
    CallerBudget.objects.create(agent=agent.agent, caller=user("alice"), daily_budget=9)
    end(admitted(ask(agent)), answered(5))
    assert refusal(agent) is OverCallerCostLimit


def test_the_number_of_questions_is_checked_first() -> None:
    agent = published(daily_budget=1, daily_limit_microusd=CENT)
    end(admitted(ask(agent)), answered(1))
    assert refusal(agent) is OverBudget


@pytest.mark.parametrize("limit", ["daily_limit_microusd", "caller_limit_microusd"])
def test_another_day_begins_without_a_cost(limit: str) -> None:
    agent = published(**{limit: CENT}, concurrency_cap=20)
    end(admitted(ask(agent)), answered(1))
    assert refusal(agent) is not None
    for row in (*DailyUsage.objects.all(), *CallerBudget.objects.all()):
        type(row).objects.update(day=row.day - timedelta(days=1))  # type: ignore[attr-defined]
    turn = admitted(ask(agent))
    if limit == "caller_limit_microusd":
        assert CallerBudget.objects.get().cost_microusd == 0
    end(turn, answered(1))
    assert refusal(agent) is not None


def test_without_limits_nothing_more_is_read() -> None:
    """The limits and the sum are columns of the one query that reads the agent."""
    if connection.vendor == "postgresql":
        pytest.skip("traced by SQLite's own callback")
    agent = published()
    one = ask(agent)
    captured: list[str] = []
    connection.connection.set_trace_callback(captured.append)
    admitted(one)
    connection.connection.set_trace_callback(None)
    assert len([text for text in captured if "cost_microusd" in text or "limit_microusd" in text]) == 1
