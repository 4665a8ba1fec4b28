"""What a venue reads in an envelope: signatures, negatives, copies, and fields that are wrong."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agnt.client import Ask, SeenSignatures, describe_ask, describe_response, find_ask, read_ask
from agnt.wire.errors import EnvelopeRefused, ErrorCode
from agnt.wire.signing import SigningKeys, read_key

VECTORS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "vectors.json").read_text())
K1 = b"test-signing-key-0001"
TS = 1_775_988_123
SENDER = "agnt_consumer_42"
V2 = {"query": "sunset dinner", "location": "canggu", "limit": 5}
V3 = {"query": "café ☕ 夕日 🦞", "user_note": 'naïve\tTab "q" \\ / </x>'}
V2_SIG = "bda690bfb079494f8be82160ce798ed45dc8a08437aed5f7a0fe7dc62fd4d484"


def envelope(payload: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"from": SENDER, "to": "la-brisa", "intent": "booking.search", "payload": payload} | more


def refusal(fields: dict[str, Any], now_s: float = TS, keys: SigningKeys | None = None) -> EnvelopeRefused:
    with pytest.raises(EnvelopeRefused) as refused:
        read_ask(fields, keys=keys, now_s=now_s)
    return refused.value


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_a_vector_is_read_without_its_signature(vector: dict[str, Any]) -> None:
    payload = json.loads(vector["payload"])
    keys, sender = SigningKeys(bytes.fromhex(vector["key"])), vector["sender"]
    ask = Ask(sender=sender, intent="booking.search", payload=payload)
    sent = json.loads(json.dumps(describe_ask(ask, secret=keys.current, at_s=vector["ts"])))
    read, signature = read_ask(sent, keys=keys, now_s=vector["ts"])
    assert signature == vector["sig"]
    assert read.payload == {name: value for name, value in payload.items() if name not in ("_ts", "_from", "_sig")}
    assert read.event == ask.event


@pytest.mark.parametrize(
    ("payload", "sig"),
    [
        pytest.param(V2, "244e1725116cc2ba72e91f5cef3202559a9be2a778293e5885cf4d5f82f98223", id="spaces"),
        pytest.param(V2, "018e122571123281153bba4bb50f7c11ccb9fdfe73a01a7165eceb89e30e6195", id="unsorted"),
        pytest.param(V2, "vaaQv7B5SU+L6CFgznmO1F3IoIQ3rtX3oP59xi/U1IQ=", id="base64"),
        pytest.param(V2, "be3dcbd58e8834085c577f4ef5a49403b7079dbebda40e8ad1c060ac50a6a238", id="limit 6"),
        pytest.param(V3, "f684b4983a3414d21b391cdf0c4024fc6be6f9439036b9581f2fc4389c4bddaa", id="not ASCII"),
        pytest.param(V2 | {"limit": 6}, V2_SIG, id="changed"),
        pytest.param(V2, None, id="unsigned"),
    ],
)
def test_what_must_not_verify(payload: dict[str, Any], sig: str | None) -> None:
    signed = payload | {"_ts": TS, "_from": SENDER} | ({} if sig is None else {"_sig": sig})
    assert refusal(envelope(signed), keys=SigningKeys(K1)).code == ErrorCode.INVALID_SIGNATURE
    assert read_ask(envelope(signed), keys=None, now_s=TS)[0].payload == payload  # no secret was given


def test_age_and_rotation() -> None:
    signed = envelope(V2 | {"_ts": TS, "_from": SENDER, "_sig": V2_SIG})
    for keys in (SigningKeys(K1), SigningKeys(b"new", K1, float("inf"))):
        assert read_ask(signed, keys=keys, now_s=TS + 300)[1] == V2_SIG
        assert refusal(signed, TS + 301, keys).code == ErrorCode.TIMESTAMP_EXPIRED
    assert refusal(signed, keys=SigningKeys(b"new")).code == ErrorCode.INVALID_SIGNATURE


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"from": None}, "from"),
        ({"from": "two words"}, "from"),
        ({"to": 7}, "to"),
        ({"intent": ""}, "intent"),
        ({"payload": []}, "payload"),
        ({"payload": None}, "payload"),
        ({"agent_context": "x"}, "agent_context"),
        ({"ttl_ms": 0}, "ttl_ms"),
        ({"ttl_ms": True}, "ttl_ms"),
        ({"ttl_ms": 1.5}, "ttl_ms"),
        ({"timestamp": None}, "timestamp"),
        ({"timestamp": "x" * 65}, "timestamp"),
        ({"via": None}, "via"),
        ({"via": []}, "via"),
    ],
)
def test_a_field_that_is_wrong_is_named_and_the_response_does_without_it(more: dict[str, Any], field: str) -> None:
    fields = envelope({}) | more
    refused = refusal(fields)
    assert (refused.code, refused.fields) == (ErrorCode.INVALID_ENVELOPE, [field])
    heading = find_ask(fields)
    assert heading.sender == ("" if field == "from" else SENDER)
    assert describe_response(heading, {"a": 1}, elapsed_s=0, now=datetime.now(UTC))["payload"] == {"a": 1}


def test_another_protocol_is_refused() -> None:
    assert refusal(envelope({}, protocol="agp/1")).code == ErrorCode.UNSUPPORTED_PROTOCOL
    assert refusal(envelope({}, protocol=None)).code == ErrorCode.UNSUPPORTED_PROTOCOL


def test_a_response_has_the_rest_of_the_time() -> None:
    ask, _ = read_ask(envelope({}, ttl_ms=90_000, agent_context={"a": 1}), keys=None, now_s=TS)
    now = datetime(2026, 4, 12, 10, 2, 3, tzinfo=UTC)
    assert describe_response(ask, {"table": 4}, elapsed_s=0.13, now=now) == {
        "protocol": "openclaw/a2a/v1",
        "from": "la-brisa",
        "to": SENDER,
        "intent": "booking.search",
        "payload": {"table": 4},
        "agent_context": {"a": 1},
        "ttl_ms": 14_870,
        "timestamp": "2026-04-12T10:02:03.000Z",
    }
    assert describe_response(ask, {}, elapsed_s=20, now=now)["ttl_ms"] == 0


def test_a_signature_belongs_to_one_event_for_360_seconds() -> None:
    seen = SeenSignatures()
    first = Ask(sender="x", intent="network.ping", timestamp="2026-04-12T10:02:03Z")
    other = Ask(sender="x", intent="network.ping", timestamp="2026-04-12T10:02:04Z")
    seen.check("a", first, TS)
    seen.check("a", first, TS + 359)  # again
    for now_s in (TS, TS + 359):
        with pytest.raises(EnvelopeRefused) as refused:
            seen.check("a", other, now_s)
        assert refused.value.code == ErrorCode.INVALID_SIGNATURE
    seen.check("b", other, TS)
    seen.check("a", other, TS + 360)


def test_secrets_are_text_or_hex() -> None:
    assert read_key("test-signing-key-0001") == K1
    assert read_key("hex:746573742d7369676e696e672d6b65792d30303031") == K1
    for wrong in ("", "hex:", "hex:0", "hex:xx"):
        with pytest.raises(ValueError, match=r"secret is empty|want hex"):
            read_key(wrong)
