"""What a key may ask: by its tier, its scope and the senders that it stands for. No I/O."""

from agnt.envelope import Envelope
from agnt.errors import EnvelopeRefused, ErrorCode
from agnt.keys import FoundKey
from agnt.models import ApiKey

CONFIRMING_TIERS = frozenset({ApiKey.Tier.PRO, ApiKey.Tier.ENTERPRISE})
CONFIRMING_SCOPES = frozenset({ApiKey.Scope.BOOKING, ApiKey.Scope.FULL})


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
