"""The part of an agent's day that one caller may spend: decided with the rest, counted once, given back."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.core.directory import find_caller_spending, load_caller_budgets, revise_agent
from agents.core.errors import OverBudget, OverCallerBudget
from agents.core.ledger.work import Result
from agents.core.types import Ask, OpenTurn, TurnEnding
from agents.models import CallerBudget
from agents.models.choices import Outcome, TurnFailure
from tests.contracts.rows import Published, admitted, ask, decide, end, published, user

pytestmark = pytest.mark.django_db

UNSENT = TurnEnding(outcome=Outcome.FAILED, reason=TurnFailure.NOT_DELIVERED, returns_budget=True)


def read_budget_left(agent: Published, login: str = "alice") -> int | None:
    spending = find_caller_spending(agent.agent, user(login).pk)
    return spending.left if spending else None


def set_budget(agent: Published, login: str, budget: int | None) -> None:
    CallerBudget.objects.update_or_create(agent=agent.agent, caller=user(login), defaults={"daily_budget": budget})


@pytest.mark.ledger
def test_a_caller_spends_their_own_budget_to_the_unit_and_no_others() -> None:
    agent = published(caller_budget=2, concurrency_cap=20)
    results = decide(*(ask(agent) for _ in range(4)))
    assert [type(result) for result in results] == [OpenTurn] * 2 + [OverCallerBudget] * 2
    for turn in results:
        if isinstance(turn, OpenTurn):
            end(turn)
    assert isinstance(decide(ask(agent))[0], OverCallerBudget)
    admitted(ask(agent, "bob"))
    assert (read_budget_left(agent), read_budget_left(agent, "bob"), agent.spent) == (0, 1, 3)
    assert [turn.reason for turn in agent.turns if turn.outcome == "denied"] == ["caller_budget_spent"] * 3


@pytest.mark.django_db(transaction=True)
@pytest.mark.ledger
def test_of_twenty_who_race_for_the_last_unit_one_wins() -> None:
    agent = published(caller_budget=1, concurrency_cap=20)
    asks = [ask(agent) for _ in range(20)]

    def race(one: Ask) -> Result:
        try:
            return decide(one)[0]
        finally:
            connection.close()

    at_once = 10 if connection.vendor == "postgresql" else 1  # SQLite has one writer, the ledger's thread
    with ThreadPoolExecutor(at_once) as threads:
        results = list(threads.map(race, asks))
    assert Counter(type(result) for result in results) == {OpenTurn: 1, OverCallerBudget: 19}
    assert (read_budget_left(agent), agent.spent) == (0, 1)


def test_a_named_callers_budget_stands_before_that_of_each() -> None:
    for default, own, admits in [(1, 3, 3), (3, 0, 0), (None, 1, 1), (1, None, 1)]:
        agent = published(caller_budget=default, concurrency_cap=20)
        set_budget(agent, "alice", own)
        results = decide(*(ask(agent) for _ in range(4)))
        assert [type(result) for result in results] == [OpenTurn] * admits + [OverCallerBudget] * (4 - admits), (
            default,
            own,
            admits,
        )


def test_the_agents_budget_is_asked_first() -> None:
    agent = published(caller_budget=1, daily_budget=1)
    end(admitted(ask(agent)))
    assert isinstance(decide(ask(agent))[0], OverBudget)


@pytest.mark.ledger
def test_what_never_left_is_given_back_to_the_caller_too() -> None:
    agent = published(caller_budget=1)
    end(admitted(ask(agent)), UNSENT)
    assert (read_budget_left(agent), agent.spent) == (1, 0)
    admitted(ask(agent))


@pytest.mark.ledger
def test_another_day_begins_with_the_whole_budget() -> None:
    agent = published(caller_budget=1)
    end(admitted(ask(agent)))
    row = CallerBudget.objects.get()
    CallerBudget.objects.update(day=row.day - timedelta(days=1), queries=1)
    assert read_budget_left(agent) == 1
    end(admitted(ask(agent)))
    row.refresh_from_db()
    assert row.queries == 1


@pytest.mark.ledger
def test_budgets_are_set_under_the_lock_under_which_they_are_counted() -> None:
    agent = published()
    set_budget(agent, "alice", 3)
    with CaptureQueriesContext(connection) as captured:
        revise_agent(agent.agent.pk, {}, budgets={user("bob"): 2})
    touched = [
        table
        for query in captured
        for table in ("agents_session", "agents_agent", "agents_callerbudget")
        if f'FROM "{table}"' in query["sql"].partition("WHERE")[0] or f'"{table}" ' in query["sql"][:40]
    ]
    assert touched[:2] == ["agents_session", "agents_agent"]
    if connection.vendor == "postgresql":
        assert "FOR NO KEY UPDATE" in next(one["sql"] for one in captured if "agents_session" in one["sql"])
    assert load_caller_budgets([agent.agent.pk]) == {agent.agent.pk: {"bob": 2}}


def test_without_such_budgets_nothing_is_counted() -> None:
    agent = published()
    one = ask(agent)
    captured: list[str] = []
    connection.connection.set_trace_callback(captured.append)
    admitted(one)
    connection.connection.set_trace_callback(None)
    own = [text for text in captured if "agents_callerbudget" in text]
    assert len(own) == 1  # the part of the one query that reads the agent
    assert "FROM agents_agent" in own[0]
    assert read_budget_left(agent) is None
    assert not CallerBudget.objects.exists()
