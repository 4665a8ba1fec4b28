"""Files that questions and replies name are handed on, and nothing else is."""

import pytest
from django.db import connection
from msgspec.structs import replace

from agents.core.errors import FileGone
from agents.core.types import AskSource, SettledTurn, TurnEnding
from agents.models import File, Session
from agents.models.choices import Outcome
from agents.transcript import files
from agents.transcript.mentions import MAX_FILES
from tests.contracts.rows import Published, admitted, ask, decide, end, published, user

pytestmark = [pytest.mark.django_db, pytest.mark.ledger]


def stored(session: Session, data: bytes = b"bytes") -> File:
    return files.store(session, session.owner, files.Upload(filename="plan.txt", mime="text/plain", data=data))


def desk(login: str) -> Session:
    return Session.objects.create(owner=user(login), routing_name="here")


def answer(agent: Published, here: Session, text: str) -> str:
    """The text that the asking session reads when the agent answers that."""
    turn = admitted(replace(ask(agent, here.owner.login), source=AskSource(here.pk, mirrors=True)))
    settled = end(turn, TurnEnding(outcome=Outcome.COMPLETED, text=text, latency_ms=1))
    assert isinstance(settled, SettledTurn)
    return settled.text


def test_a_file_in_a_question_gets_a_row_of_its_own_where_it_is_asked() -> None:
    agent, mine = published(), stored(desk("alice"))
    asked = replace(ask(agent), question=f"read fileId={mine.pk}, please", files=(mine.pk,))
    turn = admitted(asked)
    copy = File.objects.get(session_id=agent.ref.session_id)
    assert turn.text == f"read fileId={copy.pk}, please"
    assert agent.turns[0].question == turn.text
    assert copy.sha256 == mine.sha256
    assert copy.pk != mine.pk


def test_a_file_its_caller_cannot_read_stops_the_ask_before_it_spends() -> None:
    agent, theirs = published(daily_budget=1), stored(desk("bob"))
    stolen = replace(ask(agent), question=f"fileId={theirs.pk}", files=(theirs.pk,))
    assert isinstance(decide(stolen)[0], FileGone)
    assert (agent.spent, agent.turns, File.objects.count()) == (0, [], 1)
    admitted(ask(agent))


def test_a_file_in_a_reply_comes_back_to_where_it_was_asked() -> None:
    agent, here = published(), desk("alice")
    made = stored(agent.agent.session)
    text = answer(agent, here, f"done: fileId={made.pk}")
    copy = File.objects.get(session=here)
    assert text == f"done: fileId={copy.pk}"


def test_an_agent_cannot_hand_out_files_of_its_owners_other_sessions() -> None:
    agent, here = published(), desk("alice")
    secret = stored(Session.objects.create(owner=agent.agent.owner, routing_name="vault"))
    assert answer(agent, here, f"look: fileId={secret.pk}") == f"look: fileId={secret.pk}"
    assert not File.objects.filter(session=here).exists()


def test_an_agent_that_repeats_what_it_is_asked_hands_over_to_no_one_another_callers_file() -> None:
    agent, secret = published(), stored(desk("alice"))
    turn = admitted(replace(ask(agent), question=f"read fileId={secret.pk}", files=(secret.pk,)))
    end(turn)
    copy = File.objects.get(session_id=agent.ref.session_id)
    here = desk("bob")
    assert answer(agent, here, f"you said: fileId={copy.pk}") == f"you said: fileId={copy.pk}"
    assert not File.objects.filter(session=here).exists()
    mine = Session.objects.get(owner=user("alice"))
    assert answer(agent, mine, f"you said: fileId={copy.pk}") != f"you said: fileId={copy.pk}"


def test_a_reply_that_names_more_files_than_are_handed_back_still_ends_its_turn() -> None:
    agent, here = published(), desk("alice")
    made = [stored(agent.agent.session, b"%d" % number) for number in range(MAX_FILES + 1)]
    text = answer(agent, here, " ".join(f"fileId={file.pk}" for file in made))
    assert File.objects.filter(session=here).count() == MAX_FILES
    assert text.endswith(f"fileId={made[-1].pk}")


@pytest.mark.parametrize("text", ["so", "done: fileId={}"])
def test_a_reply_ends_its_turn_although_the_session_that_asked_is_gone(text: str) -> None:
    agent, here = published(), desk("alice")
    made = stored(agent.agent.session)
    turn = admitted(replace(ask(agent), source=AskSource(here.pk, mirrors=True)))
    here.delete()
    settled = end(turn, TurnEnding(outcome=Outcome.COMPLETED, text=text.format(made.pk), latency_ms=1))
    connection.check_constraints()
    assert settled == SettledTurn(Outcome.COMPLETED, "", text.format(made.pk))
    assert [event.type for event in agent.agent.session.events.order_by("pk")] == ["prompt", "reply"]


def test_a_question_is_asked_although_the_session_it_comes_from_is_gone() -> None:
    agent, here = published(), desk("alice")
    asked = replace(ask(agent), source=AskSource(here.pk, mirrors=True))
    here.delete()
    admitted(asked)
    connection.check_constraints()
    assert agent.turns[0].source_session_id is None
