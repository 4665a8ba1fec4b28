"""A venue reads envelopes: signatures, negatives, copies, and fields that are wrong."""

from datetime import UTC, datetime
from typing import Any

import pytest

from clawbridge.agnt import Ask, SeenSignatures, describe_response, find_ask, read_ask
from clawbridge.agnt.fields import EnvelopeRefused, ErrorCode
from clawbridge.agnt.signing import SigningKeys, read_key
from tests.agnt.test_signing import K1, SENDER, TS, V2, V2_SIG


def envelope(payload: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"from": SENDER, "to": "la-brisa", "intent": "booking.search", "payload": payload} | more


def refusal(fields: dict[str, Any], now_s: float = TS, keys: SigningKeys | None = None) -> EnvelopeRefused:
    with pytest.raises(EnvelopeRefused) as refused:
        read_ask(fields, keys=keys, now_s=now_s)
    return refused.value


def test_signatures_are_verified_when_there_is_a_secret() -> None:
    keys = SigningKeys(b"new", K1, float("inf"))
    good = envelope(V2 | {"_ts": TS, "_from": SENDER, "_sig": V2_SIG})
    assert read_ask(good, keys=keys, now_s=TS + 300)[1] == V2_SIG
    assert refusal(good, TS + 301, keys).code == ErrorCode.TIMESTAMP_EXPIRED
    assert refusal(good, keys=SigningKeys(b"new")).code == ErrorCode.INVALID_SIGNATURE
    for wrong in (good["payload"] | {"limit": 6}, V2):
        assert refusal(envelope(wrong), keys=keys).code == ErrorCode.INVALID_SIGNATURE
        assert read_ask(envelope(wrong), keys=None, now_s=TS)[0].payload["query"] == V2["query"]


WRONG: dict[str, list[Any]] = {
    "from": [None, "two words"],
    "to": [7],
    "intent": [""],
    "payload": [[], None],
    "agent_context": ["x"],
    "ttl_ms": [0, True, 1.5],
    "timestamp": [None, "x" * 65],
    "via": [None, []],
}


@pytest.mark.parametrize("field", WRONG)
def test_a_field_that_is_wrong_is_named_and_the_response_does_without_it(field: str) -> None:
    for value in WRONG[field]:
        fields = envelope({}) | {field: value}
        refused = refusal(fields)
        assert (refused.code, refused.fields) == (ErrorCode.INVALID_ENVELOPE, [field])
        heading = find_ask(fields)
        assert heading.sender == ("" if field == "from" else SENDER)
        assert describe_response(heading, {"a": 1}, elapsed_s=0, now=datetime.now(UTC))["payload"] == {"a": 1}


def test_another_protocol_is_refused() -> None:
    for other in ("agp/1", None):
        assert refusal(envelope({}, protocol=other)).code == ErrorCode.UNSUPPORTED_PROTOCOL


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


def test_secrets_are_text_or_hex(subtests: pytest.Subtests) -> None:
    assert read_key("test-signing-key-0001") == K1
    assert read_key("hex:746573742d7369676e696e672d6b65792d30303031") == K1
    for wrong in ("", "hex:", "hex:0", "hex:xx"):
        with subtests.test(secret=wrong), pytest.raises(ValueError, match=r"secret is empty|want hex"):
            read_key(wrong)
