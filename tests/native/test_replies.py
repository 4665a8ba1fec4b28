"""Replies of turns, found in transcripts that have no index for it."""

import json
from datetime import UTC, datetime, timedelta

from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.models import Agent, Event, Session, Turn
from agents.transcript.replies import find_replies
from kit.search import find_first_ids
from tests.native.rows import Person, make_agent, make_turn

START = datetime(2031, 3, 31, 12, tzinfo=UTC)


def at(second: float) -> datetime:
    return START + timedelta(seconds=second)


def tell(
    session: Session, second: float, chat_id: str, text: str = "", *, type_: str = "reply", **more: object
) -> None:
    """An event as the ledger writes it."""
    payload = json.dumps({"text": text, "chatId": chat_id, **more}, separators=(",", ":"))
    Event.objects.create(session=session, kind="chat", type=type_, payload=payload, ts=at(second))


def texts(turns: list[Turn]) -> list[str]:
    found = find_replies(turns)
    return [found[turn.pk].text if turn.pk in found else "-" for turn in turns]


def test_each_turn_gets_its_own_reply(alice: Person, bob: Person) -> None:
    agent, other = make_agent(alice.user), make_agent(alice.user, "other")
    turns = [make_turn(agent, bob.user, settled_at=at(100 * number)) for number in range(30)]
    for number, turn in enumerate(turns):
        tell(other.session, 100 * number, turn.chat_id, "of another session")
        tell(agent.session, 100 * number, turn.chat_id, f"answer {number}")
    assert texts(turns) == [f"answer {number}" for number in range(30)]
    assert texts(turns[7:8]) == ["answer 7"]


def test_what_the_transcript_does_not_have_is_left_out(bob: Person, agent: Agent) -> None:
    gone, refused = (
        make_turn(agent, bob.user, settled_at=at(0)),
        make_turn(agent, bob.user, "denied", reason="busy"),
    )
    still_open = make_turn(agent, bob.user, None)
    assert texts([gone, refused, still_open]) == ["-", "-", "-"], "no event at all"
    tell(agent.session, 3600, "other", "later than all")
    assert texts([gone, refused, still_open]) == ["-", "-", "-"]


def test_a_late_reply_is_found_and_said_to_be_late(bob: Person, agent: Agent) -> None:
    turn = make_turn(agent, bob.user, "failed", reason="timeout", settled_at=at(0))
    tell(agent.session, 55, turn.chat_id, "sorry, here it is", late=True)
    [reply] = find_replies([turn]).values()
    assert (reply.text, reply.is_late) == ("sorry, here it is", True)


def test_a_follow_up_is_not_the_reply(bob: Person, agent: Agent) -> None:
    answered, silent = [make_turn(agent, bob.user, settled_at=at(second)) for second in (0, 100)]
    tell(agent.session, 0, answered.chat_id, "the answer")
    for number in range(5):
        tell(agent.session, 1, answered.chat_id, f"more {number}", followUp=True)
    tell(agent.session, 101, silent.chat_id, "more", followUp=True)
    assert texts([answered, silent]) == ["the answer", "-"]


def test_the_agents_words_are_found_where_it_failed(bob: Person, agent: Agent) -> None:
    turn = make_turn(agent, bob.user, "failed", reason="agent_failed", settled_at=at(0))
    for number in range(9):
        tell(agent.session, -1, turn.chat_id, f"step {number}", type_="task_status", state="working")
    assert texts([turn]) == ["-"]
    tell(agent.session, 0, turn.chat_id, "no such file", type_="task_status", state="failed")
    assert texts([turn]) == ["no such file"]


def test_payloads_of_other_programs_do_no_harm(bob: Person, agent: Agent) -> None:
    turn = make_turn(agent, bob.user, settled_at=at(0))
    for payload in (
        f'["{turn.chat_id}"]',
        f'"{turn.chat_id}"',
        f'{{"chatId": "{turn.chat_id}"',
        f'{{"x": "{turn.chat_id}"}}',
    ):
        Event.objects.create(session=agent.session, kind="chat", type="reply", payload=payload, ts=at(0))
    assert texts([turn]) == ["-"]


def test_ids_are_found_over_gaps_in_few_statements(alice: Person) -> None:
    session = make_agent(alice.user).session
    ids = [3, 4, 5000, 5001, 900_000, 10_000_000]
    for second, pk in enumerate(ids):
        Event.objects.create(pk=pk, session=session, kind="chat", type="reply", payload="{}", ts=at(second))
    moments = [at(second) for second in (-1, 0, 1.5, 2, 4, 5, 99)]
    with CaptureQueriesContext(connection) as queries:
        found = find_first_ids(Event.objects.all(), "ts", set(moments))
    firsts = [next((pk for pk in ids if pk >= found[moment]), None) for moment in moments]
    assert firsts == [3, 3, 5000, 5000, 900_000, 10_000_000, None]
    assert len(queries) <= 26, "one for each bit of the largest id, and one for the ends"
