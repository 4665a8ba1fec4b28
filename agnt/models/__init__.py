"""The tables of AGNT. A network is the tenant: the venues and keys of one owner."""

from agnt.models.booking import Booking, Invoice, UsageEvent
from agnt.models.breaker import Breaker
from agnt.models.interaction import Interaction
from agnt.models.key import ApiKey, KeyUsage
from agnt.models.network import Network
from agnt.models.seen import SeenEnvelope, SeenSignature
from agnt.models.venue import Venue

__all__ = [
    "ApiKey",
    "Booking",
    "Breaker",
    "Interaction",
    "Invoice",
    "KeyUsage",
    "Network",
    "SeenEnvelope",
    "SeenSignature",
    "UsageEvent",
    "Venue",
]
