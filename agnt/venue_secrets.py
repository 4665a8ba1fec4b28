"""The secrets with which the hub signs what it asks of venues: one of each venue, derived from the master key.

With another master key every venue has another secret: its owner has to tell it the new one.
"""

from agnt.keys import get_master_key
from agnt.signing import derive_tenant_key


def derive_venue_secret(public_id: str) -> bytes:
    """The 32 bytes that sign. `public_id`: `venue_id` on the wire."""
    return derive_tenant_key(get_master_key(), f"venue:{public_id}")


def show_venue_secret(public_id: str) -> str:
    """The secret as the owner of the network gives it to the venue, as 64 hex digits (`agnt.signing.read_key`)."""
    return derive_venue_secret(public_id).hex()
