"""Payloads of the four intents: values, defaults, limits, and unknown keys."""

from typing import Any

import pytest

from agnt.wire.envelope import read_envelope
from agnt.wire.payloads import AgntConfirmOrder, AgntListOrder, AgntSearchOrder, Order, read_payload
from clawbridge.agnt.fields import EnvelopeRefused


def read(intent: str, payload: dict[str, Any], *, is_strict: bool = True) -> tuple[Order, list[str]]:
    return read_payload(read_envelope({"from": "a", "intent": intent, "payload": payload}), is_strict=is_strict)


def refused_fields(intent: str, payload: dict[str, Any], *, is_strict: bool = True) -> list[str]:
    with pytest.raises(EnvelopeRefused) as refused:
        read(intent, payload, is_strict=is_strict)
    assert (refused.value.code.value, refused.value.status) == ("invalid_envelope", 422)
    return refused.value.fields


def test_defaults() -> None:
    assert read("venue.list", {}) == (AgntListOrder(limit=50), [])
    assert read("booking.search", {}) == (AgntSearchOrder(limit=10), [])
    confirm = AgntConfirmOrder(venue_id="la-brisa", slot_time="")
    assert read("booking.confirm", {"venue_id": "la-brisa"}) == (confirm, [])


def test_a_ping_ignores_its_payload() -> None:
    assert read("network.ping", {"any": [1]}) == (None, [])


def test_values() -> None:
    listing = {"category": "bar", "location": "canggu", "limit": 7}
    assert read("venue.list", listing)[0] == AgntListOrder(category="bar", location="canggu", limit=7)
    search = {"query": "sunset dinner", "location": "canggu", "limit": 5}
    assert read("booking.search", search)[0] == AgntSearchOrder(query="sunset dinner", location="canggu", limit=5)
    confirm = {"venue_id": "v", "slot_id": "s", "time": "19:30", "party_size": 2, "user_note": "window"}
    expected = AgntConfirmOrder(venue_id="v", slot_id="s", slot_time="19:30", party_size=2, user_note="window")
    assert read("booking.confirm", confirm)[0] == expected


def test_a_limit_above_the_largest_is_the_largest() -> None:
    for intent, most in (("venue.list", 100), ("booking.search", 25)):
        for given in (most, most + 1, 10**30):
            order, _ = read(intent, {"limit": given})
            assert isinstance(order, AgntListOrder | AgntSearchOrder)
            assert order.limit == most


WRONG: dict[str, list[Any]] = {
    "venue_id": ["", None, 7, "x" * 129],
    "slot_id": [1],
    "time": [1930],
    "slot_time": ["x" * 65],
    "party_size": [0, -2, 2.0, "2", True, 10**30],
    "user_note": ["x" * 501, {}],
}


def test_wrong_values_of_a_confirmation() -> None:
    for key, values in WRONG.items():
        for value in values:
            refused = refused_fields("booking.confirm", {"venue_id": "v"} | {key: value})
            assert refused == [f"payload.{key}"], value
    for limit in (0, -1, 1.0, "5", True, None):
        for intent in ("venue.list", "booking.search"):
            assert refused_fields(intent, {"limit": limit}) == ["payload.limit"], limit


def test_texts_that_are_too_long() -> None:
    assert refused_fields("venue.list", {"category": "x" * 81, "location": "x" * 121}) == [
        "payload.category",
        "payload.location",
    ]
    assert refused_fields("booking.search", {"query": "x" * 501}) == ["payload.query"]
    assert read("booking.confirm", {"venue_id": "v", "user_note": "é" * 500})


def test_a_confirmation_needs_a_venue() -> None:
    assert refused_fields("booking.confirm", {"party_size": 0}) == ["payload.venue_id", "payload.party_size"]


def test_both_names_of_the_time() -> None:
    for names in (["time"], ["slot_time"], ["time", "slot_time"]):
        order, _ = read("booking.confirm", {"venue_id": "v"} | dict.fromkeys(names, "19:30"))
        assert order == AgntConfirmOrder(venue_id="v", slot_time="19:30")
    both = {"venue_id": "v", "time": "19:30", "slot_time": "19:31"}
    assert refused_fields("booking.confirm", both) == ["payload.time", "payload.slot_time"]


TIMES = (
    *("19:30", "7:30", "19:30:00", "2026-12-24", "2026-12-24T19:30"),
    *("2026-12-24 19:30:00+08:00", "2026-12-24T11:30Z"),
)
NO_TIMES = (
    *("soon", "25:00", "19:61", "19", "2026-13-01", "2026-02-30", "2026-12-24T25:00", "19:30; DROP"),
    *("19:30\n", "1930-", "\u0661\u0669:30"),
)


def test_the_shape_of_a_time() -> None:
    for time in ("", *TIMES):
        order, _ = read("booking.confirm", {"venue_id": "v", "time": time})
        assert order == AgntConfirmOrder(venue_id="v", slot_time=time)
    for time in NO_TIMES:
        for name in ("time", "slot_time"):
            assert refused_fields("booking.confirm", {"venue_id": "v", name: time}) == [f"payload.{name}"], time


def test_unknown_keys() -> None:
    unknown = {"zeta": 1, "alpha": {"deep": []}, "limit": 3}
    assert refused_fields("venue.list", unknown) == ["payload.alpha", "payload.zeta"]
    assert read("venue.list", unknown, is_strict=False) == (AgntListOrder(limit=3), ["alpha", "zeta"])
    assert refused_fields("venue.list", unknown | {"limit": 0}, is_strict=False) == ["payload.limit"]


def test_dropped_keys_are_bounded() -> None:
    many = {f"{number:05}" + "x" * 90: number for number in range(1000)}
    _, dropped = read("venue.list", many, is_strict=False)
    assert (len(dropped), {len(key) for key in dropped}) == (16, {64})


def test_the_keys_of_the_signature_are_known() -> None:
    assert read("venue.list", {"_ts": 1, "_from": "a", "_sig": "00"}) == (AgntListOrder(), [])
