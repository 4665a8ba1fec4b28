"""What an agent that comes back may still be working on."""

from datetime import timedelta
from typing import Any

import pytest

from agents.links.channel.agent_frames import unfinished_of
from agents.models import Turn
from agents.models.choices import Failure, Interruption
from kit.clock import db_now
from tests.contracts.rows import Published, published, user

pytestmark = pytest.mark.django_db


def ended(agent: Published, outcome: str, reason: str) -> Turn:
    """A question that ended a minute ago."""
    then = db_now() - timedelta(seconds=60)
    fields: dict[str, Any] = {
        "surface": "a2a",
        "question": "?",
        "chat_id": f"{outcome}-{reason}",
        "connection_id": 1,
    }
    return Turn.objects.create(
        agent=agent.agent,
        session_id=agent.ref.session_id,
        caller=user("alice"),
        outcome=outcome,
        reason=reason,
        asked_at=then,
        settled_at=then,
        **fields,
    )


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        ("completed", ""),
        ("completed", Interruption.INPUT_REQUIRED),
        ("failed", Failure.AGENT_FAILED),
        ("failed", Failure.REJECTED),
    ],
)
def test_what_the_agent_itself_ended_is_over(outcome: str, reason: str) -> None:
    agent = published()
    ended(agent, outcome, reason)
    assert unfinished_of(agent.ref.session_id) == []


@pytest.mark.parametrize("reason", [Failure.CANCELED, Failure.TIMEOUT, Failure.CHANNEL_LOST])
def test_what_the_hub_ended_may_go_on(reason: str) -> None:
    agent = published()
    turn = ended(agent, "failed", reason)
    assert [one.prompt.chat_id for one in unfinished_of(agent.ref.session_id)] == [turn.chat_id]
