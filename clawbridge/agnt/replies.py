"""The replies of a venue to `booking.confirm` and `booking.cancel`: schemas, parsers, and words for their writers.

Needs Python alone: the hub reads replies by this module, the connector warns the owner of a program by it, and
docs/reference/agnt.md prints the schema.
"""

import json
from dataclasses import dataclass
from typing import Any

from clawbridge.agnt.fields import MAX_ID_CHARS, MAX_NOTE_CHARS, MAX_PARTY_SIZE, MAX_TIME_CHARS, Json

ACCEPTED = ("pending", "confirmed")
DECLINED, SLOT_UNAVAILABLE, RATE_LIMITED = "declined", "slot_unavailable", "rate_limited"
MAX_WAIT_S = 86_400
WAIT_S = 60
SCHEMA: Json = {
    "type": "object",
    "required": ["status"],
    "properties": {
        "status": {"type": "string", "enum": [*ACCEPTED, DECLINED, SLOT_UNAVAILABLE, RATE_LIMITED]},
        "reason": {"type": "string", "maxLength": MAX_NOTE_CHARS},
        "retry_after_s": {"type": "integer", "minimum": 1, "maximum": MAX_WAIT_S},
        "booking_id": {"type": "string", "maxLength": MAX_ID_CHARS},
        "slot_id": {"type": "string", "maxLength": MAX_ID_CHARS},
        "slot_time": {"type": "string", "maxLength": MAX_TIME_CHARS},
        "party_size": {"type": "integer", "minimum": 1, "maximum": MAX_PARTY_SIZE},
        "note": {"type": "string", "maxLength": MAX_NOTE_CHARS},
    },
}
EXAMPLES: tuple[tuple[str, Json], ...] = (
    ("to accept", {"status": "confirmed"}),
    ("to accept, with your own id of the booking", {"status": "confirmed", "booking_id": "T-104"}),
    ("to accept, and settle it later", {"status": "pending", "note": "we call back by noon"}),
    ("to decline", {"status": DECLINED, "reason": "at most eight at a table"}),
    ("if the slot is taken", {"status": SLOT_UNAVAILABLE, "reason": "full until ten"}),
    ("if you take no orders now", {"status": RATE_LIMITED, "retry_after_s": WAIT_S}),
)
HOW_TO_REPLY = "\n".join(
    [
        "Answer with one data part, or with JSON alone:",
        *(f"- {when}: {json.dumps(example)}" for when, example in EXAMPLES),
        "An accepting answer also has slot_id, slot_time, party_size or note, if they differ from the request.",
        "The caller reads a reason.",
    ]
)


CANCELLED, NOT_FOUND = "cancelled", "not_found"
CANCEL_SCHEMA: Json = {
    "type": "object",
    "required": ["status"],
    "properties": {"status": {"type": "string", "enum": [CANCELLED, NOT_FOUND]}},
}
HOW_TO_CANCEL = "\n".join(
    [
        "Free what booking_id reserved. Answer with one data part, or with JSON alone:",
        f"- when it is cancelled, also if it was before: {json.dumps({'status': CANCELLED})}",
        f"- if you have no such booking: {json.dumps({'status': NOT_FOUND})}",
    ]
)


class BadReply(ValueError):
    """A payload is no reply to what was asked. The text names the rule that it breaks."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VenueReply:
    """A venue's reply; an empty field or None: it says nothing of that."""

    status: str
    reason: str = ""
    retry_after_s: int = WAIT_S
    slot_id: str = ""
    slot_time: str = ""
    party_size: int | None = None
    note: str = ""
    booking_id: str = ""


def read_reply(payload: Json) -> VenueReply:
    """The reply to an order in a payload; keys that are not in `SCHEMA` are ignored.

    Raises:
        BadReply: a field is missing or wrong.
    """
    return VenueReply(**_read_fields(payload, SCHEMA))


def read_cancelled(payload: Json) -> str:
    """The status in the reply to a cancellation: the venue holds no such reservation any more.

    Raises:
        BadReply: a field is missing or wrong.
    """
    return str(_read_fields(payload, CANCEL_SCHEMA)["status"])


def _read_fields(payload: Json, schema: Json) -> Json:
    """The fields of a payload that its schema has."""
    for name in schema["required"]:
        if name not in payload:
            raise BadReply(f"{name} is missing")
    given = {name: payload[name] for name in schema["properties"] if name in payload}
    for name, value in given.items():
        if wanted := _find_fault(value, schema["properties"][name]):
            raise BadReply(f"{name}: want {wanted}")
    return given


def _find_fault(value: Any, rule: Json) -> str:
    """The rule that a value breaks, in words; empty: none."""
    if rule["type"] == "integer":
        fits = type(value) is int and rule["minimum"] <= value <= rule["maximum"]
        return "" if fits else f"a whole number from {rule['minimum']} to {rule['maximum']}"
    if "enum" in rule:
        return "" if value in rule["enum"] else "one of " + ", ".join(rule["enum"])
    fits = isinstance(value, str) and len(value) <= rule["maxLength"] and _is_sound(value)
    return "" if fits else f"text of at most {rule['maxLength']} characters, without NUL and lone surrogates"


def _is_sound(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= char <= "\udfff" for char in text)
