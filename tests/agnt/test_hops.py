"""Chains of hops without I/O: vectors, forms, what must not verify, and the client on both sides."""

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from agnt.service.networks import build_hop_name
from agnt.wire.envelope import read_envelope
from clawbridge.agnt import Ask, CallFailed, describe_ask, read_ask
from clawbridge.agnt.fields import EnvelopeRefused, ErrorCode, is_name
from clawbridge.agnt.signing import (
    Hop,
    SigningKeys,
    Via,
    add_hop,
    describe_via,
    read_via,
    sign_payload,
    verify_last_hop,
)

B, C = b"hop-b-key", b"hop-c-key"
TS = 1_775_988_124
V2 = {"query": "sunset dinner", "location": "canggu", "limit": 5}
# By openssl: of {"agent":"agg_b","prev":"<_sig>","ts":…}, and of {"agent":"agg_c","prev":"<sig of agg_b>","ts":…}.
SIG_OF_B = "657b752d79f1b6e5ff4b7917be00a1757e083774dc8c0f4016470a767d925140"
HOP_OF_B = Hop("agg_b", TS, "a7325e1aac9a22b9debea694dce1e1691275a53d45ecf15936dc0546afe519e3")
SIG_OF_C = "96ae1c187fba61b96aa4b6dd9fd5abface9217df04aa0e89641097f546d13841"
HOP_OF_C = Hop("agg_c", TS + 1, "6b95e1c7ae3883542c853546bad134dccb37d07e1d3a7a9b5eb3c3325d76679b")
CHAIN = (HOP_OF_B, HOP_OF_C)
ASK = Ask(
    sender="agg_b", intent="booking.search", payload=V2, timestamp="2026-04-12T10:02:03Z", origin="my_agent_001"
)
READERS: list[Callable[[dict[str, Any]], object]] = [
    read_envelope,
    lambda fields: read_ask(fields, keys=None, now_s=TS),
]


def refusal(via: Via, signature: str, keys: SigningKeys, now_s: float = TS) -> ErrorCode:
    with pytest.raises(EnvelopeRefused) as refused:
        verify_last_hop(via, signature, keys=keys, now_s=now_s)
    return refused.value.code


def hop(**fields: Any) -> dict[str, Any]:
    return HOP_OF_C._asdict() | fields


def test_vectors() -> None:
    assert sign_payload(V2, key=B, sender="agg_b", at_s=TS)["_sig"] == SIG_OF_B
    first = add_hop((), SIG_OF_B, agent="agg_b", key=B, at_s=TS)
    assert first == (HOP_OF_B,)
    assert sign_payload(V2, key=C, sender="agg_c", at_s=TS + 1)["_sig"] == SIG_OF_C
    assert add_hop(first, SIG_OF_C, agent="agg_c", key=C, at_s=TS + 1) == CHAIN
    assert read_via({"via": describe_via(CHAIN)}) == CHAIN
    assert read_via({}) == ()


def test_the_last_hop_is_verified_and_those_before_are_not() -> None:
    verify_last_hop((HOP_OF_B,), SIG_OF_B, keys=SigningKeys(B), now_s=TS)
    verify_last_hop(CHAIN, SIG_OF_C, keys=SigningKeys(C), now_s=TS)
    verify_last_hop(CHAIN, SIG_OF_C, keys=SigningKeys(b"new", C, TS + 1), now_s=TS)
    stranger = (HOP_OF_B._replace(agent="stranger", ts=1), HOP_OF_C)
    verify_last_hop(stranger, SIG_OF_C, keys=SigningKeys(C), now_s=TS)


@pytest.mark.parametrize(
    ("via", "signature", "keys"),
    [
        pytest.param((HOP_OF_B,), SIG_OF_C, SigningKeys(B), id="other-payload"),
        pytest.param((HOP_OF_B,), SIG_OF_B, SigningKeys(C), id="other-key"),
        pytest.param((HOP_OF_B._replace(agent="agg_x"),), SIG_OF_B, SigningKeys(B), id="other-agent"),
        pytest.param((HOP_OF_B._replace(ts=TS + 1),), SIG_OF_B, SigningKeys(B), id="other-time"),
        pytest.param((HOP_OF_C,), SIG_OF_C, SigningKeys(C), id="hop-removed"),
        pytest.param((HOP_OF_B._replace(sig="0" * 64), HOP_OF_C), SIG_OF_C, SigningKeys(C), id="hop-replaced"),
        pytest.param(CHAIN, SIG_OF_C, SigningKeys(b"new", C, TS), id="previous-key-ended"),
    ],
)
def test_what_must_not_verify(via: Via, signature: str, keys: SigningKeys) -> None:
    assert refusal(via, signature, keys) == ErrorCode.INVALID_SIGNATURE


@pytest.mark.parametrize(("after_s", "is_taken"), [(-61, False), (-60, True), (300, True), (301, False)])
def test_age(after_s: float, *, is_taken: bool) -> None:
    keys, now_s = SigningKeys(C), HOP_OF_C.ts + after_s
    if is_taken:
        verify_last_hop(CHAIN, SIG_OF_C, keys=keys, now_s=now_s)
    else:
        assert refusal(CHAIN, SIG_OF_C, keys, now_s) == ErrorCode.TIMESTAMP_EXPIRED


WRONG_HOPS: dict[str, list[Any]] = {
    "agent": ["agg c", None],
    "ts": [True, 1.5, str(TS), -1, 10**300],
    "sig": [HOP_OF_C.sig.upper(), HOP_OF_C.sig[:-1], "é" * 64, None],
}
WRONG_CHAINS: list[Any] = [
    *(None, {}, [], [hop()] * 5, ["agg_c"], [hop(more=1)], [{"agent": "agg_c", "ts": TS}]),
    [hop(), hop(agent="agg_b")],  # the last is not the sender
    *([hop(**{name: value}), hop()] for name, values in WRONG_HOPS.items() for value in values),
]


def test_wrong_chains(subtests: pytest.Subtests) -> None:
    for via, read in product(WRONG_CHAINS, READERS):
        with subtests.test(via=via, read=read.__name__):
            with pytest.raises(EnvelopeRefused) as refused:
                read({"from": "agg_c", "intent": "network.ping", "via": via})
            assert (refused.value.code, refused.value.fields) == (ErrorCode.INVALID_ENVELOPE, ["via"])


def test_an_event_is_the_origins(subtests: pytest.Subtests) -> None:
    fields = {"from": "agg_c", "intent": "network.ping", "timestamp": "2026-04-12T10:02:03Z"}
    passed_on = fields | {"via": describe_via(CHAIN)}
    named = {"agent_context": {"origin": "my_agent_001"}}
    for given, origin in ((passed_on | named, "my_agent_001"), (passed_on, "agg_c"), (fields | named, "agg_c")):
        assert read_envelope(given).event == (origin, "network.ping", "2026-04-12T10:02:03Z")
        assert read_ask(given, keys=None, now_s=TS)[0].event == read_envelope(given).event
    for origin in ("two words", "", None, 7):
        with subtests.test(origin=origin):
            wrong = passed_on | {"agent_context": {"origin": origin}}
            for read in READERS:
                with pytest.raises(EnvelopeRefused) as refused:
                    read(wrong)
                assert refused.value.fields == ["agent_context"]
            assert read_envelope(fields | {"agent_context": {"origin": origin}}).event[0] == "agg_c"  # never read


def test_the_client_passes_an_ask_on_and_reads_it() -> None:
    sent = json.loads(json.dumps(describe_ask(ASK, secret=B, at_s=TS)))
    assert (sent["from"], sent["agent_context"]) == ("agg_b", {"origin": "my_agent_001"})
    assert (sent["payload"]["_sig"], sent["via"]) == (SIG_OF_B, [HOP_OF_B._asdict()])
    read, signature = read_ask(sent, keys=SigningKeys(B), now_s=TS)
    assert (read.origin, read.via, read.event, signature) == ("my_agent_001", (HOP_OF_B,), ASK.event, SIG_OF_B)
    onward = replace(read, sender="agg_c", origin=read.event[0])
    again = describe_ask(onward, secret=C, at_s=TS + 1)
    assert (again["payload"]["_sig"], again["via"]) == (SIG_OF_C, describe_via(CHAIN))
    assert read_ask(again, keys=SigningKeys(C), now_s=TS)[0].via == CHAIN


@pytest.mark.parametrize(
    ("change", "code"),
    [
        pytest.param({"via": [HOP_OF_B._replace(sig="0" * 64)._asdict()]}, ErrorCode.INVALID_SIGNATURE, id="hop"),
        pytest.param({"payload": V2}, ErrorCode.INVALID_SIGNATURE, id="unsigned"),
    ],
)
def test_a_venue_verifies_the_last_hop(change: dict[str, Any], code: ErrorCode) -> None:
    sent = describe_ask(ASK, secret=B, at_s=TS)
    with pytest.raises(EnvelopeRefused) as refused:
        read_ask(sent | change, keys=SigningKeys(B), now_s=TS)
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("more", "secret", "code"),
    [
        pytest.param({"via": (HOP_OF_B,) * 4}, B, ErrorCode.ROUTING_LOOP, id="four-hops"),
        pytest.param({}, b"", ErrorCode.INVALID_ENVELOPE, id="no-secret"),
        pytest.param({"origin": "two words"}, B, ErrorCode.INVALID_ENVELOPE, id="no-name"),
        pytest.param({"origin": "", "via": (HOP_OF_B,)}, B, ErrorCode.INVALID_ENVELOPE, id="no-origin"),
    ],
)
def test_what_the_client_does_not_pass_on(more: dict[str, Any], secret: bytes, code: ErrorCode) -> None:
    ask = Ask(**({"sender": "agg_c", "intent": "network.ping", "origin": "my_agent_001"} | more))
    with pytest.raises(CallFailed) as failed:
        describe_ask(ask, secret=secret, at_s=TS)
    assert (failed.value.code, failed.value.was_sent) == (code, False)


@pytest.mark.parametrize(
    ("public_url", "expected"),
    [
        ("https://hub.example.org", "hub.example.org:alice"),
        ("http://127.0.0.1:8787", "127.0.0.1:8787:alice"),
        ("https://example.org/hub", "example.org:hub:alice"),
        ("http://[::1]:8787", ":1:8787:alice"),
    ],
)
def test_the_name_of_a_network_in_a_chain(public_url: str, expected: str) -> None:
    assert build_hop_name("alice", public_url) == expected
    assert is_name(build_hop_name("x" * 64, public_url + "x" * 200))
