"""Makes the booking of a confirm as its venue answered, and the result that the caller gets."""

from datetime import datetime

from agnt.bookings import NewBooking
from agnt.errors import Json
from agnt.models import Booking, Venue
from agnt.payloads import Confirm
from agnt.ports import NetworkRef, VenueAnswer
from agnt.venue_index import describe_venue


def make_booking(
    network: NetworkRef,
    customer: str,
    sender: str,
    venue: Venue,
    order: Confirm,
    now: datetime,
    answer: VenueAnswer,
) -> NewBooking:
    """The booking of an order, as the venue confirmed it."""
    size = order.party_size if answer.party_size is None else answer.party_size
    booking = Booking(
        network_id=network.network_id,
        venue=venue,
        key_id=network.key_id,
        sender=sender,
        slot_id=answer.slot_id or order.slot_id,
        slot_time=answer.slot_time or order.slot_time,
        party_size=size,
        user_note=order.user_note,
        created_at=now,
        updated_at=now,
    )
    return NewBooking(network.owner_id, customer, booking)


def describe_booking(booking: Booking, note: str = "") -> Json:
    """The result of `booking.confirm`. `note`: what the venue says besides."""
    more = {
        "slot_id": booking.slot_id,
        "slot_time": booking.slot_time,
        "party_size": booking.party_size,
        "note": note,
    }
    result: Json = {
        "booking_id": str(booking.public_id),
        "venue": describe_venue(booking.venue),
        "status": str(booking.status),
    }
    return result | {name: value for name, value in more.items() if value}
