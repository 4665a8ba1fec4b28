"""The tables of AGNT. A network is the tenant: the venues and keys of one owner."""

from agnt.models.booking import Booking, Cancellation, Invoice, UsageEvent
from agnt.models.envelopes import Interaction, SeenEnvelope, SeenSignature
from agnt.models.network import ApiKey, KeyUsage, Network
from agnt.models.venue import Breaker, Venue

__all__ = [
    "ApiKey",
    "Booking",
    "Breaker",
    "Cancellation",
    "Interaction",
    "Invoice",
    "KeyUsage",
    "Network",
    "SeenEnvelope",
    "SeenSignature",
    "UsageEvent",
    "Venue",
]
