"""The payloads of the intents: their shapes, as described and as checked, and what a handler gets.

The module does no I/O.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import FieldInfo

from agnt.wire.envelope import Envelope, make_field_error
from clawbridge.agnt.fields import (
    CANCEL,
    CONFIRM,
    MAX_FIELD_CHARS,
    MAX_ID_CHARS,
    MAX_NAMED_FIELDS,
    MAX_NOTE_CHARS,
    MAX_PARTY_SIZE,
    MAX_TIME_CHARS,
    PING,
    SIGNATURE_KEYS,
    STATUS,
    Json,
)

MAX_CATEGORY_CHARS = 80
MAX_LOCATION_CHARS = 120
MAX_QUERY_CHARS = 500
_TIME_OF_DAY = r"([01]?[0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?"
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2})?"
# Without the last group, `$` also matches before a line break at the end.
TIME_PATTERN = rf"^({_TIME_OF_DAY}|{_DAY}([T ]{_TIME})?)?$(?!\n)"
DEFAULT_LISTED, MAX_LISTED = 50, 100
DEFAULT_FOUND, MAX_FOUND = 10, 25


Category = Annotated[str, Meta(max_length=MAX_CATEGORY_CHARS, description="Exactly this category.")]
Location = Annotated[str, Meta(max_length=MAX_LOCATION_CHARS, description="A part of the area or the city.")]
SearchQuery = Annotated[
    str,
    Meta(
        max_length=MAX_QUERY_CHARS,
        description="Words of the name, slug, agent id, area, city, category, tags or description.",
    ),
]
SearchLocation = Annotated[
    str, Meta(max_length=MAX_LOCATION_CHARS, description="Words of the area or the city, or how such words begin.")
]
ListLimit = Annotated[int, Meta(ge=1, description=f"Above {MAX_LISTED} it counts as that.")]
SearchLimit = Annotated[int, Meta(ge=1, description=f"Above {MAX_FOUND} it counts as that.")]
SlotTime = Annotated[
    str,
    Meta(
        max_length=MAX_TIME_CHARS,
        pattern=TIME_PATTERN,
        description="`19:30`, or a day of ISO 8601, also with a time.",
    ),
]


class _SignedPayload(
    Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename={"signed_at": "_ts", "signed_by": "_from", "nonce": "_nonce", "signature": "_sig"},
):
    signed_at: Annotated[int, Meta(description="Unix seconds.")] | UnsetType = UNSET
    signed_by: Annotated[str, Meta(description="The `from` of the envelope.")] | UnsetType = UNSET
    nonce: Annotated[Any, Meta(description="Any value, so that equal payloads have two signatures.")] = None
    signature: (
        Annotated[str, Meta(pattern="^[0-9a-f]{64}$", description="HMAC-SHA256 of the canonical JSON.")]
        | UnsetType
    ) = UNSET


class AgntListOrder(_SignedPayload, frozen=True, kw_only=True):
    """The payload of `venue.list`."""

    category: Category = ""
    location: Location = ""
    limit: ListLimit = DEFAULT_LISTED


class AgntSearchOrder(_SignedPayload, frozen=True, kw_only=True):
    """The payload of `booking.search`."""

    query: SearchQuery = ""
    location: SearchLocation = ""
    limit: SearchLimit = DEFAULT_FOUND


class AgntConfirmOrder(_SignedPayload, frozen=True, kw_only=True):
    """The payload of `booking.confirm`. `venue_id`: the id or the slug. `time` is another name of `slot_time`."""

    venue_id: Annotated[str, Meta(min_length=1, max_length=MAX_ID_CHARS)]
    slot_id: Annotated[str, Meta(max_length=MAX_ID_CHARS)] = ""
    slot_time: SlotTime | UnsetType = UNSET
    time: SlotTime | UnsetType = UNSET
    party_size: Annotated[int, Meta(ge=1, le=MAX_PARTY_SIZE)] | UnsetType = UNSET
    user_note: Annotated[str, Meta(max_length=MAX_NOTE_CHARS)] = ""


class AgntBookingOrder(_SignedPayload, frozen=True, kw_only=True):
    """The payload of `booking.status` and `booking.cancel`."""

    booking_id: Annotated[str, Meta(min_length=1, max_length=MAX_ID_CHARS, description="The UUID of the booking.")]


# A payload that was read; None: that of `network.ping`, whatever it holds.
Order = AgntListOrder | AgntSearchOrder | AgntConfirmOrder | AgntBookingOrder | None


def read_payload(envelope: Envelope, *, is_strict: bool) -> tuple[Order, list[str]]:
    """The order in an envelope, and the first 16 unknown keys that were dropped: none where it is strict.

    Raises:
        EnvelopeRefused: `invalid_envelope`.
    """
    if envelope.intent == PING:
        return None, []
    shape, settle = _READERS[envelope.intent]
    fields = _FIELDS[shape]
    unknown = sorted(envelope.payload.keys() - fields.keys() - SIGNATURE_KEYS)
    if unknown and is_strict:
        raise make_field_error("the payload has unknown keys", [f"payload.{key}" for key in unknown])
    given = {key: value for key, value in envelope.payload.items() if key in fields}
    wrong = [key for key, field in fields.items() if not _fits(field, given)]
    if wrong:
        raise make_field_error(f"missing or wrong: {', '.join(wrong)}", [f"payload.{key}" for key in wrong])
    dropped = [key[:MAX_FIELD_CHARS] for key in unknown[:MAX_NAMED_FIELDS]]
    return shape(**settle(given)), dropped


def _fits(field: FieldInfo, given: Json) -> bool:
    """True if a payload has a right value in a field, or may leave the field out."""
    if field.encode_name not in given:
        return not field.required
    try:
        msgspec.convert(given[field.encode_name], field.type)
    except msgspec.ValidationError:
        return False
    return True


def _clamp(max_limit: int) -> Callable[[Json], Json]:
    return lambda given: given | ({"limit": min(given["limit"], max_limit)} if "limit" in given else {})


def _join_times(given: Json) -> Json:
    """`time` and `slot_time` are one field with two names."""
    others = {key: value for key, value in given.items() if key not in ("time", "slot_time")}
    time = given.get("time", given.get("slot_time", ""))
    if given.get("slot_time", time) != time:
        raise make_field_error("time and slot_time differ", ["payload.time", "payload.slot_time"])
    if time and not _is_time(time):
        raise make_field_error(
            "the time: want 19:30, 2026-12-24 or 2026-12-24T19:30",
            [f"payload.{key}" for key in ("time", "slot_time") if key in given],
        )
    return others | {"slot_time": time}


def _is_time(text: str) -> bool:
    """True if a text of the right shape is a time of day, or a day that is in the calendar, with a time or not."""
    try:
        return ":" in text[:3] or bool(datetime.fromisoformat(text))
    except ValueError:
        return False


_READERS: Mapping[
    str, tuple[Any, Callable[[Json], Json]]
] = {  # the shape of an intent, and what settles its fields
    "venue.list": (AgntListOrder, _clamp(MAX_LISTED)),
    "booking.search": (AgntSearchOrder, _clamp(MAX_FOUND)),
    CONFIRM: (AgntConfirmOrder, _join_times),
    STATUS: (AgntBookingOrder, dict),
    CANCEL: (AgntBookingOrder, dict),
}
_FIELDS: Mapping[Any, Mapping[str, FieldInfo]] = {
    shape: {one.encode_name: one for one in msgspec.structs.fields(shape) if one.encode_name not in SIGNATURE_KEYS}
    for shape, _ in _READERS.values()
}
