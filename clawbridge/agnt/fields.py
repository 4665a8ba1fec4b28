"""The fields of an AGPEnvelope, requests and responses alike: names and limits. No I/O."""

import re
from typing import Any, Final

from clawbridge.agnt.errors import Json

PROTOCOL: Final = "openclaw/a2a/v1"
NETWORK = "network:agnt"
PING = "network.ping"
CONFIRM, STATUS, CANCEL = "booking.confirm", "booking.status", "booking.cancel"
INTENTS = frozenset({PING, "venue.list", "booking.search", CONFIRM, STATUS, CANCEL})
ACTING_INTENTS = frozenset({CONFIRM, CANCEL})  # acting twice does harm
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
    """Whether a value can name an agent, a network or an intent."""
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def is_ttl(value: Any) -> bool:
    """Whether a value is a time to live, in milliseconds; above `MAX_TTL_MS` it counts as that."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
