"""The dialect of the prototype: its frames in `a2a-v1` and back.

`test_prototype_clients.py` shows those that the prototype's own client sends; here are the others.
"""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from gateway.surface.prototype import speaks_prototype
from gateway.wire.frames import LONGEST_TTL_S
from gateway.wire.prototype_dialect import PrototypeDialect
from gateway.wire.prototype_frames import MAX_OPEN
from lab.frames import Json

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TIME = "2026-01-01T00:00:00.000Z"
READ: list[tuple[Json, Json]] = [  # a frame of the dialect, and what it says in `a2a-v1`
    (
        {"type": "response", "correlationId": "c", "content": "done"},
        {"type": "response", "content": {"result": "done"}, "metadata": {"correlationId": "c"}},
    ),
    (
        {"type": "response", "correlationId": "c", "content": {"error": "no"}},
        {"type": "response", "content": {"error": "no"}, "metadata": {"correlationId": "c"}},
    ),
    (
        {"type": "vote_submission", "proposalId": "p", "voter": "alpha", "vote": "approve"},
        {"type": "vote", "content": {"proposalId": "p", "vote": "approve"}, "from": "alpha", "metadata": {}},
    ),
]
SENT_TO_ONE = {"success": True, "totalSent": 1, "results": []}
WRITTEN: list[tuple[Json, Json, Json]] = [  # what was asked, the answer, and what it says in the dialect
    (
        {"type": "health"},
        {"type": "response", "content": {"error": {"code": 5004, "message": "not now"}}},
        {"type": "error", "error": "not now", "code": 5004},
    ),
    (  # as `AgentClient.broadcast` sends it
        {"type": "message", "agent": "broadcast", "content": {"role": "user", "content": "stop"}},
        {"type": "response", "content": {"result": SENT_TO_ONE}},
        {"type": "broadcast-result"} | SENT_TO_ONE,
    ),
    (
        {"type": "register", "agentId": "alpha"},
        {"type": "error", "content": {"code": 5004, "reason": "isolated", "message": "not now"}},
        {"type": "registered", "agentId": "alpha", "connectedAgents": ["alpha"]},
    ),
    (
        {"type": "vote_submission", "proposalId": "p", "vote": "approve"},
        {"type": "response", "content": {"result": {"state": "open"}}},
        {"type": "response", "content": {"state": "open"}},
    ),
    (
        {"type": "discover"},
        {"type": "error", "error": "AUTH_REQUIRED", "content": {"message": "sign in", "code": 5001}},
        {"type": "error", "error": "sign in", "code": 5001},
    ),
]


def made(name: str = "") -> PrototypeDialect:
    return PrototypeDialect(lambda: NOW, 8787, name)


def asked(**more: Any) -> PrototypeDialect:
    """A dialect in which the question was asked with the correlation id `c`."""
    dialect = made()
    dialect.read(json.dumps(QUESTION | {"correlationId": "c"} | more))
    return dialect


def written(dialect: PrototypeDialect, frame: Json) -> Json:
    """The one frame of the dialect for a frame of the hub."""
    (text,) = dialect.write(json.dumps(frame))
    shown: Json = json.loads(text)
    return shown


def test_a_time_that_no_calendar_has_is_written_as_now() -> None:
    """Any program may send such a time: the socket of the recipient goes on."""
    message = {"type": "message", "content": {"role": "user", "content": "hi"}, "timestamp": 2**53}
    assert written(made(), message)["timestamp"] == TIME


def test_a_frame_of_the_dialect_is_read(subtests: pytest.Subtests) -> None:
    for given, expected in READ:
        with subtests.test(given=given):
            read = json.loads(made().read(json.dumps(given)))
            if "correlationId" not in expected["metadata"]:
                assert read["metadata"].pop("correlationId").startswith("prototype-")
            assert read == expected


def test_an_answer_has_the_form_of_what_was_asked(subtests: pytest.Subtests) -> None:
    for asked, answer, expected in WRITTEN:
        for own in ({"correlationId": "c-1"}, {}):
            with subtests.test(asked=asked, own=own):
                dialect = made()
                read = json.loads(dialect.read(json.dumps(asked | own)))
                correlation_id = read["metadata"]["correlationId"]
                assert correlation_id == own.get("correlationId", correlation_id)
                shown = written(dialect, {**answer, "metadata": {"correlationId": correlation_id}})
                shown.pop("metadata", None)
                assert shown == expected | own | {"timestamp": TIME}


QUESTION: Json = {"type": "message", "agent": "beta", "content": {"role": "user", "content": "hi"}}
REPLY: Json = {"type": "message", "id": "m", "from": "beta", "content": {"role": "agent", "content": "ho"}}


@pytest.mark.parametrize("known", ["c", "m"])
def test_send_response_answers_the_message_that_it_names(known: str) -> None:
    """By its correlation id, or by the id of its frame: the client has no other way to answer."""
    dialect = made()
    written(dialect, {**REPLY, "metadata": {"correlationId": "c", "requiresResponse": True}})
    said = {"from": "alpha", "type": "response", "content": "done", "in_reply_to": known}
    content = {"role": "user", "content": json.dumps(said)}
    sent = json.dumps(QUESTION | {"content": content, "correlationId": "other"})
    answer, again = (json.loads(dialect.read(sent))["metadata"] for _ in range(2))
    assert answer == {"correlationId": "c"}
    assert again == {"correlationId": "other", "requiresResponse": True}


@pytest.mark.parametrize("text", ['"in_reply_to"', '["in_reply_to"]', '{"in_reply_to": "c"}', '{"in_reply_to"'])
def test_other_text_about_a_message_is_no_answer(text: str) -> None:
    dialect = made()
    written(dialect, {**REPLY, "metadata": {"correlationId": "c", "requiresResponse": True}})
    sent = json.loads(dialect.read(json.dumps(QUESTION | {"content": {"role": "user", "content": text}})))
    assert sent["metadata"]["correlationId"] != "c"


def refusal(reason: str) -> Json:
    content = {"code": 3002, "reason": reason, "message": "the agent is offline"}
    return {"type": "error", "content": content, "metadata": {"correlationId": "c"}}


QUEUED: Json = {"type": "event", "content": {"event": "message.queued"}, "metadata": {"correlationId": "c"}}
OFFLINE = {"type": "error", "error": "Agent beta is not connected", "correlationId": "c", "timestamp": TIME}


def test_a_message_to_an_agent_that_is_offline_is_put_into_its_inbox() -> None:
    """In the inbox the message waits without an answer; the client is told so once, when the hub has stored it."""
    dialect = asked()
    assert dialect.write(json.dumps(refusal("offline"))) == []
    (further,) = dialect.further
    assert json.loads(further) == QUESTION | {"metadata": {"correlationId": "c", "ttl": LONGEST_TTL_S}}
    assert written(dialect, QUEUED) == OFFLINE | {"queued": True}
    assert dialect.write(json.dumps(QUEUED)) == []
    # The recipient was deleted meanwhile, or its inbox is full.
    assert written(dialect, refusal("offline")) == OFFLINE | {"queued": False}
    assert len(dialect.further) == 1


def test_a_message_that_may_wait_for_some_time_alone_is_not_kept_for_longer() -> None:
    dialect = asked(metadata={"ttl": 5})
    assert written(dialect, QUEUED) == OFFLINE | {"queued": True}
    assert written(dialect, refusal("ttl_expired")) == OFFLINE | {"queued": False}
    assert not dialect.further


def test_a_message_that_was_delivered_is_not_sent_again() -> None:
    dialect = asked()
    assert written(dialect, refusal(""))["error"] == "the agent is offline"
    assert not dialect.further


def test_other_events_are_no_answers() -> None:
    dialect = asked()
    event = QUEUED | {"content": {"event": "message.delivered"}}
    assert "correlationId" not in written(dialect, event)


def test_the_agent_of_the_address_is_who_sends() -> None:
    dialect = made("alpha")
    assert "from" not in json.loads(dialect.read(json.dumps(QUESTION | {"from": "another"})))
    assert json.loads(dialect.read('{"type": "register", "agentId": "another"}'))["from"] == "alpha"
    pong = written(dialect, {"type": "pong", "content": {}})
    assert isinstance(pong.pop("timestamp"), int)
    assert pong == {"type": "pong", "agentId": "alpha", "heartbeat": {"received": TIME, "agentHeartbeat": {}}}


def test_what_the_dialect_does_not_name_passes_as_it_is() -> None:
    odd = ("", "{", "null", '{"type": 1}', '{"type": "ping"}', '{"type": "message", "metadata": 1}')
    for text in (*odd, "x" * 1_048_577):
        assert made().read(text) == text


def test_what_is_not_answered_is_forgotten() -> None:
    dialect = made()
    for number in range(MAX_OPEN + 1):
        dialect.read(json.dumps({"type": "health", "correlationId": f"c-{number}"}))
        dialect.read(json.dumps(QUESTION))  # wants no answer
    health: Any = {"type": "response", "content": {"result": {}}}
    shown = [written(dialect, health | {"metadata": {"correlationId": f"c-{number}"}}) for number in (0, 1)]
    assert [one["type"] for one in shown] == ["response", "health"]


def test_only_a_client_without_a_subprotocol_at_its_path_speaks_it() -> None:
    assert speaks_prototype({"path": "/a2a", "subprotocols": []})
    assert not speaks_prototype({"path": "/a2a", "subprotocols": ["a2a-v1"]})
    assert not speaks_prototype({"path": "/gateway", "subprotocols": []})
