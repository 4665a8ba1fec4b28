"""The other side of a call: what a venue reads in an envelope that it gets, and its response.

The module does no I/O.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from clawbridge.agnt.asks import Ask
from clawbridge.agnt.fields import (
    DEFAULT_TTL_MS,
    MAX_TIMESTAMP_CHARS,
    MAX_TTL_MS,
    NETWORK,
    PROTOCOL,
    SIGNATURE_KEYS,
    EnvelopeRefused,
    ErrorCode,
    Json,
    build_envelope,
    is_name,
    is_ttl,
)
from clawbridge.agnt.signing import (
    MAX_AGE_S,
    MAX_AHEAD_S,
    SigningKeys,
    find_origin,
    has_valid_origin,
    is_valid_via,
    read_via,
    verify_last_hop,
    verify_payload,
)

MAX_SIGNATURES = 100_000
MAX_SIGNED_AHEAD_S = 30
Signed = TypeVar("Signed")
_DEFAULTS: Json = {"to": NETWORK, "payload": {}, "agent_context": {}, "ttl_ms": DEFAULT_TTL_MS, "timestamp": ""}


class SeenSignatures:
    """The signatures of the last 360 s, at most 100,000, each with its event."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[tuple[str, str, str], float]] = {}

    def check(self, signature: str, ask: Ask, now_s: float) -> None:
        """Remember a signature; a signed payload belongs to one event, which may come again.

        Raises:
            EnvelopeRefused: `invalid_signature`: another event came with it.
        """
        while self._seen:
            oldest = next(iter(self._seen))
            if self._seen[oldest][1] > now_s and len(self._seen) < MAX_SIGNATURES:
                break
            del self._seen[oldest]
        event, _ = self._seen.setdefault(signature, (ask.event, now_s + MAX_AGE_S + MAX_AHEAD_S))
        if event != ask.event:
            raise EnvelopeRefused(ErrorCode.INVALID_SIGNATURE, "the signature is that of another envelope")

    def sign_once(
        self, ask: Ask, now_s: float, sign: Callable[[int], Signed], read_signature: Callable[[Signed], str]
    ) -> Signed:
        """Sign an ask by `sign` for this second, or for one of the next 30 whose signature was not used.

        Asks of one second that differ in their timestamp alone have equal signatures: the other side would take
        the second ask for a copy of the first. The other side takes signatures that are 60 s ahead.
        """
        for at_s in range(int(now_s), int(now_s) + MAX_SIGNED_AHEAD_S):
            signed = sign(at_s)
            with suppress(EnvelopeRefused):
                if signature := read_signature(signed):
                    self.check(signature, ask, now_s)
                break
        return signed


def find_ask(fields: Json) -> Ask:
    """The members that a response repeats of an envelope, whatever is wrong with the envelope."""
    known = {name: value for name, value in (_DEFAULTS | fields).items() if _is_right(name, value)}
    return Ask(
        sender=known.get("from", ""),
        to=known.get("to", NETWORK),
        intent=known.get("intent", ""),
        payload={},
        agent_context=known.get("agent_context", {}),
        ttl_ms=min(known.get("ttl_ms", DEFAULT_TTL_MS), MAX_TTL_MS),
        timestamp=known.get("timestamp", ""),
    )


def read_ask(fields: Json, *, keys: SigningKeys | None, now_s: float) -> tuple[Ask, str]:
    """The ask in an envelope, and the signature of its payload: empty without keys, which then are not checked.

    The payload of the ask is without `_ts`, `_from` and `_sig`. Of its hops the last one is verified, which is the
    sender. To pass an ask on: `replace(ask, sender=own_name, origin=ask.event[0])`.

    Raises:
        EnvelopeRefused: `unsupported_protocol`, `invalid_envelope`, `invalid_signature`, `timestamp_expired`.
    """
    given = _DEFAULTS | fields
    if given.get("protocol", PROTOCOL) != PROTOCOL:
        raise EnvelopeRefused(ErrorCode.UNSUPPORTED_PROTOCOL, f"want {PROTOCOL}", supported=[PROTOCOL])
    wrong = [name for name in ("from", "intent", *_DEFAULTS) if not _is_right(name, given.get(name))]
    if "via" in fields:
        wrong += [] if is_valid_via(fields["via"], given.get("from")) else ["via"]
        wrong += [] if "agent_context" in wrong or has_valid_origin(given["agent_context"]) else ["agent_context"]
    if wrong:
        message = f"missing or wrong: {', '.join(wrong)}"
        raise EnvelopeRefused(ErrorCode.INVALID_ENVELOPE, message, fields=wrong)
    ask, signature = make_ask(fields), ""
    if keys is not None:
        signature = verify_payload(ask.payload, keys=keys, sender=ask.sender, now_s=now_s)
        if ask.via:
            verify_last_hop(ask.via, signature, keys=keys, now_s=now_s)
    unsigned = {name: value for name, value in ask.payload.items() if name not in SIGNATURE_KEYS}
    return replace(ask, payload=unsigned), signature


def make_ask(fields: Json) -> Ask:
    """The ask in an envelope whose fields were checked; one that is absent has its default."""
    given, via = _DEFAULTS | fields, read_via(fields)
    return Ask(
        sender=given["from"],
        to=given["to"],
        intent=given["intent"],
        payload=given["payload"],
        agent_context=given["agent_context"],
        ttl_ms=min(given["ttl_ms"], MAX_TTL_MS),
        timestamp=given["timestamp"],
        origin=find_origin(given["from"], given["agent_context"], via) if via else "",
        via=via,
    )


def describe_response(ask: Ask, payload: Json, *, elapsed_s: float, now: datetime) -> Json:
    """The response to an ask, `elapsed_s` after it came. `now`: in UTC."""
    return build_envelope(
        sender=ask.to,
        to=ask.sender,
        intent=ask.intent,
        payload=payload,
        agent_context=ask.agent_context,
        ttl_ms=max(0, ask.ttl_ms - round(elapsed_s * 1000)),
        timestamp=now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    )


def _is_right(name: str, value: Any) -> bool:
    match name:
        case "from" | "to" | "intent":
            return is_name(value)
        case "payload" | "agent_context":
            return isinstance(value, dict)
        case "ttl_ms":
            return is_ttl(value)
        case "timestamp":
            return isinstance(value, str) and len(value) <= MAX_TIMESTAMP_CHARS
    return False
