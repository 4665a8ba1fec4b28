"""An ask, and the request that carries it: one envelope, signed where there is a secret.

The module does no I/O.
"""

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime

from clawbridge.agnt.breakers import Blame
from clawbridge.agnt.fields import (
    ACTING_INTENTS,
    DEFAULT_TTL_MS,
    MAX_BODY_BYTES,
    NETWORK,
    SIGNATURE_HEADER,
    EnvelopeRefused,
    ErrorCode,
    Json,
    build_envelope,
    is_name,
    is_ttl,
)
from clawbridge.agnt.signing import Via, add_hop, canonical_json, describe_via, sign_body, sign_payload

NONCE_CHARS = 16


class CallFailed(Exception):
    """An ask has no answer; the text says why, and may hold words of the other side.

    `code`: an `ErrorCode`, or another word that the other side used. `retryable`: the same ask, sent again
    unchanged, may succeed. `retry_after_s`: not before that time; 0: none is known. `was_sent`: the other side may
    have read the ask, so only one with the same `timestamp` is the same event. `blame`: what breakers count.
    `said`: the answer as it came, as far as it is text; for a log.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        retryable: bool = False,
        retry_after_s: float = 0.0,
        was_sent: bool = True,
        blame: Blame = Blame.UNKNOWN,
        said: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        self.was_sent = was_sent
        self.blame = blame
        self.said = said


def _now_text() -> str:
    """In microseconds: two asks of one sender and intent in one millisecond would be one event."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


@dataclass(frozen=True, kw_only=True, slots=True)
class Ask:
    """A question to a venue, and its address. `sender`: the `from` of the envelope. `ttl_ms`: of one try.

    `timestamp`: ISO 8601. With `sender` and `intent` it names the event: asks that are equal in the three are one.

    `origin`: the first sender, where `sender` passes the envelope on; it takes the place of `sender` in the event.
    `via`: the hops that the envelope came with. One of `sender` is added to them, which needs a secret.
    """

    sender: str
    intent: str
    payload: Json = field(default_factory=dict)
    to: str = NETWORK
    agent_context: Json = field(default_factory=dict)
    ttl_ms: int = DEFAULT_TTL_MS
    timestamp: str = field(default_factory=_now_text)
    origin: str = ""
    via: Via = ()

    @property
    def event(self) -> tuple[str, str, str]:
        """The tuple that names the event."""
        return self.origin or self.sender, self.intent, self.timestamp


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of asks. `key`: sent as Bearer, may be empty. `secret`: signs payload and body, may be empty."""

    url: str
    key: str = field(default="", repr=False)
    secret: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class AskRequest:
    """An ask as it leaves: the same bytes at each try, so that each is the same event.

    `signature`: of the payload; empty without a secret.
    """

    body: bytes
    signature: str
    headers: dict[str, str] = field(repr=False)


def describe_ask(ask: Ask, *, secret: bytes, at_s: int) -> Json:
    """The envelope of an ask; its payload is signed, unless the secret is empty.

    Raises:
        CallFailed: `invalid_envelope`, `routing_loop`; nothing was sent.
    """
    is_passed_on = bool(ask.origin or ask.via)
    fine = {"from": is_name(ask.sender), "to": is_name(ask.to), "intent": is_name(ask.intent)}
    fine["origin"] = is_name(ask.origin) or not is_passed_on
    if wrong := [name for name, is_fine in (fine | {"ttl_ms": is_ttl(ask.ttl_ms)}).items() if not is_fine]:
        raise _refuse(f"missing or wrong: {', '.join(wrong)}")
    nonce: Json = {}
    if is_passed_on and ask.intent in ACTING_INTENTS:
        # All that this sender passes on is from it: without this, equal payloads of one second are one event.
        nonce["_nonce"] = hashlib.sha256("\n".join(ask.event).encode()).hexdigest()[:NONCE_CHARS]
    try:
        given = ask.payload | nonce
        payload = sign_payload(given, key=secret, sender=ask.sender, at_s=at_s) if secret else given
    except (TypeError, ValueError, RecursionError) as wrong:
        raise _refuse(f"the payload is not JSON: {wrong}") from None
    envelope = build_envelope(
        sender=ask.sender,
        to=ask.to,
        intent=ask.intent,
        payload=payload,
        agent_context=ask.agent_context,
        ttl_ms=ask.ttl_ms,
        timestamp=ask.timestamp,
    )
    if not is_passed_on:
        return envelope
    if not secret:
        raise _refuse("what is passed on has to be signed")
    try:
        via = add_hop(ask.via, payload["_sig"], agent=ask.sender, key=secret, at_s=at_s)
    except EnvelopeRefused as refused:
        raise CallFailed(refused.code, str(refused), was_sent=False) from None
    return envelope | {"agent_context": ask.agent_context | {"origin": ask.origin}, "via": describe_via(via)}


def build_request(ask: Ask, endpoint: Endpoint, *, at_s: int) -> AskRequest:
    """The HTTP request of an ask. `at_s`: when it is signed, in Unix seconds.

    Raises:
        CallFailed: `invalid_envelope`, `payload_too_large`, `routing_loop`; nothing was sent.
    """
    try:
        envelope = describe_ask(ask, secret=endpoint.secret, at_s=at_s)
        body = canonical_json(envelope)
    except (TypeError, ValueError, RecursionError) as wrong:
        raise _refuse(f"the envelope is not JSON: {wrong}") from None
    if len(body) > MAX_BODY_BYTES:
        message = f"an envelope holds at most {MAX_BODY_BYTES} bytes"
        raise CallFailed(ErrorCode.PAYLOAD_TOO_LARGE, message, was_sent=False)
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "Accept-Encoding": "identity",  # answers are bounded by the bytes that come
        "User-Agent": "clawbridge",
    }
    if endpoint.key:
        headers["Authorization"] = f"Bearer {endpoint.key}"
    if endpoint.secret:
        headers[SIGNATURE_HEADER] = sign_body(body, key=endpoint.secret, at_s=at_s)
    return AskRequest(body, envelope["payload"]["_sig"] if endpoint.secret else "", headers)


def _refuse(message: str) -> CallFailed:
    return CallFailed(ErrorCode.INVALID_ENVELOPE, message, was_sent=False)
