"""The envelopes of `lab.bench.agnt`, and the report of its runs."""

import json
import time

import pytest

from agnt.wire.envelope import Envelope, read_envelope
from agnt.wire.payloads import read_payload
from clawbridge.agnt.signing import SigningKeys, verify_payload
from lab.bench.agnt import BARE, CONFIRM, LIST, PING, SEARCH, AgntFindings, report
from lab.bench.agnt_requests import Envelopes, make_kinds
from lab.bench.load import LoadRun
from tests.bench.runs import run

SECRET = "ab" * 32
KINDS = make_kinds(100)


def sent(requests: Envelopes, number: int) -> Envelope:
    """The envelope of a request, as the hub reads it."""
    head, _, body = requests.fill(number).partition(b"\r\n\r\n")
    assert f"Content-Length: {len(body)}".encode() in head.splitlines()
    return read_envelope(json.loads(body))


def found(runs: dict[str, LoadRun], rated: dict[str, tuple[LoadRun, LoadRun]]) -> dict[str, list[str]]:
    """The goals by name: measured, and whether met."""
    result = report(AgntFindings(100, runs, rated, 0.01, [1.0, 5.0, 2.0], [1.2, 5.3, 2.1]))
    assert "more within a round: 0.200 ms" in result.text
    return {goal[0].partition(":")[0]: goal[-2:] for goal in result.goals}


@pytest.mark.parametrize("kind", KINDS)
def test_each_request_is_a_sound_envelope_of_its_own_event(kind: str) -> None:
    intent, make_payload, answered = KINDS[kind]
    first, other = (Envelopes("agnt_live_x", intent, make_payload, answered) for _ in range(2))
    envelopes = [sent(first, 1), sent(first, 2), sent(other, 1)]
    assert len({(one.sender, one.intent, one.timestamp) for one in envelopes}) == len(envelopes)
    for one in envelopes:
        assert read_payload(one, is_strict=True)[1] == []


def test_searches_are_new_again_and_again() -> None:
    _, make_payload, _ = KINDS[SEARCH]
    assert len({make_payload(number)["query"] for number in range(3000)}) == 3000


def test_signed_requests_verify_and_have_each_another_signature() -> None:
    intent, make_payload, answered = KINDS[PING]
    requests = Envelopes("agnt_live_x", intent, make_payload, answered, secret=SECRET)
    keys = SigningKeys(bytes.fromhex(SECRET))
    envelopes = [sent(requests, number) for number in range(3)]
    signatures = {
        verify_payload(one.payload, keys=keys, sender=one.sender, now_s=time.time()) for one in envelopes
    }
    assert len(signatures) == 3


def test_goals() -> None:
    runs = {BARE: run(9000), PING: run(410), SEARCH: run(390), CONFIRM: run(60)}
    rated = {
        SEARCH: (run(700, p95_ms=30.0, rate=700), run(700, rate=700)),
        LIST: (run(699, errors=1, rate=700), run(700, rate=700)),
    }
    assert found(runs, rated) == {
        f"{SEARCH}, 700 a second": ["30.00", "NOT MET"],
        f"{LIST}, 700 a second": ["inf", "NOT MET"],
        PING: ["410.00", "met"],
        SEARCH: ["390.00", "NOT MET"],
        CONFIRM: ["60.00", "met"],
        "verification of a signature": ["0.01", "met"],
    }
