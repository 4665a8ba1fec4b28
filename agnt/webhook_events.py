"""What webhooks say of bookings."""

from agnt.models import Booking
from agnt.ports import NetworkRef
from webhooks import outbox


def booking_deliveries(network: NetworkRef, booking: Booking, type: str) -> int:
    """Queue a delivery for each subscription of the owner; how many. Call it in the booking's transaction."""
    payload = {"booking_id": str(booking.public_id), "status": booking.status}
    return outbox.record([outbox.OutboxEvent(type=type, audience=[network.owner_id], payload=payload)])
