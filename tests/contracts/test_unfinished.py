"""Prompts that an agent that comes back may still be working on."""

from datetime import timedelta
from typing import Any

import pytest

from accounts.models import User
from agents.links.channel.driving import find_unfinished
from agents.models import Event, Session, Turn
from agents.models.choices import Interruption, TurnFailure
from kit.clock import db_now
from kit.ids import time_ordered
from tests.contracts.rows import Published, published, user

pytestmark = pytest.mark.django_db


def ended(agent: Published, outcome: str | None, reason: str, *, ago_s: float = 60, **fields: Any) -> Turn:
    """A question, of alice by default, that ended a minute ago."""
    then = db_now() - timedelta(seconds=ago_s)
    given: dict[str, Any] = {
        "caller": user("alice"),
        "surface": "a2a",
        "question": "?",
        "chat_id": time_ordered(),
        "connection_id": 1,
        "settled_at": then,
    }
    return Turn.objects.create(
        agent=agent.agent,
        session_id=agent.ref.session_id,
        outcome=outcome,
        reason=reason,
        asked_at=then,
        **(given | fields),
    )


def still_open(agent: Published, **fields: Any) -> Turn:
    """A question that was asked a minute ago."""
    lease = db_now() + timedelta(seconds=60)
    return ended(agent, None, "", settled_at=None, claim_until=lease, **fields)


def test_what_the_agent_itself_ended_is_over() -> None:
    for outcome, reason in [
        ("completed", ""),
        ("completed", Interruption.INPUT_REQUIRED),
        ("failed", TurnFailure.AGENT_FAILED),
        ("failed", TurnFailure.REJECTED),
    ]:
        agent = published()
        ended(agent, outcome, reason)
        assert find_unfinished(agent.ref.session_id) == [], (outcome, reason)


def test_what_the_hub_ended_may_go_on() -> None:
    for reason in [TurnFailure.CANCELED, TurnFailure.TIMEOUT, TurnFailure.CHANNEL_LOST]:
        agent = published()
        turn = ended(agent, "failed", reason)
        assert [one.chat_id for one in find_unfinished(agent.ref.session_id)] == [turn.chat_id], reason


def session_of(owner: User) -> Session:
    return Session.objects.create(owner=owner, routing_name="asker")


def test_what_goes_on_isolates_for_strangers_and_not_for_its_owner() -> None:
    for make in [still_open, lambda agent, **of: ended(agent, "failed", "process_died", **of)]:
        for isolated in [True, False]:
            agent = published(isolated=isolated)
            owner, alice = agent.agent.owner, user("alice")
            asked: list[tuple[Turn, bool, bool]] = [
                (make(agent, caller=owner), False, True),
                (make(agent, caller=owner, depth=1, source_session=session_of(owner)), False, True),
                (make(agent, caller=owner, depth=2, source_session=session_of(owner)), False, True),
                (make(agent, caller=alice), isolated, False),
                (make(agent, caller=alice, depth=1, source_session=session_of(owner)), True, False),
                # Passed on for the owner by an agent of alice, or by an agent that was deleted.
                (make(agent, caller=owner, depth=1, source_session=session_of(alice)), True, False),
                (make(agent, caller=owner, depth=1), True, False),
            ]
            found = {one.chat_id: one for one in find_unfinished(agent.ref.session_id)}
            for turn, isolates, is_own in asked:
                prompt = found[turn.chat_id]
                assert (prompt.isolated, prompt.is_own) == (isolates, is_own), isolated


def test_an_answer_is_the_end_of_a_turn_at_once() -> None:
    agent = published()
    for caller in (user("alice"), agent.agent.owner):
        ended(agent, "completed", "", ago_s=0, caller=caller)
    assert find_unfinished(agent.ref.session_id) == []


def test_where_ends_of_turns_are_reported_a_stranger_may_be_worked_for_after_the_answer() -> None:
    agent = published()
    stop = {"kind": "tail", "type": "Stop", "payload": "{}"}
    Event.objects.create(session_id=agent.ref.session_id, ts=db_now() - timedelta(seconds=30), **stop)
    ended(agent, "completed", "", ago_s=40)
    ended(agent, "completed", "", ago_s=20, caller=agent.agent.owner)
    answered = ended(agent, "completed", "", ago_s=20)
    (found,) = find_unfinished(agent.ref.session_id)
    assert (found.chat_id, found.isolated) == (answered.chat_id, True)
