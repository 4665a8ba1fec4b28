"""The rights and rates of a key, and the signature of an envelope. No I/O but the unsealing of secrets.

Each call that came with a live key counts for its UTC day.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, time, timedelta
from typing import Self

from msgspec import Struct

from agnt import settings
from agnt.models import ApiKey
from agnt.service.keys import FoundKey, load_signing_keys
from agnt.service.networks import build_hop_name
from agnt.wire.envelope import Envelope, make_field_error
from clawbridge.agnt.fields import CANCEL, CONFIRM, STATUS, EnvelopeRefused, ErrorCode
from clawbridge.agnt.signing import verify_body, verify_last_hop, verify_payload

DAILY_CALLS: Mapping[str, int] = {
    ApiKey.Tier.FREE: 100,
    ApiKey.Tier.PRO: 10_000,
    ApiKey.Tier.ENTERPRISE: 500_000,
}
CONFIRMING_TIERS = frozenset({ApiKey.Tier.PRO, ApiKey.Tier.ENTERPRISE})


class Rate(Struct, frozen=True):
    """The calls of a key on one day. `used`: this one and those before it; may be over the limit."""

    limit: int
    used: int
    resets_at: datetime

    @classmethod
    def of_day(cls, tier: str, used: int, now: datetime) -> Self:
        """The rate of a key that has sent so many calls on the day of `now`."""
        midnight = datetime.combine(now.astimezone(UTC).date() + timedelta(days=1), time.min, UTC)
        return cls(DAILY_CALLS[tier], used, midnight)

    def headers(self) -> dict[str, str]:
        """The HTTP headers that say so; the reset in Unix seconds."""
        return {
            "X-RateLimit-Limit": str(self.limit),
            "X-RateLimit-Remaining": str(max(0, self.limit - self.used)),
            "X-RateLimit-Reset": str(int(self.resets_at.timestamp())),
        }


def check_hops(key: FoundKey, envelope: Envelope) -> None:
    """Refuse an envelope with hops if the network accepts none, or if a hop is this network.

    Raises:
        EnvelopeRefused: `invalid_envelope`, `routing_loop`.
    """
    if not envelope.via:
        return
    if not key.accepts_hops:
        raise make_field_error("via: this network takes no envelopes that others passed on", ["via"])
    own = build_hop_name(key.owner_login, settings.PUBLIC_URL)
    if any(hop.agent == own for hop in envelope.via):
        raise EnvelopeRefused(ErrorCode.ROUTING_LOOP, f"via: {own} passed this envelope on before")


def make_key_error() -> EnvelopeRefused:
    """The one error for every request without a live key."""
    return EnvelopeRefused(ErrorCode.UNAUTHORIZED, "want a live AGNT key as Bearer token")


def check_permission(key: FoundKey, envelope: Envelope) -> None:
    """Refuse an envelope that the key may not send: checks the tier, then the scope, then the sender.

    Raises:
        EnvelopeRefused: `tier_required`, `scope_denied`.
    """
    if envelope.intent == CONFIRM and key.tier not in CONFIRMING_TIERS:
        raise EnvelopeRefused(ErrorCode.TIER_REQUIRED, "booking.confirm takes the tier pro or enterprise")
    if envelope.intent in (CONFIRM, STATUS, CANCEL) and key.scope not in ApiKey.BOOKING_SCOPES:
        raise EnvelopeRefused(ErrorCode.SCOPE_DENIED, f"{envelope.intent} takes the scope booking or full")
    if not key.may_send_as(envelope.sender):
        raise EnvelopeRefused(ErrorCode.SCOPE_DENIED, "this key may not send as this sender", fields=["from"])


def check_signature(
    key: FoundKey, envelope: Envelope, *, header: str, body: bytes, text: str, now_s: float
) -> tuple[str, EnvelopeRefused | None]:
    """The signature of the payload, empty without one, and the refusal of a signature that matches but is old.

    The function checks `_sig`, `X-A2A-Envelope-Signature` and the last hop of `via`, each where it is sent. A
    network that demands a signature takes either of the first two; an envelope that was passed on has `_sig`. An
    old signature is not refused here: known envelopes are answered at any age.

    Raises:
        EnvelopeRefused: `invalid_signature`.
    """
    is_demanded = bool(envelope.via) or (key.requires_signature and not header)
    if not header and not is_demanded and "_sig" not in envelope.payload:
        return "", None
    keys = load_signing_keys(key)
    late: list[EnvelopeRefused] = []
    if header:
        with _collect_late(late):
            verify_body(header, body, keys=keys, now_s=now_s)
    with _collect_late(late):
        verify_payload(
            envelope.payload, keys=keys, sender=envelope.sender, now_s=now_s, text=text, is_demanded=is_demanded
        )
    signature = envelope.payload.get("_sig", "")
    if envelope.via:
        with _collect_late(late):
            verify_last_hop(envelope.via, signature, keys=keys, now_s=now_s)
    return signature, late[-1] if late else None


@contextmanager
def _collect_late(late: list[EnvelopeRefused]) -> Iterator[None]:
    """Collect the refusal of a signature that matches and is too old; other refusals are raised."""
    try:
        yield
    except EnvelopeRefused as refused:
        if refused.code != ErrorCode.TIMESTAMP_EXPIRED:
            raise
        late.append(refused)


def check_rate(rate: Rate, now: datetime) -> None:
    """Refuse a call beyond the limit of its day.

    Raises:
        EnvelopeRefused: `rate_limited`, with the seconds to midnight.
    """
    if rate.used > rate.limit:
        text = f"this key may send {rate.limit} calls a day, in UTC"
        wait_s = max(1.0, (rate.resets_at - now).total_seconds())
        raise EnvelopeRefused(ErrorCode.RATE_LIMITED, text, retry_after_s=wait_s)
