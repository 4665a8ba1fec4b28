"""Asks that wait for a free agent: who is next, how many wait, and what is left of those who wait no more."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from msgspec.structs import replace

from a2a_bridge.service.tasks.reader import end_of_turn
from accounts.models import User
from agents.core.errors import (
    AlreadyAsked,
    Busy,
    MustWait,
    NotPublished,
    Offline,
    OverBudget,
    OverCap,
    WaitAbandoned,
)
from agents.core.ledger.batch import commit
from agents.core.ledger.work import Admit, Deny, Result, Withdraw
from agents.core.types import Ask, OpenTurn
from agents.jobs import reap
from agents.models import Agent, Connection, Process, QueuedAsk, Turn
from kit.clock import db_now
from tests.contracts.rows import HOME, Published, admitted, ask, decide, end, live_process, published

pytestmark = [pytest.mark.django_db, pytest.mark.ledger]


def queueing(**fields: object) -> Published:
    return published(**{"queue_max": 3, "queue_wait_s": 60} | fields)


def queued(agent: Published, caller: str = "bob", **members: object) -> Ask:
    return replace(ask(agent, caller), queues=True, **members)


def again(*asks: Ask) -> list[Result]:
    """Decide again about asks that wait; the results."""
    return list(commit([Admit(one, in_queue=True) for one in asks], home=HOME).results)


def waits(one: Ask) -> Ask:
    (result,) = decide(one)
    assert isinstance(result, MustWait), result
    assert result.is_new
    return one


def positions() -> list[str]:
    return list(QueuedAsk.objects.order_by("pk").values_list("chat_id", flat=True))


def test_an_ask_waits_until_the_agent_is_free_and_spends_nothing_before() -> None:
    agent = queueing()
    first = admitted(ask(agent, "alice"))
    one = waits(queued(agent))
    (still,) = again(one)
    assert isinstance(still, MustWait)
    assert (still.is_new, still.wait_s, type(still.refusal)) == (False, 60, Busy)
    assert (positions(), agent.spent, len(agent.turns)) == ([one.chat_id], 1, 1)
    end(first)
    (turn,) = again(one)
    assert isinstance(turn, OpenTurn)
    assert (positions(), agent.spent) == ([], 2)


def test_they_go_in_their_order_and_no_new_ask_passes_them() -> None:
    agent = queueing()
    first = admitted(ask(agent, "alice"))
    bob, carol = waits(queued(agent, "bob")), waits(queued(agent, "carol"))
    end(first)
    alice = waits(queued(agent, "alice"))  # the agent is free, but others were there before
    carols, bobs, alices = again(carol, bob, alice)
    assert isinstance(bobs, OpenTurn)
    assert isinstance(carols, MustWait)
    assert isinstance(alices, MustWait)
    end(bobs)
    (turn,) = again(carol)
    assert isinstance(turn, OpenTurn)
    assert positions() == [alice.chat_id]


def test_a_caller_takes_as_many_of_its_places_at_once_as_it_may_have_turns() -> None:
    agent = queueing(concurrency_cap=2)
    first = admitted(ask(agent, "alice"))
    one, two = waits(queued(agent)), waits(queued(agent))
    assert isinstance(decide(queued(agent))[0], Busy)  # a third of one caller
    end(first)
    assert all(isinstance(result, OpenTurn) for result in again(one, two))
    third = waits(queued(agent))
    (still,) = again(third)
    assert isinstance(still, MustWait)
    assert isinstance(still.refusal, OverCap)


def test_a_full_line_refuses_and_audits_and_a_line_of_none_does_not_wait() -> None:
    agent = queueing(queue_max=1)
    admitted(ask(agent, "alice"))
    waits(queued(agent, "bob"))
    assert isinstance(decide(queued(agent, "carol"))[0], Busy)
    assert [(row.outcome, row.reason) for row in agent.turns[1:]] == [("denied", "busy")]
    other = published()
    admitted(ask(other, "alice"))
    assert isinstance(decide(queued(other, "bob"))[0], Busy)


def test_an_ask_that_does_not_queue_is_decided_at_once_and_passes_no_other() -> None:
    agent = queueing()
    first = admitted(ask(agent, "alice"))
    bob = waits(queued(agent, "bob"))
    assert isinstance(decide(ask(agent, "carol"))[0], Busy)
    end(first)
    assert isinstance(decide(ask(agent, "carol"))[0], Busy)
    (turn,) = again(bob)
    assert isinstance(turn, OpenTurn)
    end(turn)
    assert isinstance(decide(ask(agent, "carol"))[0], OpenTurn)


def test_an_answer_to_a_task_that_asks_passes_those_that_wait() -> None:
    agent = queueing()
    first = admitted(ask(agent, "alice"))
    waits(queued(agent, "bob"))
    end(first)
    assert isinstance(decide(replace(ask(agent, "alice"), continues_task=True))[0], OpenTurn)


def test_an_ask_that_waiting_cannot_help_is_refused_at_once() -> None:
    assert isinstance(decide(queued(queueing(online=False)))[0], Offline)
    spent = queueing(daily_budget=1)
    admitted(ask(spent, "alice"))
    assert isinstance(decide(queued(spent))[0], OverBudget)
    assert positions() == []


def test_who_is_suspended_while_they_wait_is_not_let_through() -> None:
    agent = queueing()
    first = admitted(ask(agent, "alice"))
    one = waits(queued(agent, "bob"))
    end(first)
    User.objects.filter(login="bob").update(is_active=False)
    assert isinstance(again(one)[0], WaitAbandoned)
    assert positions() == []


def test_an_ask_at_the_end_of_its_time_is_refused_by_its_process_alone() -> None:
    """The wait ends there, with the refusal; admission does not end it a moment before, with another."""
    agent = queueing(queue_wait_s=0)
    admitted(ask(agent, "alice"))
    one = waits(queued(agent))
    (still,) = again(one)
    assert isinstance(still, MustWait)
    assert isinstance(still.refusal, Busy)


def test_a_place_outlives_a_reconnect_but_not_the_agent() -> None:
    agent = queueing()
    admitted(ask(agent, "alice"))
    one = waits(queued(agent))
    Connection.objects.all().delete()
    (still,) = again(one)
    assert isinstance(still, MustWait)
    assert isinstance(still.refusal, Offline)
    Agent.objects.filter(pk=agent.agent.pk).update(status="draft")
    assert isinstance(again(one)[0], NotPublished)
    assert positions() == []


def test_who_gives_up_is_audited_and_the_next_moves_up() -> None:
    agent = queueing()
    first = admitted(ask(agent, "alice"))
    bob, carol, dave = (waits(queued(agent, name)) for name in ("bob", "carol", "dave"))
    commit([Deny(bob, WaitAbandoned(), in_queue=True), Withdraw(dave)], home=HOME)
    assert positions() == [carol.chat_id]
    assert [(row.caller.login, row.reason) for row in agent.turns[1:] if row.caller] == [("bob", "gave_up")]
    end(first)
    assert isinstance(again(carol)[0], OpenTurn)


def test_places_of_the_dead_and_of_those_whose_time_is_over_do_not_count() -> None:
    agent = queueing(queue_max=1)
    first = admitted(ask(agent, "alice"))
    live_process("other")
    lost = queued(agent, "bob", task_id="t")
    commit([Admit(lost)], home="other")
    Process.objects.filter(pk="other").update(beat_at=db_now() - timedelta(seconds=21))
    carol = waits(queued(agent, "carol"))
    QueuedAsk.objects.filter(chat_id=carol.chat_id).update(waits_until=db_now() - timedelta(seconds=1))
    dave = waits(queued(agent, "dave"))
    assert isinstance(again(carol)[0], WaitAbandoned)
    with CaptureQueriesContext(connection) as queries:
        reap()
    reap()
    order = [one["sql"][:18] for one in queries if "queuedask" in one["sql"] or "INSERT" in one["sql"]]
    assert order[1].startswith("DELETE FROM")  # a ledger deletes the place first too: neither waits for the other
    assert "INSERT" in order[2]
    row = Turn.objects.get(chat_id=lost.chat_id)
    assert (row.outcome, row.reason, row.agent, row.task_id) == ("failed", "process_died", agent.agent, "t")
    assert (row.question, row.usage_day, agent.spent) == ("what?", None, 1)
    assert positions() == [dave.chat_id]
    end(first)
    assert isinstance(again(dave)[0], OpenTurn)


def test_a_task_whose_ask_becomes_its_turn_just_then_has_not_ended() -> None:
    agent = queueing()
    first = admitted(ask(agent, "alice"))
    one = waits(queued(agent))
    end(first)
    begun: list[Result] = []

    def begin_after_the_first(execute: Callable[..., object], *query: object) -> object:
        found = execute(*query)
        if not begun:
            begun.append(None)
            begun[:] = again(one)
        return found

    with connection.execute_wrapper(begin_after_the_first):
        assert end_of_turn(one.chat_id) is None
    assert isinstance(begun[0], OpenTurn)


def test_a_task_whose_time_is_over_has_not_ended_before_its_process_says_so() -> None:
    agent = queueing()
    admitted(ask(agent, "alice"))
    one = waits(queued(agent))
    QueuedAsk.objects.update(waits_until=db_now() - timedelta(seconds=1))
    assert end_of_turn(one.chat_id) is None


def test_an_identical_message_joins_one_that_waits() -> None:
    agent = queueing()
    admitted(ask(agent, "alice"))
    one = waits(queued(agent, message_key="k", task_id="t"))
    (same,) = decide(queued(agent, message_key="k", task_id="other"))
    assert isinstance(same, AlreadyAsked)
    assert (same.chat_id, same.task_id, same.home) == (one.chat_id, "t", HOME)
    assert isinstance(again(one)[0], MustWait)


@pytest.mark.parametrize("is_free", [True, False])
def test_of_identical_messages_in_one_batch_the_second_joins_the_first(*, is_free: bool) -> None:
    agent = queueing()
    if not is_free:
        admitted(ask(agent, "alice"))
    one, two = (queued(agent, message_key="k", task_id=task_id) for task_id in ("t", "other"))
    first, same = decide(one, two)
    assert isinstance(first, OpenTurn if is_free else MustWait)
    assert isinstance(same, AlreadyAsked)
    assert (same.chat_id, same.task_id, same.home) == (one.chat_id, "t", HOME)


def test_a_message_identical_to_one_that_was_refused_is_refused_too() -> None:
    agent = queueing(daily_budget=0)
    results = decide(*(queued(agent, message_key="k") for _ in range(2)))
    assert [type(result) for result in results] == [OverBudget] * 2


def test_a_retried_batch_keeps_places_and_makes_no_second() -> None:
    agent = queueing()
    admitted(ask(agent, "alice"))
    one = waits(queued(agent))
    two = queued(agent, "carol")
    waits(two)
    results = commit([Admit(one, in_queue=True), Admit(two)], home=HOME, is_retry=True).results
    assert [isinstance(result, MustWait) for result in results] == [True, True]
    assert positions() == [one.chat_id, two.chat_id]


@pytest.mark.parametrize("is_free", [True, False])
def test_a_retried_ask_that_is_decided_leaves_no_place(is_free: bool) -> None:
    """The commit that wrote its place happened, and the answer to it was lost."""
    agent = queueing(daily_budget=2)
    first = admitted(ask(agent, "alice"))
    one = waits(queued(agent, message_key="k"))
    if is_free:
        end(first)
    else:
        Agent.objects.filter(pk=agent.agent.pk).update(daily_budget=1)
    (result,) = commit([Admit(one)], home=HOME, is_retry=True).results
    assert isinstance(result, OpenTurn if is_free else OverBudget)
    assert positions() == []


def test_lines_are_of_one_agent_each() -> None:
    busy, free = queueing(), queueing()
    admitted(ask(busy, "alice"))
    waits(queued(busy))
    assert isinstance(decide(queued(free))[0], OpenTurn)
    assert Turn.objects.filter(outcome=None).count() == 2
