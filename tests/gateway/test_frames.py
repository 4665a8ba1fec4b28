"""The frames of `a2a-v1`: the order of checks, the field matrix and the errors, without a socket."""

import json
from typing import Any

import pytest

from agents.core.errors import (
    Denied,
    OverBudget,
    OverCallerBudget,
    OverCap,
    OverGroupBudget,
    RateLimited,
)
from agents.models.choices import TurnFailure
from gateway.wire.errors import FrameRefused, GatewayErrorCode, denied_error, failed_turn_error
from gateway.wire.frame_types import FRAME_TYPES
from gateway.wire.frames import MAX_FRAME_BYTES, Envelope, check_frame, error_frame, read_type
from gateway.wire.protocol import DEFAULT_HEARTBEAT_S, GatewayProtocol, UpgradeRefused, read_parameters

Json = dict[str, Any]
MESSAGE = {"type": "message", "agent": "coder", "content": {"role": "user", "content": "hi"}}
AUTH = {"type": "auth", "content": {"token": "t"}}
# One sound frame of each type that a client may send.
SOUND: dict[str, Json] = {
    "message": MESSAGE,
    "status": {"type": "status", "content": {"agent": "coder", "status": "busy"}},
    "error": {"type": "error", "error": "AGENT_ERROR", "content": {"error": "AGENT_ERROR"}},
    "event": {"type": "event", "event": "agent.registered", "content": {}},
    "handshake": {"type": "handshake", "content": {"action": "advertise", "capabilities": {"version": "1.0.0"}}},
    "discovery": {"type": "discovery", "content": {"action": "list"}},
    "subscribe": {"type": "subscribe", "content": {"channel": "agent:status", "agents": ["alpha"]}},
    "unsubscribe": {"type": "unsubscribe", "content": {"channel": "agent:status"}},
    "ping": {"type": "ping"},
    "pong": {"type": "pong", "timestamp": 1},
    "workspace": {"type": "workspace", "content": {"action": "list"}},
    "auth": AUTH,
    "disconnect": {"type": "disconnect", "content": {"reason": "manual"}},
    "proposal": {"type": "proposal", "content": {"proposal": "p", "reasoning": "r", "deadline": 1}},
    "vote": {"type": "vote", "content": {"proposalId": "p", "vote": "approve", "confidence": 0.8}},
    "request": {"type": "request", "content": {"service": "sessions.get", "params": {}}},
    "response": {"type": "response", "content": {"result": None}},
    "broadcast": {"type": "broadcast", "content": {"message": "stop"}},
}
GONE = object()  # the field is taken out


class Moment:
    """A clock that a test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def protocol(*, is_authenticated: bool = True, clock: Moment | None = None) -> GatewayProtocol:
    made = GatewayProtocol(clock or Moment(), 30_000)
    made.is_authenticated = is_authenticated
    return made


def with_field(frame: Json, path: str, value: object) -> Json:
    """A copy of a frame with another value at a path."""
    copied: Json = json.loads(json.dumps(frame))
    *parents, last = path.split(".")
    inner = copied
    for key in parents:
        inner = inner.setdefault(key, {})
    if value is GONE:
        del inner[last]
    else:
        inner[last] = value
    return copied


def refusal(text: str | None, made: GatewayProtocol | None = None) -> FrameRefused:
    with pytest.raises(FrameRefused) as caught:
        (made or protocol()).read(text)
    return caught.value


def checked(frame: Json) -> Envelope | tuple[int, str]:
    """The envelope of a frame; or the code and the field of its error."""
    try:
        return check_frame(frame, read_type(frame))
    except FrameRefused as refused:
        return int(refused.code), refused.field


def test_every_type_that_clients_may_send_has_a_sound_frame() -> None:
    assert SOUND.keys() == {one.name for one in FRAME_TYPES.values() if one.taken}
    assert [name for name, frame in SOUND.items() if not isinstance(checked(frame), Envelope)] == []


FLAWS: list[tuple[str | None, int, str, int]] = [
    (None, 1004, "", 1003),
    ('"' + "x" * MAX_FRAME_BYTES + '"', 1004, "", 1009),
    ("{", 2001, "", 0),
    ('{"type":"ping"} x', 2001, "", 0),
    ('{"type":"ping","type":"pong"}', 2001, "", 0),
    ("[" * 65 + "]" * 65, 2001, "", 0),
    ('{"type":NaN}', 2001, "", 0),
    ('{"type":"ping","x":"\\u0000"}', 2005, "$", 0),
    ("[]", 2003, "$", 0),
    ("null", 2003, "$", 0),
    ("7", 2003, "$", 0),
    ("{}", 2002, "type", 0),
    ('{"type":""}', 2002, "type", 0),
    ('{"type":7}', 2003, "type", 0),
    ('{"type":"nope"}', 2004, "type", 0),
    ('{"type":"0x01"}', 2004, "type", 0),
    ('{"type":"auth-response","content":{}}', 5004, "type", 0),
    ('{"type":"decision","content":{}}', 5004, "type", 0),
    ('{"type":"message"}', 2002, "content", 0),
    ('{"type":"message","content":[]}', 2003, "content", 0),
    ('{"type":"message","agent":7,"content":{}}', 2002, "content.role", 0),
]


def test_the_first_flaw_in_the_order_of_checks_answers(subtests: pytest.Subtests) -> None:
    for text, *expected in FLAWS:
        with subtests.test(text=text):
            refused = refusal(text)
            assert [refused.code, refused.field, refused.close_code] == expected


REQUIRED = (
    ("message", "content.role", "content.content", "agent"),
    *(("event", "event"), ("handshake", "content.action"), ("subscribe", "content.channel")),
    *(("unsubscribe", "content.channel"), ("auth", "content.token"), ("disconnect", "content.reason")),
    *(("proposal", "content.proposal"), ("request", "content.service"), ("response", "content.result")),
    ("broadcast", "content.message"),
)
MATRIX = [
    *[(type_name, path, GONE, 2002) for type_name, *paths in REQUIRED for path in paths],
    ("message", "content.role", "boss", 2005),
    ("message", "content.role", 7, 2003),
    *[("message", "content.content", value, 2005) for value in ("", " ")],
    *[("message", "content.content", value, 2003) for value in (7, [], True, None)],
    ("message", "agent", 7, 2003),
    *[("message", "agent", name, 2005) for name in ("", "Coder", "-a", "1a", "a b", "a" * 65, "@owner", "@o/S")],
    ("message", "id", 7, 2003),
    *[("message", "id", value, 2005) for value in ("", "x" * 129)],
    ("message", "from", [], 2003),
    ("message", "sessionId", 1, 2003),
    *[("message", "timestamp", value, 2003) for value in ("soon", True)],
    ("message", "metadata", [], 2003),
    ("message", "metadata.priority", "urgent", 2003),
    ("message", "metadata.requiresResponse", "yes", 2003),
    *[("message", "metadata.ttl", value, 2003) for value in (0, -1, "5", True)],
    ("message", "metadata.correlationId", 7, 2003),
    ("message", "metadata.threadId", {}, 2003),
    ("status", "content.status", "asleep", 2005),
    ("handshake", "content.action", "wave", 2005),
    ("handshake", "content.action", 7, 2003),
    ("handshake", "content.capabilities", [], 2003),
    ("handshake", "content.capabilities.supportedMessageTypes", "message", 2003),
    ("discovery", "content.action", "find", 2005),
    ("workspace", "content.action", "drop", 2005),
    ("subscribe", "content.agents", "alpha", 2003),
    ("auth", "content.token", 7, 2003),
    ("auth", "content.token", "", 2005),
    ("disconnect", "content.reason", "bored", 2005),
    ("proposal", "content.deadline", "noon", 2003),
    ("vote", "content.vote", "maybe", 2005),
    ("vote", "content.vote", 1, 2003),
]


def test_a_field_of_the_wrong_kind_or_value_is_named() -> None:
    found = [(*case, checked(with_field(SOUND[case[0]], case[1], case[2]))) for case in MATRIX]
    assert [one for one in found if one[4] != (one[3], one[1])] == []


def test_what_the_protocol_does_not_name_is_kept(subtests: pytest.Subtests) -> None:
    for agent in ("a", "coder-2", "@owner/coder", "@Owner.x/7-of-9"):
        frame = MESSAGE | {"agent": agent, "timestamp": "1970-01-01T00:00:02Z", "trace": [1], "metadata": {"x": 1}}
        with subtests.test(agent=agent):
            envelope = checked(frame)
            assert isinstance(envelope, Envelope)
            kept = (envelope.agent, envelope.timestamp_ms, envelope.extra, envelope.metadata)
            assert kept == (agent, 2000, {"trace": [1]}, {"x": 1})


def test_a_response_may_hold_an_error_and_an_event_its_name_in_its_content() -> None:
    assert isinstance(checked({"type": "response", "content": {"error": {"code": 3004}}}), Envelope)
    assert isinstance(checked({"type": "event", "content": {"event": "x"}}), Envelope)


def test_only_frames_that_need_no_caller_are_taken_before_auth(subtests: pytest.Subtests) -> None:
    for type_name, frame in SOUND.items():
        with subtests.test(frame=type_name):
            made = protocol(is_authenticated=False)
            if type_name in {"auth", "handshake", "ping", "pong", "disconnect"}:
                assert made.read(json.dumps(frame)).type == type_name
            else:
                assert refusal(json.dumps(frame), made).code == GatewayErrorCode.AUTH_REQUIRED


def test_an_error_names_its_frame_and_its_code_in_both_places() -> None:
    frame = MESSAGE | {"agent": 7, "id": "m-1", "metadata": {"correlationId": "c-1"}}
    shown = error_frame(refusal(json.dumps(frame)))
    assert shown["error"] == shown["content"]["error"] == "INVALID_TYPE"
    assert (shown["content"]["code"], shown["content"]["field"]) == (2003, "agent")
    assert (shown["from"], shown["metadata"]) == ("gateway", {"correlationId": "c-1", "parentId": "m-1"})


def test_a_burst_of_200_frames_is_taken_and_the_next_must_wait() -> None:
    clock = Moment()
    made = protocol(clock=clock)
    for _ in range(200):
        made.read('{"type":"ping"}')
    refused = refusal('{"type":"ping"}', made)
    assert (refused.code, refused.retry_after_ms, refused.close_code) == (GatewayErrorCode.RATE_LIMITED, 10, 0)
    clock.now = 0.02
    assert made.read('{"type":"ping"}').type == "ping"


def test_a_client_that_is_too_fast_for_ten_seconds_is_closed() -> None:
    clock = Moment()
    made = protocol(clock=clock)
    closed_at = 0.0
    for tick in range(30):
        clock.now = float(tick)
        for _ in range(400):
            try:
                made.read('{"type":"ping"}')
            except FrameRefused as refused:
                closed_at = closed_at or (clock.now if refused.close_code == 4029 else 0.0)
    assert closed_at == 10.0


def test_twenty_flaws_within_a_minute_end_the_connection() -> None:
    clock = Moment()
    made, flaw = protocol(clock=clock), FrameRefused(GatewayErrorCode.INVALID_JSON, "no")
    assert made.count_flaw(FrameRefused(GatewayErrorCode.AGENT_NOT_FOUND, "no")) is None
    for number in range(19):
        clock.now = number * 3.5
        assert made.count_flaw(flaw) is None
    clock.now = 61.0
    assert made.count_flaw(flaw) is None
    clock.now = 62.0
    ending = made.count_flaw(flaw)
    assert ending is not None
    assert (ending.code, ending.close_code) == (GatewayErrorCode.PROTOCOL_ERROR, 1008)


def test_capabilities_replace_each_other_and_filter_pushes(subtests: pytest.Subtests) -> None:
    made = protocol()
    made.take_capabilities({"supportedMessageTypes": ["status", "nope"], "version": "1.7"})
    assert [made.may_push(name) for name in ("message", "status", "error", "pong")] == [False, True, True, True]
    made.take_capabilities({"timeout": 5000})
    assert (made.may_push("message"), made.timeout_ms) == (True, 5000)
    made.take_capabilities({"timeout": "6000"})
    assert made.timeout_ms == 6000
    for capabilities, code in (({"version": "2.0"}, 1004), ({"timeout": 10}, 2003), ({"heartbeat": "x"}, 2003)):
        with subtests.test(capabilities=capabilities):
            with pytest.raises(FrameRefused) as caught:
                made.take_capabilities(capabilities)
            assert caught.value.code == code


def test_a_handshake_sets_the_heartbeat_too() -> None:
    wanted: list[float] = []
    made = GatewayProtocol(Moment(), 30_000, wanted.append)
    for capabilities in ({"heartbeat": 5000}, {}, {"heartbeat": 1500}):
        made.take_capabilities(capabilities)
    with pytest.raises(FrameRefused):
        made.take_capabilities({"heartbeat": 10})
    assert wanted == [5.0, 1.5]


def test_the_upgrade_names_protocol_agent_and_times() -> None:
    asked = read_parameters("agentId=alpha&token=t&timeout=5000&heartbeat=x", ["x", "a2a-v1"])
    assert (asked.subprotocol, asked.agent_id, asked.token, asked.timeout_ms) == ("a2a-v1", "alpha", "t", 5000)
    assert [(flaw.code, flaw.field) for flaw in asked.flaws] == [(GatewayErrorCode.INVALID_TYPE, "heartbeat")]
    assert asked.heartbeat_s == DEFAULT_HEARTBEAT_S
    assert read_parameters("timeout=10", []).timeout_ms == 30_000
    assert read_parameters("heartbeat=5000", []).heartbeat_s == 5.0
    assert read_parameters("", []).subprotocol is None
    (flaw,) = read_parameters("agentId=Alpha", []).flaws
    assert (flaw.code, flaw.close_code) == (GatewayErrorCode.INVALID_CONTENT, 1008)


def test_an_upgrade_to_another_protocol_is_refused(subtests: pytest.Subtests) -> None:
    many = "&".join(f"a{number}=1" for number in range(51))
    for query, offered in (("", ["x"]), ("protocol=x", []), ("protocol=a2a-v1", ["y", "z"]), (many, [])):
        with subtests.test(query=query, offered=offered), pytest.raises(UpgradeRefused):
            read_parameters(query, offered)
    assert read_parameters("protocol=x", ["a2a-v1"]).subprotocol == "a2a-v1"


def test_an_error_is_never_answered() -> None:
    assert protocol().read('{"type":"error"}').type == "error"
    assert refusal('{"type":"error","content":[]}').is_silent
    assert refusal('{"type":"error"}', protocol(is_authenticated=False)).is_silent


WITH_A_LIMIT = (OverCap, OverBudget, OverCallerBudget, OverGroupBudget, RateLimited)


def test_every_refusal_and_failure_of_the_hub_has_its_code(subtests: pytest.Subtests) -> None:
    """No agent is 3001; an agent that cannot be asked now says so; what the hub forbids is 5004 or 1005."""
    known = {"OFFLINE": 3002, "BUSY": 3003, "TOO_FAST": 1005, "FORBIDDEN": 5004, "PASSED_ON": 2005}
    for denied in Denied.__subclasses__():
        with subtests.test(denied=denied):
            made = denied(1) if denied in WITH_A_LIMIT else denied()
            shown = denied_error(made)
            assert shown.code == known.get(denied.entry.kind.name, 3004)
            assert shown.reason == ("" if denied is RateLimited else denied.reason)
            assert shown.retry_after_ms == (1000 if denied is RateLimited else 0)
    of_messages = denied_error(RateLimited(1, counts_messages=True))
    assert str(of_messages) == "at most 100 messages a second of one token, 200 at once"
    failed = {reason: int(failed_turn_error(reason, "").code) for reason in TurnFailure}
    lost = {TurnFailure.CHANNEL_LOST, TurnFailure.NOT_DELIVERED, TurnFailure.PROCESS_DIED, TurnFailure.SHUTDOWN}
    assert failed == {reason: 3002 if reason in lost else 3004 for reason in TurnFailure}
    assert str(failed_turn_error(TurnFailure.AGENT_FAILED, "no idea")) == "no idea"
