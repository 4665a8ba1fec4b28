"""Moving an agent to another session of its owner: between turns, with its budget and its audit."""

import pytest
from msgspec.structs import replace

from agents.core.agent_moves import NotMovable, find_destinations
from agents.core.directory import revise_agent
from agents.core.errors import MustWait, OverBudget, Unavailable
from agents.core.halt_rules import HaltSubject, halt_subject
from agents.core.presence import remove_connection
from agents.core.types import AskTarget
from agents.links.channel.driving import find_unfinished
from agents.models import Agent, Connection, Halt, Session, Turn
from agents.models.choices import Outcome, TurnFailure
from agents.models.remote import REMOTE_LINK
from agents.transcript.session_deletion import delete_sessions
from kit.clock import db_now
from tests.contracts.rows import COMPLETED, Published, admitted, ask, decide, end, live_process, published, user

pytestmark = [pytest.mark.django_db, pytest.mark.ledger]


def another_session(agent: Published, **fields: object) -> Session:
    """A connected session of the agent's owner."""
    owner = agent.agent.owner
    session = Session.objects.create(owner=owner, routing_name="laptop", **fields)
    token = owner.credentials.get()
    Connection.objects.create(session=session, process=live_process(), credential=token)
    return session


def move(agent: Published, session: Session) -> Published:
    """The agent as it is found after the move."""
    moved = revise_agent(agent.agent.pk, {}, session=session)
    assert moved is not None
    return Published(moved, AskTarget(moved.pk, moved.session_id, moved.handle))


def test_the_other_session_answers_within_the_same_budget() -> None:
    agent = published(daily_budget=2)
    end(admitted(ask(agent)))
    session = another_session(agent)
    moved = move(agent, session)
    turn = admitted(ask(moved))
    assert turn.connection_id == session.connection.pk
    end(turn)
    assert isinstance(decide(ask(moved))[0], OverBudget)
    assert [row.session_id for row in moved.turns] == [agent.ref.session_id, session.pk, session.pk]
    assert moved.agent.revised_at > agent.agent.revised_at


def test_an_ask_that_was_looked_up_before_the_move_is_not_sent() -> None:
    agent = published()
    before = ask(agent)
    move(agent, another_session(agent))
    assert isinstance(decide(before)[0], Unavailable)
    assert (agent.turns, agent.spent) == ([], 0)


def test_a_turn_that_is_open_keeps_the_agent_where_it_is() -> None:
    agent = published()
    session = another_session(agent)
    turn = admitted(ask(agent))
    with pytest.raises(NotMovable, match="a question to the agent is open"):
        move(agent, session)
    end(turn, replace(COMPLETED, outcome=Outcome.FAILED, reason=TurnFailure.CANCELED, keeps_claim=True))
    assert move(agent, session).agent.session == session
    # The old program may still be at work: the claim stays there, and so does what it may not do meanwhile.
    assert Turn.objects.holding().get().session_id == agent.ref.session_id
    assert [one.chat_id for one in find_unfinished(agent.ref.session_id)] == [turn.ask.chat_id]
    assert find_unfinished(session.pk) == []


def test_an_ask_that_waits_keeps_it_too() -> None:
    agent = published(queue_max=2)
    session = another_session(agent)
    turn = admitted(ask(agent, "bob"))
    assert isinstance(decide(replace(ask(agent), queues=True))[0], MustWait)
    end(turn)
    with pytest.raises(NotMovable, match="is open"):
        move(agent, session)


def test_only_a_free_session_of_the_same_owner_and_link_can_take_it() -> None:
    agent, other = published(), published()
    free = another_session(agent)
    archived = another_session(agent, archived_at=db_now())
    remote = another_session(agent, link=REMOTE_LINK)
    taken = another_session(agent)
    Agent.objects.create(owner=agent.agent.owner, session=taken, handle="t", handle_key="t", name="t")
    refused = {
        archived: "archived",
        remote: "remote server",
        taken: "published as @t already",
        other.agent.session: "archived",  # the surfaces say 404 before
    }
    for session, why in refused.items():
        with pytest.raises(NotMovable, match=why):
            move(agent, session)
    assert list(find_destinations(agent.agent)) == [free]
    assert move(agent, free).agent.session == free


def test_a_halted_agent_stays() -> None:
    agent = published()
    halt_subject(HaltSubject(Halt.Kind.AGENT, agent=agent.agent), by=None, by_staff=True)
    with pytest.raises(NotMovable, match="halted"):
        move(agent, another_session(agent))


def test_the_audit_outlives_the_session_that_ran_its_turns() -> None:
    agent = published()
    end(admitted(ask(agent)))
    old = Connection.objects.get(session=agent.ref.session_id)
    moved = move(agent, another_session(agent))
    end(admitted(ask(moved, "bob")))
    remove_connection(old.pk, delete_session=True)  # the program says that it will not come back
    assert not Session.objects.filter(pk=agent.ref.session_id).exists()
    assert [(row.caller, row.outcome) for row in moved.turns] == [
        (user("alice"), "completed"),
        (user("bob"), "completed"),
    ]
    delete_sessions([moved.ref.session_id])
    assert not Turn.objects.exists()
