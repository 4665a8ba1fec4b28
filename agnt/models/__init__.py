"""The tables of AGNT. A network is the tenant: the venues and keys of one owner."""

from agnt.models.booking import Booking, Invoice, UsageEvent
from agnt.models.cancellation import Cancellation
from agnt.models.envelopes import Interaction, SeenEnvelope, SeenSignature
from agnt.models.key import ApiKey, KeyUsage
from agnt.models.network import Network
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
