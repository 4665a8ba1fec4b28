"""What a key may ask, and whether its sender signed an envelope. No I/O but the unsealing of secrets."""

from msgspec import Struct

from agnt import settings
from agnt.envelope import Envelope, refuse_fields
from agnt.errors import EnvelopeRefused, ErrorCode
from agnt.hops import verify_last_hop
from agnt.keys import FoundKey, load_signing_keys
from agnt.models import ApiKey
from agnt.networks import build_hop_name
from agnt.signing import verify_body, verify_payload

CONFIRMING_TIERS = frozenset({ApiKey.Tier.PRO, ApiKey.Tier.ENTERPRISE})
CONFIRMING_SCOPES = frozenset({ApiKey.Scope.BOOKING, ApiKey.Scope.FULL})


class Signed(Struct, frozen=True):
    """What the signatures say. `signature`: of the payload, empty without one. `late`: one matches, and is old."""

    signature: str = ""
    late: EnvelopeRefused | None = None


def check_hops(key: FoundKey, envelope: Envelope) -> None:
    """Refuse an envelope that was passed on where the network takes none, or that was here before.

    Raises:
        EnvelopeRefused: `invalid_envelope`, `routing_loop`.
    """
    if not envelope.via:
        return
    if not key.accepts_hops:
        raise refuse_fields("via: this network takes no envelopes that others passed on", ["via"])
    own = build_hop_name(key.owner_login, settings.PUBLIC_URL)
    if any(hop.agent == own for hop in envelope.via):
        raise EnvelopeRefused(ErrorCode.ROUTING_LOOP, f"via: {own} passed this envelope on before")


def refuse_key() -> EnvelopeRefused:
    """The one error for every request without a live key."""
    return EnvelopeRefused(ErrorCode.UNAUTHORIZED, "want a live AGNT key as Bearer token")


def check_permission(key: FoundKey, envelope: Envelope) -> None:
    """Refuse what a key may not ask: tier, then scope, then sender.

    Raises:
        EnvelopeRefused: `tier_required`, `scope_denied`.
    """
    if envelope.intent == "booking.confirm":
        if key.tier not in CONFIRMING_TIERS:
            raise EnvelopeRefused(ErrorCode.TIER_REQUIRED, "booking.confirm takes the tier pro or enterprise")
        if key.scope not in CONFIRMING_SCOPES:
            raise EnvelopeRefused(ErrorCode.SCOPE_DENIED, "booking.confirm takes the scope booking or full")
    if not key.may_send_as(envelope.sender):
        raise EnvelopeRefused(ErrorCode.SCOPE_DENIED, "this key may not send as this sender", fields=["from"])


def check_signature(
    key: FoundKey, envelope: Envelope, *, header: str, body: bytes, text: str, now_s: float
) -> Signed:
    """Check `_sig`, `X-A2A-Envelope-Signature` and the last hop of `via`, each where it is sent.

    A network that demands a signature takes either of the first two; an envelope that was passed on has `_sig`. An
    old one is not refused here: known envelopes are answered at any age.

    Raises:
        EnvelopeRefused: `invalid_signature`.
    """
    is_demanded = bool(envelope.via) or (key.requires_signature and not header)
    if not header and not is_demanded and "_sig" not in envelope.payload:
        return Signed()
    keys = load_signing_keys(key)
    late: EnvelopeRefused | None = None
    signature = ""
    if header:
        try:
            verify_body(header, body, keys=keys, now_s=now_s)
        except EnvelopeRefused as refused:
            late = _only_late(refused)
    try:
        signature = verify_payload(
            envelope.payload, keys=keys, sender=envelope.sender, now_s=now_s, text=text, is_demanded=is_demanded
        )
    except EnvelopeRefused as refused:
        late = _only_late(refused)
        signature = envelope.payload["_sig"]
    if envelope.via:
        try:
            verify_last_hop(envelope.via, signature, keys=keys, now_s=now_s)
        except EnvelopeRefused as refused:
            late = _only_late(refused)
    return Signed(signature, late)


def _only_late(refused: EnvelopeRefused) -> EnvelopeRefused:
    if refused.code != ErrorCode.TIMESTAMP_EXPIRED:
        raise refused
    return refused
