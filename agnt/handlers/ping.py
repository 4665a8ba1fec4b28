"""`network.ping`."""

from agnt.errors import Json
from agnt.venue_index import VenueIndex

NETWORK_VERSION = "1.0"


def answer_ping(index: VenueIndex, *, tier: str, sender: str) -> Json:
    """How many venues are active, and as whom the caller is known."""
    return {
        "active_venues": index.count,
        "tier": tier,
        "agent_id": sender,
        "network_version": NETWORK_VERSION,
    }
