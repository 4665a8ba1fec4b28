"""The fields of an AGPEnvelope, requests and responses alike; and its errors: codes, HTTP statuses, payloads."""

import math
import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

Json = dict[str, Any]

MAX_NAMED_FIELDS = 16
MAX_FIELD_CHARS = 64
MALFORMED = 400  # of `invalid_envelope`, where the body is no JSON object
PROTOCOL: Final = "openclaw/a2a/v1"
NETWORK = "network:agnt"
PING = "network.ping"
CONFIRM, STATUS, CANCEL = "booking.confirm", "booking.status", "booking.cancel"
INTENTS = frozenset({PING, "venue.list", "booking.search", CONFIRM, STATUS, CANCEL})
ACTING_INTENTS = frozenset({CONFIRM, CANCEL})  # the intents that must not be executed twice
MAX_BODY_BYTES = 262_144
MAX_CONTEXT_BYTES = 16_384
DEFAULT_TTL_MS = 5_000
MAX_TTL_MS = 15_000
MAX_TIMESTAMP_CHARS = 64
MAX_ID_CHARS = 128
MAX_TIME_CHARS = 64
MAX_NOTE_CHARS = 500
MAX_PARTY_SIZE = 10_000
SIGNATURE_HEADER = "X-A2A-Envelope-Signature"
SIGNATURE_KEYS = frozenset({"_ts", "_from", "_nonce", "_sig"})  # of a payload
NAME = r"[A-Za-z0-9_.:-]{1,128}"  # of an agent, a network or an intent
_NAME = re.compile(NAME)


class ErrorCode(StrEnum):
    """The name of an error on the wire, in the payload and in the header `X-A2A-Error`."""

    CIRCUIT_OPEN = "circuit_open"
    INVALID_SIGNATURE = "invalid_signature"
    UNKNOWN_INTENT = "unknown_intent"
    TTL_EXCEEDED = "ttl_exceeded"
    VENUE_UNREACHABLE = "venue_unreachable"
    UNSUPPORTED_PROTOCOL = "unsupported_protocol"
    INVALID_ENVELOPE = "invalid_envelope"
    UNAUTHORIZED = "unauthorized"
    TIMESTAMP_EXPIRED = "timestamp_expired"
    TIER_REQUIRED = "tier_required"
    SCOPE_DENIED = "scope_denied"
    TLS_REQUIRED = "tls_required"
    VENUE_NOT_FOUND = "venue_not_found"
    BOOKING_NOT_FOUND = "booking_not_found"
    BOOKING_ENDED = "booking_ended"
    SLOT_UNAVAILABLE = "slot_unavailable"
    IDEMPOTENCY_CONFLICT = "idempotency_conflict"
    IN_PROGRESS = "in_progress"
    PAYLOAD_TOO_LARGE = "payload_too_large"
    RATE_LIMITED = "rate_limited"
    ROUTING_LOOP = "routing_loop"
    INTERNAL_ERROR = "internal_error"


class Meaning(NamedTuple):
    """`is_retryable`: the same envelope, sent again unchanged, may succeed."""

    status: int
    is_retryable: bool = False


MEANINGS = {
    ErrorCode.CIRCUIT_OPEN: Meaning(503, is_retryable=True),
    ErrorCode.INVALID_SIGNATURE: Meaning(401),
    ErrorCode.UNKNOWN_INTENT: Meaning(400),
    ErrorCode.TTL_EXCEEDED: Meaning(504, is_retryable=True),
    ErrorCode.VENUE_UNREACHABLE: Meaning(502, is_retryable=True),
    ErrorCode.UNSUPPORTED_PROTOCOL: Meaning(400),
    ErrorCode.INVALID_ENVELOPE: Meaning(422),
    ErrorCode.UNAUTHORIZED: Meaning(401),
    ErrorCode.TIMESTAMP_EXPIRED: Meaning(401),
    ErrorCode.TIER_REQUIRED: Meaning(403),
    ErrorCode.SCOPE_DENIED: Meaning(403),
    ErrorCode.TLS_REQUIRED: Meaning(403),
    ErrorCode.VENUE_NOT_FOUND: Meaning(404),
    ErrorCode.BOOKING_NOT_FOUND: Meaning(404),
    ErrorCode.BOOKING_ENDED: Meaning(409),
    ErrorCode.SLOT_UNAVAILABLE: Meaning(409),
    ErrorCode.IDEMPOTENCY_CONFLICT: Meaning(409),
    ErrorCode.IN_PROGRESS: Meaning(409, is_retryable=True),
    ErrorCode.PAYLOAD_TOO_LARGE: Meaning(413),
    ErrorCode.RATE_LIMITED: Meaning(429, is_retryable=True),
    ErrorCode.ROUTING_LOOP: Meaning(508),
    ErrorCode.INTERNAL_ERROR: Meaning(500, is_retryable=True),
}


class EnvelopeRefused(Exception):
    """An envelope is answered by an error; the exception's own text is public.

    `fields`: what is wrong in the envelope. `supported`: the protocols that are spoken here. `retry_after_s`: 0
    where no time is known. `status`: the HTTP status. `about`: for the log of the network alone.
    `may_be_booked`: a venue was asked, and may have booked although this is the answer.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        *,
        fields: Sequence[str] = (),
        supported: Sequence[str] = (),
        retry_after_s: float = 0,
        status: int = 0,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.fields = [field[:MAX_FIELD_CHARS] for field in fields[:MAX_NAMED_FIELDS]]
        self.supported = list(supported)
        self.retry_after_s = math.ceil(retry_after_s)
        self.status = status or MEANINGS[code].status
        self.about: Json = {}
        self.may_be_booked = False

    @property
    def is_retryable(self) -> bool:
        """True if the same envelope, sent again unchanged, may succeed."""
        return MEANINGS[self.code].is_retryable


def describe_error(refused: EnvelopeRefused) -> Json:
    """An error as the payload of a response shows it."""
    error: Json = {"code": refused.code.value, "message": str(refused), "retryable": refused.is_retryable}
    more = {"retry_after_s": refused.retry_after_s, "fields": refused.fields, "supported": refused.supported}
    return {"status": "error", "error": error | {key: value for key, value in more.items() if value}}


def error_headers(refused: EnvelopeRefused) -> dict[str, str]:
    """The HTTP headers of an error."""
    headers = {"X-A2A-Error": refused.code.value}
    if refused.code == ErrorCode.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    if refused.retry_after_s:
        headers["Retry-After"] = str(refused.retry_after_s)
    return headers


def build_envelope(
    *, sender: str, to: str, intent: str, payload: Json, agent_context: Json, ttl_ms: int, timestamp: str
) -> Json:
    """A request or a response with all eight fields."""
    return {
        "protocol": PROTOCOL,
        "from": sender,
        "to": to,
        "intent": intent,
        "payload": payload,
        "agent_context": agent_context,
        "ttl_ms": ttl_ms,
        "timestamp": timestamp,
    }


def is_name(value: Any) -> bool:
    """True if a value can name an agent, a network or an intent."""
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def is_ttl(value: Any) -> bool:
    """True if a value is a time to live, in milliseconds; above `MAX_TTL_MS` it counts as that."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
