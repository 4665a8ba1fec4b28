"""The rules, asked in their order, and what each leaves in the tables."""

from datetime import timedelta

import pytest
from django.utils import timezone
from msgspec.structs import replace

from agents.core.admission import SESSION_CAP
from agents.core.errors import Busy, NotPublished, Offline, OverBudget, OverCap
from agents.core.ledger.batch import commit
from agents.core.ledger.work import Admit, Settle
from agents.core.types import AskTarget, OpenTurn, TurnEnding
from agents.models import Agent, Process, Turn
from agents.models.choices import Outcome, Surface, TurnFailure
from tests.contracts.rows import COMPLETED, admitted, ask, decide, end, live_process, published, release, user

pytestmark = [pytest.mark.django_db, pytest.mark.ledger]

TIMEOUT = TurnEnding(outcome=Outcome.FAILED, reason=TurnFailure.TIMEOUT, keeps_claim=True)


def test_an_admitted_ask_is_open_counted_and_holds_its_session() -> None:
    agent = published()
    turn = admitted(ask(agent))
    (row,) = agent.turns
    assert (row.chat_id, row.outcome, row.released_at) == (turn.ask.chat_id, None, None)
    assert row.claim_until is not None
    assert row.claim_until > timezone.now() + timedelta(seconds=100)
    assert agent.spent == 1


def test_an_agent_unpublished_after_the_lookup_is_not_asked_and_leaves_no_row() -> None:
    agent = published()
    Agent.objects.filter(pk=agent.agent.pk).update(status="draft")
    assert isinstance(decide(ask(agent))[0], NotPublished)
    assert agent.turns == []


def test_an_agent_of_a_suspended_owner_is_not_asked() -> None:
    agent = published()
    owner = agent.agent.owner
    owner.is_active = False
    owner.save()
    assert isinstance(decide(ask(agent))[0], NotPublished)


def test_each_refusal_is_one_denied_row_that_spends_and_holds_nothing() -> None:
    for refused, reason in [
        (Offline, "offline"),
        (Busy, "busy"),
        (OverCap, "concurrency"),
        (OverBudget, "budget_exhausted"),
    ]:
        agent = published(online=refused is not Offline, concurrency_cap=1, daily_budget=1)
        spent = 0
        if refused in (Busy, OverCap):
            admitted(ask(agent, "bob" if refused is Busy else "alice"))
            spent = 1
        elif refused is OverBudget:
            end(admitted(ask(agent)))
            spent = 1
        assert isinstance(decide(ask(agent))[0], refused), (refused, reason)
        row = agent.turns[-1]
        assert (row.outcome, row.reason, row.usage_day, row.repeats) == ("denied", reason, None, 1), (
            refused,
            reason,
        )
        assert row.released_at is not None, (refused, reason)
        assert agent.spent == spent, (refused, reason)


def test_the_first_rule_that_refuses_answers() -> None:
    agent = published(concurrency_cap=1, daily_budget=1)
    admitted(ask(agent, "bob"))
    assert isinstance(decide(ask(agent, "alice"))[0], Busy)  # over budget too, but asked after the claim
    assert isinstance(decide(ask(agent, "bob"))[0], OverCap)
    Process.objects.all().delete()
    assert isinstance(decide(ask(agent, "alice"))[0], Offline)


def test_a_connection_of_a_process_that_stopped_beating_is_offline() -> None:
    agent = published()
    Process.objects.update(beat_at=timezone.now() - timedelta(seconds=21))
    assert isinstance(decide(ask(agent))[0], Offline)
    Process.objects.update(beat_at=timezone.now())
    admitted(ask(agent))


def test_one_caller_holds_up_to_the_cap_and_no_other_user_any() -> None:
    agent = published(concurrency_cap=2)
    results = decide(ask(agent), ask(agent), ask(agent), ask(agent, "bob"))
    assert [type(result) for result in results] == [OpenTurn, OpenTurn, OverCap, Busy]
    assert isinstance(results[2], OverCap)
    assert results[2].held == 2


def test_the_cap_of_a_session_does_not_hold_for_messages_of_its_owner() -> None:
    for is_message in [True, False]:
        agent = published()
        target = AskTarget(None, agent.ref.session_id, agent.ref.handle)
        fields = {"surface": Surface.GATEWAY, "credential_id": 7} if is_message else {}
        asks = [
            replace(ask(agent, agent.agent.owner.login), target=target, **fields) for _ in range(SESSION_CAP + 1)
        ]
        assert [type(one) for one in decide(*asks)] == [OpenTurn] * SESSION_CAP + [
            OpenTurn if is_message else OverCap
        ], is_message


def test_the_cap_that_an_owner_set_for_an_agent_holds_for_messages_too() -> None:
    agent = published(concurrency_cap=1)
    message = replace(ask(agent, agent.agent.owner.login), surface=Surface.GATEWAY, credential_id=7)
    assert [type(one) for one in decide(message, replace(message, chat_id="another"))] == [OpenTurn, OverCap]


def test_a_budget_ends_inside_a_batch_to_the_unit() -> None:
    agent = published(daily_budget=3, concurrency_cap=20)
    results = decide(*(ask(agent) for _ in range(5)))
    assert [type(result) for result in results] == [OpenTurn] * 3 + [OverBudget] * 2
    assert agent.spent == 3


def test_a_claim_freed_in_a_batch_is_free_for_the_asks_of_the_same_batch() -> None:
    agent = published()
    turn = admitted(ask(agent))
    _, second = commit([Admit(ask(agent, "bob")), Settle(turn, COMPLETED)][::-1], home="home-process").results
    assert isinstance(second, OpenTurn)


def test_a_timed_out_turn_keeps_its_claim_until_the_agent_finishes() -> None:
    agent = published()
    turn = admitted(ask(agent))
    end(turn, TIMEOUT)
    assert isinstance(decide(ask(agent, "bob"))[0], Busy)
    release(chat_id=turn.ask.chat_id)
    admitted(ask(agent, "bob"))


def test_a_lingering_claim_counts_against_its_own_callers_cap() -> None:
    agent = published(concurrency_cap=1)
    end(admitted(ask(agent)), TIMEOUT)
    assert isinstance(decide(ask(agent))[0], OverCap)


def test_a_stop_frees_every_lingering_claim_but_no_open_turn() -> None:
    agent = published()
    end(admitted(ask(agent)), TIMEOUT)
    still_open = admitted(ask(agent))
    release(session_id=agent.ref.session_id)
    assert isinstance(decide(ask(agent, "bob"))[0], Busy)
    end(still_open)
    admitted(ask(agent, "bob"))


def test_a_claim_runs_out_by_itself() -> None:
    agent = published()
    end(admitted(ask(agent)), TIMEOUT)
    Turn.objects.update(claim_until=timezone.now() - timedelta(seconds=1))
    admitted(ask(agent, "bob"))


def test_turns_of_a_deleted_caller_hold_the_session_still() -> None:
    agent = published()
    admitted(ask(agent, "carol"))
    user("carol").delete()
    assert isinstance(decide(ask(agent, "bob"))[0], Busy)


def test_claims_of_one_agent_hold_no_other() -> None:
    busy, free = published(), published()
    admitted(ask(busy, "bob"))
    assert [type(result) for result in decide(ask(busy), ask(free))] == [Busy, OpenTurn]


def test_a_process_that_beats_again_is_known_again() -> None:
    agent = published()
    Process.objects.update(beat_at=timezone.now() - timedelta(seconds=60))
    live_process()
    Process.objects.update(beat_at=timezone.now())
    admitted(ask(agent))
