"""The payloads of the four intents: reads and checks what a handler gets. No I/O."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from agnt.envelope import Envelope, refuse_fields
from agnt.errors import MAX_FIELD_CHARS, MAX_NAMED_FIELDS, Json
from agnt.wire import PING, SIGNATURE_KEYS

MAX_CATEGORY_CHARS = 80
MAX_LOCATION_CHARS = 120
MAX_QUERY_CHARS = 500
MAX_ID_CHARS = 128
MAX_TIME_CHARS = 64
MAX_NOTE_CHARS = 500
MAX_PARTY_SIZE = 10_000
DEFAULT_LISTED, MAX_LISTED = 50, 100
DEFAULT_FOUND, MAX_FOUND = 10, 25


class Ping(Struct, frozen=True):
    """`network.ping`: whatever its payload holds is ignored."""


class VenueList(Struct, frozen=True, kw_only=True):
    """`venue.list`. Empty text: no condition. `location`: a part of the area or the city."""

    category: str = ""
    location: str = ""
    limit: int = DEFAULT_LISTED


class Search(Struct, frozen=True, kw_only=True):
    """`booking.search`. Empty text: no condition."""

    query: str = ""
    location: str = ""
    limit: int = DEFAULT_FOUND


class Confirm(Struct, frozen=True, kw_only=True):
    """`booking.confirm`. `venue_id`: slug or UUID. `party_size`: None without one."""

    venue_id: str
    slot_id: str = ""
    slot_time: str = ""
    party_size: int | None = None
    user_note: str = ""


Order = Ping | VenueList | Search | Confirm


def read_payload(envelope: Envelope, *, is_strict: bool) -> tuple[Order, list[str]]:
    """What an envelope asks for, and the first 16 unknown keys that were dropped: none where it is strict.

    Raises:
        EnvelopeRefused: `invalid_envelope`.
    """
    if envelope.intent == PING:
        return Ping(), []
    shape = _SHAPES[envelope.intent]
    unknown = sorted(envelope.payload.keys() - shape.checks.keys() - SIGNATURE_KEYS)
    if unknown and is_strict:
        raise refuse_fields("the payload has unknown keys", [f"payload.{key}" for key in unknown])
    given = {key: value for key, value in envelope.payload.items() if key in shape.checks}
    wrong = [key for key in shape.required if key not in given]
    wrong += [key for key, check in shape.checks.items() if key in given and not check(given[key])]
    if wrong:
        raise refuse_fields(f"missing or wrong: {', '.join(wrong)}", [f"payload.{key}" for key in wrong])
    dropped = [key[:MAX_FIELD_CHARS] for key in unknown[:MAX_NAMED_FIELDS]]
    return shape.type(**shape.settle(given)), dropped


def _text(max_chars: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and len(value) <= max_chars


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_party(value: Any) -> bool:
    return _is_count(value) and value <= MAX_PARTY_SIZE


def _is_venue(value: Any) -> bool:
    return isinstance(value, str) and 1 <= len(value) <= MAX_ID_CHARS


def _clamp(max_limit: int) -> Callable[[Json], Json]:
    return lambda given: given | ({"limit": min(given["limit"], max_limit)} if "limit" in given else {})


def _join_times(given: Json) -> Json:
    """`time` and `slot_time` are one field with two names."""
    others = {key: value for key, value in given.items() if key not in ("time", "slot_time")}
    time = given.get("time", given.get("slot_time", ""))
    if given.get("slot_time", time) != time:
        raise refuse_fields("time and slot_time differ", ["payload.time", "payload.slot_time"])
    return others | {"slot_time": time}


class _Shape(NamedTuple):
    """`checks`: whether the value of a key is right. `settle`: what `type` takes, from what was given."""

    type: type[VenueList | Search | Confirm]
    settle: Callable[[Json], Json]
    checks: Mapping[str, Callable[[Any], bool]]
    required: tuple[str, ...] = ()


_LOCATION = {"location": _text(MAX_LOCATION_CHARS), "limit": _is_count}
_SHAPES = {
    "venue.list": _Shape(VenueList, _clamp(MAX_LISTED), {"category": _text(MAX_CATEGORY_CHARS), **_LOCATION}),
    "booking.search": _Shape(Search, _clamp(MAX_FOUND), {"query": _text(MAX_QUERY_CHARS), **_LOCATION}),
    "booking.confirm": _Shape(
        Confirm,
        _join_times,
        {
            "venue_id": _is_venue,
            "slot_id": _text(MAX_ID_CHARS),
            "time": _text(MAX_TIME_CHARS),
            "slot_time": _text(MAX_TIME_CHARS),
            "party_size": _is_party,
            "user_note": _text(MAX_NOTE_CHARS),
        },
        required=("venue_id",),
    ),
}
