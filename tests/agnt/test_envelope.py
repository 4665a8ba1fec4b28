"""Envelopes: what is read, in which order flaws are found, what the response repeats, and what errors say."""

import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from agnt.wire.envelope import (
    Envelope,
    check_timestamp,
    describe_result,
    find_heading,
    read_body,
    read_envelope,
)
from clawbridge.agnt import describe_response
from clawbridge.agnt.fields import MEANINGS, EnvelopeRefused, ErrorCode, describe_error, error_headers
from lab import ROOT

AS_PRINTED = (
    b'{"protocol":"openclaw/a2a/v1","from":"my_agent_001","to":"network:agnt","intent":"network.ping",'
    b'"payload":{},"ttl_ms":5000,"timestamp":"2026-04-12T12:00:00Z"}'
)
NOON = datetime(2026, 4, 12, 12, tzinfo=UTC)
LEAST: dict[str, Any] = {"from": "my_agent_001", "intent": "network.ping"}


def read(**fields: Any) -> Envelope:
    """The envelope of the smallest request with these fields more; `sender` stands for `from`."""
    if "sender" in fields:
        fields["from"] = fields.pop("sender")
    return read_envelope(LEAST | fields)


def refusal(**fields: Any) -> tuple[str, int, list[str]]:
    with pytest.raises(EnvelopeRefused) as refused:
        read(**fields)
    return refused.value.code.value, refused.value.status, refused.value.fields


def body_refusal(body: bytes, content_type: str = "application/json") -> tuple[str, int]:
    with pytest.raises(EnvelopeRefused) as refused:
        read_body(body, content_type)
    return refused.value.code.value, refused.value.status


def test_the_request_as_printed() -> None:
    fields, text = read_body(AS_PRINTED, "application/json")
    envelope = read_envelope(fields)
    assert text == AS_PRINTED.decode()
    assert envelope.event == ("my_agent_001", "network.ping", "2026-04-12T12:00:00Z")
    assert (envelope.to, envelope.payload, envelope.ttl_ms) == ("network:agnt", {}, 5000)


def test_defaults() -> None:
    envelope = read()
    assert (envelope.to, envelope.payload, envelope.agent_context) == ("network:agnt", {}, {})
    assert (envelope.ttl_ms, envelope.timestamp) == (5000, "")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not JSON",
        b"[]",
        b'"text"',
        b"null",
        b"\xff",
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":1e999}',
        b'{"a":' + b"9" * 5000 + b"}",
        b'{"from":"a","from":"b"}',
        b'{"payload":{"x":1,"x":2}}',
        b'{"payload":{"x":"\\ud83d"}}',
        b'{"agent_context":{"x":"\\u0000"}}',
        b"{}{}",
        '{"from":"a"}'.encode("utf-16"),
        b'{"agent_context":{"\\udfff":1}}',
        b'{"payload":' + b'{"a":' * 70 + b"1" + b"}" * 71,
        b'{"agent_context":' + b"[" * 100_000,
    ],
)
def test_what_is_no_json_object(body: bytes) -> None:
    assert body_refusal(body) == ("invalid_envelope", 400)


def test_content_type_and_size() -> None:
    for content_type in ("", "text/plain", "application/x-www-form-urlencoded", "application/jsonp"):
        assert body_refusal(AS_PRINTED, content_type) == ("invalid_envelope", 400)
    assert read_body(AS_PRINTED, "Application/JSON; charset=utf-8")
    full = b'{"a":"' + b"x" * (262_144 - 8) + b'"}'
    assert read_body(full, "application/json")[0]
    assert body_refusal(full + b" ") == ("payload_too_large", 413)
    assert body_refusal(full + b" ", "text/plain") == ("payload_too_large", 413)


WRONG: dict[str, list[Any]] = {
    "sender": ["", None, 7, "a b", "é", "a\n", "x" * 129],
    "to": ["", None, "a b", ["network:agnt"]],
    "intent": ["", None, 1],
    "payload": [None, [], "{}"],
    "agent_context": [None, "x"],
    "timestamp": [
        *(None, 1775988123, False, "yesterday", "2026-04-12", "2026-04-12T12:00:00", "2026-04-12 12:00:00Z"),
        *("2026-13-12T12:00:00Z", "2026-04-12T12:00:60Z", "2026-04-12T12:00:00+99:00", "٢026-04-12T12:00:00Z"),
        "2026-04-12T12:00:00." + "0" * 9000 + "Z",
    ],
    "ttl_ms": [0, -1, 5000.0, "5000", True, None],
    "via": [[]],
    "Intent": ["network.ping"],
}


@pytest.mark.parametrize("field", WRONG)
def test_wrong_fields(field: str) -> None:
    name = "from" if field == "sender" else field
    for value in WRONG[field]:
        assert refusal(**{field: value}) == ("invalid_envelope", 422, [name]), value


def test_missing_fields() -> None:
    with pytest.raises(EnvelopeRefused) as refused:
        read_envelope({})
    assert (refused.value.status, refused.value.fields) == (422, ["from", "intent"])


def test_unknown_fields_are_named() -> None:
    assert refusal(zeta=1, alpha={}) == ("invalid_envelope", 422, ["alpha", "zeta"])


def test_the_other_name_of_the_sender() -> None:
    fields = {"from_agent": "a", "intent": "network.ping"}
    assert read_envelope(fields).sender == "a"
    assert read(from_agent="my_agent_001").sender == "my_agent_001"
    assert refusal(from_agent="other") == ("invalid_envelope", 422, ["from", "from_agent"])
    assert refusal(from_agent=None)[2] == ["from", "from_agent"]


@pytest.mark.parametrize("protocol", ["openclaw/a2a/v2", "agp/1", "", None, 1, ["openclaw/a2a/v1"]])
def test_other_protocols(protocol: Any) -> None:
    with pytest.raises(EnvelopeRefused) as refused:
        read(protocol=protocol)
    error = describe_error(refused.value)["error"]
    assert (refused.value.status, error["code"]) == (400, "unsupported_protocol")
    assert error["supported"] == ["openclaw/a2a/v1"]


@pytest.mark.parametrize("intent", ["payment.authorize", "Network.Ping", "network.ping ", "x" * 1000])
def test_unknown_intents(intent: str) -> None:
    assert refusal(intent=intent) == ("unknown_intent", 400, [])


@pytest.mark.parametrize(("given", "used"), [(1, 1), (4870, 4870), (15_000, 15_000), (15_001, 15_000)])
def test_ttl(given: int, used: int) -> None:
    assert read(ttl_ms=given).ttl_ms == find_heading(LEAST | {"ttl_ms": given}).ttl_ms == used
    assert read(ttl_ms=10**300).ttl_ms == 15_000


def test_the_first_flaw_answers() -> None:
    flaws = {"unknown": 1, "payload": [], "protocol": "agp/1", "ttl_ms": 0, "intent": "other"}
    codes = {"protocol": "unsupported_protocol", "intent": "unknown_intent"}
    for repaired in list(flaws):
        assert refusal(**flaws)[0] == codes.get(repaired, "invalid_envelope"), repaired
        del flaws[repaired]
    assert read(**flaws).intent == "network.ping"


def test_the_size_of_the_context() -> None:
    full = {"a": "x" * (16_384 - 8)}
    assert read(agent_context=full).agent_context == full
    assert refusal(agent_context={"a": "x" * (16_384 - 7)}) == ("payload_too_large", 413, [])
    assert refusal(agent_context={"a": "é" * 10_000})[0] == "payload_too_large"


def test_timestamps() -> None:
    now_s = NOON.timestamp()

    def code(timestamp: str, **fields: Any) -> str:
        try:
            check_timestamp(read(timestamp=timestamp, **fields), now_s=now_s, is_strict=True)
        except EnvelopeRefused as refused:
            return refused.code.value
        return ""

    for fine in ("12:00:00Z", "11:55:00Z", "12:01:00.000Z", "14:00+02:00"):
        assert code(f"2026-04-12T{fine}") == "", fine
    for old in ("11:54:59.999Z", "12:01:01Z", "12:00:00+02:00"):
        assert code(f"2026-04-12T{old}") == "timestamp_expired", old
    for edge in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"):
        assert code(edge) == "timestamp_expired", edge
    assert code("") == ""
    assert code("", intent="booking.confirm") == "invalid_envelope"
    check_timestamp(read(intent="booking.confirm"), now_s=now_s, is_strict=False)


def test_equal_moments_are_different_events() -> None:
    assert read(timestamp="2026-04-12T12:00:00Z").event != read(timestamp="2026-04-12T12:00:00.0Z").event


def test_the_response() -> None:
    context = {"trace": [1, {"é": None}], "large": 10**30}
    envelope = read(to="venue.la-brisa", agent_context=context)
    assert describe_response(envelope, describe_result({"tier": "pro"}), elapsed_s=0.13, now=NOON) == {
        "protocol": "openclaw/a2a/v1",
        "from": "venue.la-brisa",
        "to": "my_agent_001",
        "intent": "network.ping",
        "payload": {"status": "ok", "tier": "pro"},
        "agent_context": context,
        "ttl_ms": 4870,
        "timestamp": "2026-04-12T12:00:00.000Z",
    }
    assert describe_result({"status": "pending"}) == {"status": "pending"}
    assert describe_response(envelope, {}, elapsed_s=9, now=NOON)["ttl_ms"] == 0


def test_an_error_repeats_what_could_be_read() -> None:
    fields = LEAST | {"agent_context": {"a": 1}, "ttl_ms": 20_000, "unknown": 1}
    heading = find_heading(fields)
    assert (heading.sender, heading.to, heading.intent) == ("my_agent_001", "network:agnt", "network.ping")
    assert (heading.agent_context, heading.ttl_ms) == ({"a": 1}, 15_000)
    wrong = {"from": "<x>", "to": 7, "intent": [], "agent_context": {"a": "x" * 20_000}, "ttl_ms": "1"}
    for unreadable in (wrong, {}):
        response = describe_response(find_heading(unreadable), {}, elapsed_s=0, now=NOON)
        assert (response["from"], response["to"], response["intent"]) == ("network:agnt", "", "")
        assert (response["agent_context"], response["ttl_ms"]) == ({}, 5000)


def test_a_large_envelope_is_read_in_bounded_steps() -> None:
    many = {f"k{number}": number for number in range(5000)}
    code, status, fields = refusal(**many)
    assert (code, status, len(fields)) == ("invalid_envelope", 422, 16)
    assert body_refusal(json.dumps({"payload": {"a": [[]] * 20_000}}).encode()) == ("invalid_envelope", 400)


# Errors.

REFERENCE_ROW = re.compile(r"^\| `(\w+)` \| ([45]\d\d) \| (yes|no) \|", re.MULTILINE)


def test_an_error_as_the_protocol_shows_it() -> None:
    refused = EnvelopeRefused(ErrorCode.CIRCUIT_OPEN, "the venue failed too often", retry_after_s=211.2)
    error = {"code": "circuit_open", "message": "the venue failed too often", "retryable": True}
    assert describe_error(refused) == {"status": "error", "error": error | {"retry_after_s": 212}}
    assert error_headers(refused) == {"X-A2A-Error": "circuit_open", "Retry-After": "212"}
    assert refused.status == 503


def test_the_fields_that_an_error_names_are_bounded() -> None:
    refused = EnvelopeRefused(ErrorCode.INVALID_ENVELOPE, "unknown", fields=["x" * 1000] * 1000)
    error = describe_error(refused)["error"]
    assert (error["fields"], "retry_after_s" in error) == (["x" * 64] * 16, False)


def test_only_a_missing_key_is_asked_for() -> None:
    for code, expected in ((ErrorCode.UNAUTHORIZED, "Bearer"), (ErrorCode.INVALID_SIGNATURE, None)):
        assert error_headers(EnvelopeRefused(code, "no")).get("WWW-Authenticate") == expected


def test_the_reference_has_the_status_of_each_code() -> None:
    rows = REFERENCE_ROW.findall((ROOT / "docs" / "reference" / "agnt.md").read_text())
    assert set(MEANINGS) == set(ErrorCode)
    expected = {
        (code.value, str(meaning.status), "yes" if meaning.is_retryable else "no")
        for code, meaning in MEANINGS.items()
    }
    assert set(rows) == expected
