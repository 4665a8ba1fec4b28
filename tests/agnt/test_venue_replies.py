"""The hub reads the reply of a venue's agent, without I/O."""

import json
import re
from typing import Any

import pytest

from agents.transcript.pieces import ArtifactPiece, Part
from agnt.service.asks.replies import PAUSED, TAKEN, VenueFailed, find_data, read_confirmation, read_data
from clawbridge.agnt import Ask
from clawbridge.agnt.breakers import Blame
from clawbridge.agnt.replies import ACCEPTED, EXAMPLES, HOW_TO_REPLY, SCHEMA, VenueReply, read_reply
from lab import ROOT
from lab.frames import Json
from tests.agnt.lookalike import respond
from tests.agnt.wire import envelope

ASKED = envelope("booking.confirm", {"venue_id": "v"}, to="agent-v")
ASK = Ask(sender=ASKED["from"], to="agent-v", intent="booking.confirm", payload=ASKED["payload"])
CONFIRMED: Json = {"status": "confirmed"}


def part(*values: Any) -> ArtifactPiece:
    return ArtifactPiece("a", tuple(Part(data=value) for value in values))


def envelope_of(payload: Json, **fields: Any) -> ArtifactPiece:
    """A response envelope."""
    return part(respond(ASKED, payload) | fields)


def error(code: str) -> Json:
    return {"status": "error", "error": {"code": code, "message": "the oven of 10.0.0.7 burns"}}


def read(reply: ArtifactPiece | str) -> Json:
    """The confirmation in a reply of data parts, or of text alone."""
    pieces, text = ([], reply) if isinstance(reply, str) else ([reply], "")
    return read_confirmation(read_data(find_data(pieces, text), ASK))


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(part({"status": "pending", "booking_id": "b-1", "venue": {"slug": "v"}}), id="network"),
        pytest.param(envelope_of(CONFIRMED), id="response-envelope"),
        pytest.param('{"status": "confirmed"}', id="text"),
        pytest.param(part(CONFIRMED | {"more": [1]}), id="more-keys"),
    ],
)
def test_what_confirms(reply: ArtifactPiece | str) -> None:
    answer = read_reply(read(reply))
    assert answer.status in ACCEPTED
    assert answer == VenueReply(status=answer.status, booking_id=answer.booking_id)


@pytest.mark.parametrize(
    ("reply", "code", "counts"),
    [
        pytest.param(part({"status": "slot_unavailable"}), "slot_unavailable", False, id="slot-unavailable"),
        pytest.param(envelope_of(error("slot_unavailable")), "slot_unavailable", False, id="error-slot"),
        pytest.param(envelope_of(error("invalid_envelope")), "venue_unreachable", False, id="error-4xx"),
        pytest.param(part({"status": "declined"}), "slot_unavailable", False, id="declined"),
        pytest.param(part({"status": "rate_limited"}), "rate_limited", False, id="rate-limited"),
        pytest.param(envelope_of(error("rate_limited")), "rate_limited", False, id="error-rate"),
        pytest.param(envelope_of(error("ttl_exceeded")), "ttl_exceeded", True, id="error-ttl"),
        pytest.param(part(error("internal_error")), "venue_unreachable", True, id="error-alone"),
        pytest.param(envelope_of(error("no such code")), "venue_unreachable", True, id="error-unknown"),
        pytest.param(envelope_of(CONFIRMED, intent="venue.list"), "venue_unreachable", True, id="other-intent"),
        pytest.param(envelope_of(CONFIRMED, to="other"), "venue_unreachable", True, id="other-recipient"),
        pytest.param(envelope_of(CONFIRMED, protocol="agp/1"), "venue_unreachable", True, id="other-protocol"),
        pytest.param(part({}), "venue_unreachable", True, id="empty"),
        pytest.param(part([CONFIRMED]), "venue_unreachable", True, id="array"),
        pytest.param(part("confirmed"), "venue_unreachable", True, id="string"),
        pytest.param(part(CONFIRMED, CONFIRMED), "venue_unreachable", True, id="two-data-parts"),
        pytest.param(part(CONFIRMED | {"x": "y" * 262_144}), "venue_unreachable", True, id="too-large"),
        pytest.param("Yes, confirmed!", "venue_unreachable", True, id="words"),
        pytest.param('{"status":"confirmed","status":"confirmed"}', "venue_unreachable", True, id="twins"),
        pytest.param("", "venue_unreachable", True, id="nothing"),
        pytest.param("{" * 2000, "venue_unreachable", True, id="deep"),
    ],
)
def test_what_does_not_confirm(reply: ArtifactPiece | str, code: str, *, counts: bool) -> None:
    with pytest.raises(VenueFailed) as failure:
        read(reply)
    assert (failure.value.refusal.code, failure.value.blame.is_failure) == (code, counts)
    if code not in ("slot_unavailable", "rate_limited"):
        assert "10.0.0.7" not in json.dumps(failure.value.refusal.args)
        assert failure.value.describe()["rule"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"status": "yes"},
        {"party_size": True},
        {"party_size": 2.0},
        {"party_size": 0},
        {"note": "x" * 501},
        {"slot_id": None},
        *({name: text} for name in ("slot_id", "slot_time", "note") for text in ("a\0b", "\ud800")),
    ],
)
def test_a_field_that_no_booking_keeps_is_no_confirmation(wrong: Json) -> None:
    with pytest.raises(VenueFailed) as failure:
        read_confirmation(CONFIRMED | wrong)
    assert failure.value.blame is Blame.VENUE
    assert next(name for name in wrong) in failure.value.describe()["rule"]


@pytest.mark.parametrize(
    ("reply", "words", "wait_s"),
    [
        ({"status": "slot_unavailable", "note": "full until ten"}, "full until ten", 0),
        ({"status": "declined", "reason": "no dogs"}, "no dogs", 0),
        ({"status": "declined"}, TAKEN, 0),
        ({"status": "rate_limited", "retry_after_s": 7}, PAUSED, 7),
        ({"status": "rate_limited", "reason": "we rest"}, "we rest", 60),
    ],
)
def test_a_venue_says_why_it_does_not_accept(reply: Json, words: str, wait_s: int) -> None:
    with pytest.raises(VenueFailed) as failure:
        read_confirmation(reply)
    assert (str(failure.value.refusal), failure.value.refusal.retry_after_s) == (words, wait_s)
    assert not failure.value.is_fault


@pytest.mark.parametrize(("when", "example"), EXAMPLES)
def test_each_example_is_a_reply(when: str, example: Json) -> None:
    assert read_reply(example).status == example["status"]
    assert f"{when}: {json.dumps(example)}" in HOW_TO_REPLY


def test_the_reference_prints_the_schema_and_the_examples() -> None:
    page = (ROOT / "docs" / "reference" / "agnt.md").read_text()
    section = page.partition("\n## Replies of venues\n")[2].partition("\n## ")[0]
    schema, examples = re.findall(r"```json\n(.*?)```", section, re.DOTALL)
    assert json.loads(schema) == SCHEMA
    assert [json.loads(line) for line in examples.splitlines()] == [example for _, example in EXAMPLES]


def test_a_log_has_no_secrets_of_what_a_venue_said() -> None:
    said = {"status": "maybe", "_sig": "ab" * 32, "password": "hunter22", "note": "Bearer agnt_live_0123456789"}
    with pytest.raises(VenueFailed) as failure:
        read_confirmation(said)
    shown = failure.value.describe()["venue_said"]
    assert '"status": "maybe"' in shown
    for secret in ("abababab", "hunter22", "0123456789"):
        assert secret not in shown
