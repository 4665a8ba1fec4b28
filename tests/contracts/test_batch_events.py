"""The transcript events of a batch, and the messages that follow them."""

import json
from typing import Any

import msgspec
import pytest
from django.db import connection
from msgspec.structs import replace

from agents.core.ledger.batch import commit
from agents.core.ledger.work import Admit, Record, Release, Settle
from agents.core.types import AskSource, OpenTurn, TurnEnding
from agents.models import Attachment, Event, Session
from agents.models.choices import Outcome, TurnFailure
from agents.transcript.announcements import LiveFrame
from agents.transcript.recording import BadPayload, NewEvent, clean, payload_of
from kit import sql
from tests.contracts.rows import COMPLETED, HOME, Published, admitted, ask, end, live_process, published, user

pytestmark = [pytest.mark.django_db, pytest.mark.ledger]

TIMEOUT = TurnEnding(outcome=Outcome.FAILED, reason=TurnFailure.TIMEOUT, keeps_claim=True)


def transcript(session_id: int) -> list[tuple[str, str, dict[str, Any]]]:
    rows = Event.objects.filter(session_id=session_id).order_by("pk")
    return [(row.kind, row.type, json.loads(row.payload)) for row in rows]


def test_question_and_reply_are_events_of_the_session() -> None:
    agent = published()
    turn = admitted(ask(agent))
    end(turn)
    prompt, reply = transcript(agent.ref.session_id)
    assert prompt[:2] == ("chat", "prompt")
    assert prompt[2] | {"chatId": ""} == {
        "text": "what?",
        "authorLogin": "alice",
        "source": "operator",
        "surface": "a2a",
        "chatId": "",
    }
    assert reply == ("chat", "reply", {"text": "so", "chatId": turn.ask.chat_id})


def test_a_refused_ask_and_a_reply_that_lost_the_race_leave_no_event() -> None:
    agent = published(daily_budget=0)
    commit([Admit(ask(agent))], home=HOME)
    assert transcript(agent.ref.session_id) == []
    other = published()
    turn = admitted(ask(other))
    end(turn, TIMEOUT)
    end(turn, COMPLETED)
    assert [one[1] for one in transcript(other.ref.session_id)] == ["prompt"]


def test_a_late_reply_is_kept_and_frees_the_claim_but_the_turn_stays_failed() -> None:
    agent = published()
    turn = admitted(ask(agent))
    end(turn, TIMEOUT)
    commit([Release(chat_id=turn.ask.chat_id, late="at last")], home=HOME)
    assert transcript(agent.ref.session_id)[-1][2] == {"text": "at last", "chatId": turn.ask.chat_id, "late": True}
    (row,) = agent.turns
    assert (row.outcome, row.reason) == ("failed", "timeout")
    assert row.released_at is not None


def test_a_late_reply_to_nothing_is_dropped() -> None:
    commit([Release(chat_id="never-asked", late="boo")], home=HOME)
    assert not Event.objects.exists()


def test_an_ask_from_a_session_is_mirrored_there() -> None:
    agent = published()
    here = Session.objects.create(owner=user("alice"), routing_name="here")
    source = AskSource(here.pk, mirrors=True, peer_login=agent.ref.handle)
    end(admitted(replace(ask(agent), source=source)))
    prompt, reply = transcript(here.pk)
    assert (prompt[2]["source"], prompt[2]["peerLogin"]) == ("operator-route", agent.ref.handle)
    assert (reply[2]["source"], reply[2]["peerLogin"], reply[2]["text"]) == ("peer-reply", agent.ref.handle, "so")


def test_watchers_are_told_once_it_is_committed_and_an_open_turn_knows_them() -> None:
    agent, unwatched = published(), published()
    watch(agent, "desk-process")
    done = commit([Admit(ask(agent)), Admit(ask(unwatched, "bob"))], home=HOME)
    first, second = done.results
    assert isinstance(first, OpenTurn)
    assert isinstance(second, OpenTurn)
    assert (first.watchers, second.watchers) == (("desk-process",), ())
    assert first.session_public_id == str(agent.agent.session.public_id)
    ((process, message),) = done.messages
    assert process == "desk-process"
    assert isinstance(message, LiveFrame)
    frame = msgspec.json.decode(bytes(message.frame))
    assert (frame["type"], frame["sessionId"]) == ("event", first.session_public_id)
    assert frame["event"]["payload"]["text"] == "what?"
    assert len(commit([Settle(first, COMPLETED)], home=HOME).messages) == 1


def test_who_attaches_while_a_batch_is_written_is_told() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite lets no other connection write meanwhile")
    agent = published()
    turn = admitted(ask(agent))
    session, operator, process = agent.agent.session, agent.agent.owner, live_process("desk-process")
    columns = "session_id, user_id, process_id, attached_at"
    attach = f"INSERT INTO agents_attachment ({columns}) VALUES (%s, %s, %s, now())"
    attaching = [sql.Query(attach, [session.pk, operator.pk, process.pk])]
    done = commit([Settle(turn, COMPLETED, lambda _: attaching)], home=HOME)
    assert [process_id for process_id, _ in done.messages] == ["desk-process"]


def test_recorded_events_keep_their_order() -> None:
    agent = published()
    events = [NewEvent(agent.ref.session_id, "tail", f"Hook{n}", payload_of(n=n)) for n in range(5)]
    commit([Record(one) for one in events], home=HOME)
    assert [one[1] for one in transcript(agent.ref.session_id)] == [f"Hook{n}" for n in range(5)]


def test_a_payload_is_kept_as_it_came_or_mended() -> None:
    for sent, kept in [
        (b'{"a": 1}', {"a": 1}),
        (b"null", {}),
        (b'"text"', {"value": "text"}),
        (b'{"a": "\\ud800"}', {"a": "\ufffd"}),
        (b'{"\\udfff": ["\\ud800x", {"k": "\\u0000"}]}', {"\ufffd": ["\ufffdx", {"k": "\x00"}]}),
        ('{"a": "ä😀"}'.encode(), {"a": "ä😀"}),
    ]:
        agent = published()
        commit([Record(NewEvent(agent.ref.session_id, "tail", "Hook", clean(sent)))], home=HOME)
        assert transcript(agent.ref.session_id)[0][2] == kept, (sent, kept)


def test_a_payload_that_could_not_be_shown_again_is_refused(subtests: pytest.Subtests) -> None:
    for sent in [b"{", b'{"a": NaN}', b"[" * 100 + b"]" * 100, b'{"a": ' + b"9" * 5000 + b"}", b"\xff"]:
        with subtests.test(payload=sent), pytest.raises(BadPayload):
            clean(sent)


def watch(agent: Published, process_id: str) -> None:
    Attachment.objects.create(
        session=agent.agent.session, process=live_process(process_id), user=agent.agent.owner
    )
