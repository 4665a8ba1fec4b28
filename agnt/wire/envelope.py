"""The AGPEnvelope: reads and checks a request in the order of the protocol. The module does no I/O.

The first flaw answers. Between these steps the caller does what needs rows: keys after `read_body`, limits after
`read_envelope`, signature and known tuples before `check_timestamp`.
`read_payload` (`agnt.wire.payloads`) is last.
"""

import re
from datetime import datetime
from typing import Any

import msgspec

from clawbridge.agnt import Ask, find_ask
from clawbridge.agnt.fields import (
    CONFIRM,
    DEFAULT_TTL_MS,
    INTENTS,
    MALFORMED,
    MAX_BODY_BYTES,
    MAX_CONTEXT_BYTES,
    MAX_TIMESTAMP_CHARS,
    NETWORK,
    PROTOCOL,
    EnvelopeRefused,
    ErrorCode,
    Json,
    is_name,
    is_ttl,
)
from clawbridge.agnt.serving import make_ask
from clawbridge.agnt.signing import check_age, has_valid_origin, is_valid_via
from kit import strict_json
from kit.strict_json import UnreadableText

_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d([.,]\d+)?)?(Z|[+-]\d\d:?\d\d)", re.ASCII)
_FIELDS = frozenset(
    {"protocol", "from", "from_agent", "to", "intent", "payload", "agent_context", "ttl_ms", "timestamp", "via"}
)


Envelope = Ask  # the hub asks venues and other hubs by the same fields by which callers ask this hub


def read_body(body: bytes, content_type: str) -> tuple[Json, str]:
    """The fields of an envelope and its text.

    Raises:
        EnvelopeRefused: `payload_too_large`, `invalid_envelope`.
    """
    if len(body) > MAX_BODY_BYTES:
        raise EnvelopeRefused(ErrorCode.PAYLOAD_TOO_LARGE, f"an envelope holds at most {MAX_BODY_BYTES} bytes")
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise _make_body_error("want the content type application/json")
    try:
        fields = strict_json.read(body)
    except UnreadableText as unreadable:
        raise _make_body_error(str(unreadable)) from None
    if not isinstance(fields, dict):
        raise _make_body_error("an envelope is an object")
    return fields, body.decode("utf-8-sig")


def find_heading(fields: Json) -> Envelope:
    """The members that an error response repeats of a refused envelope."""
    context = fields.get("agent_context")
    is_small = isinstance(context, dict) and count_context_bytes(context) <= MAX_CONTEXT_BYTES
    return find_ask({**fields, "from": _find_sender(fields), "agent_context": context if is_small else {}})


def read_envelope(fields: Json) -> Envelope:
    """The envelope with these fields: checks names and types, then protocol, ttl and intent.

    Raises:
        EnvelopeRefused: `invalid_envelope`, `payload_too_large`, `unsupported_protocol`, `unknown_intent`.
    """
    _refuse_unknown_fields(fields)
    sender, context = _find_sender(fields), fields.get("agent_context", {})
    timestamp = fields.get("timestamp", "")
    fine = {
        "from": is_name(sender),
        "to": is_name(fields.get("to", NETWORK)),
        "intent": isinstance(fields.get("intent"), str) and fields["intent"] != "",
        "payload": isinstance(fields.get("payload", {}), dict),
        "agent_context": isinstance(context, dict) and ("via" not in fields or has_valid_origin(context)),
        "via": "via" not in fields or is_valid_via(fields["via"], sender),
        "timestamp": timestamp == "" or read_moment(timestamp) is not None,
    }
    if wrong := [name for name, is_fine in fine.items() if not is_fine]:
        raise make_field_error(f"missing or wrong: {', '.join(wrong)}", wrong)
    if count_context_bytes(context) > MAX_CONTEXT_BYTES:
        raise EnvelopeRefused(
            ErrorCode.PAYLOAD_TOO_LARGE, f"agent_context holds at most {MAX_CONTEXT_BYTES} bytes"
        )
    if fields.get("protocol", PROTOCOL) != PROTOCOL:
        raise EnvelopeRefused(ErrorCode.UNSUPPORTED_PROTOCOL, f"want {PROTOCOL}", supported=[PROTOCOL])
    ttl_ms = fields.get("ttl_ms", DEFAULT_TTL_MS)
    if not is_ttl(ttl_ms):
        raise make_field_error("ttl_ms: want milliseconds as an integer above 0", ["ttl_ms"])
    if fields["intent"] not in INTENTS:
        raise EnvelopeRefused(ErrorCode.UNKNOWN_INTENT, f"want one of {', '.join(sorted(INTENTS))}")
    return make_ask({**fields, "from": sender})


def check_timestamp(envelope: Envelope, *, now_s: float, is_strict: bool) -> None:
    """Refuse an envelope that is too old; call it after the look at known tuples, which are answered at any age.

    Raises:
        EnvelopeRefused: `timestamp_expired`; `invalid_envelope`: a confirmation without one, where it is strict.
    """
    moment = read_moment(envelope.timestamp)
    if moment is not None:
        check_age(moment.timestamp(), now_s)
    elif is_strict and envelope.intent == CONFIRM:
        raise make_field_error("timestamp: booking.confirm wants one, so that it can be repeated", ["timestamp"])


def describe_result(result: Json) -> Json:
    """The result of an intent as the payload of a response. A result with a status of its own keeps it."""
    return {"status": "ok"} | result


def read_moment(value: Any) -> datetime | None:
    """The moment that a text names in ISO 8601 with Z or an offset; None when it names none."""
    if not isinstance(value, str) or len(value) > MAX_TIMESTAMP_CHARS or not _MOMENT.fullmatch(value):
        return None
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None


def make_field_error(message: str, fields: list[str]) -> EnvelopeRefused:
    """The error for fields that are missing, unknown or wrong."""
    return EnvelopeRefused(ErrorCode.INVALID_ENVELOPE, message, fields=fields)


def _make_body_error(message: str) -> EnvelopeRefused:
    return EnvelopeRefused(ErrorCode.INVALID_ENVELOPE, message, status=MALFORMED)


def _refuse_unknown_fields(fields: Json) -> None:
    if unknown := sorted(fields.keys() - _FIELDS):
        raise make_field_error("the envelope has unknown fields", unknown)
    both = (fields.get("from"), fields.get("from_agent"))
    if "from" in fields and "from_agent" in fields and both[0] != both[1]:
        raise make_field_error("from and from_agent name two senders", ["from", "from_agent"])


def _find_sender(fields: Json) -> Any:
    return fields.get("from", fields.get("from_agent"))


def count_context_bytes(context: Json) -> int:
    """The bytes of an `agent_context`, as JSON."""
    return len(msgspec.json.encode(context))
