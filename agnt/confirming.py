"""Writes confirmed bookings: the row, its charge and its webhook deliveries, in the transaction of the answer."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from agnt.errors import Json
from agnt.models import Booking, UsageEvent, Venue
from agnt.payloads import Confirm
from agnt.ports import NetworkRef, VenueAnswer
from agnt.venue_index import describe_venue
from agnt.webhook_events import booking_deliveries

CHARGE_CENTS = 25
CONFIRMED = "booking.confirmed"


class NewBooking(Struct):
    """A booking that is to be written, and for whom. `customer`: who pays."""

    network: NetworkRef
    customer: str
    booking: Booking


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
    return NewBooking(network, customer, booking)


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


def write_bookings(bookings: Sequence[NewBooking]) -> None:
    """Write bookings, a charge for each, and the deliveries to those who subscribed."""
    if not bookings:
        return
    Booking.objects.bulk_create([one.booking for one in bookings])
    UsageEvent.objects.bulk_create(
        [
            UsageEvent(
                network_id=one.network.network_id,
                booking=one.booking,
                key_id=one.network.key_id,
                customer=one.customer,
                amount_cents=CHARGE_CENTS,
                at=one.booking.created_at,
            )
            for one in bookings
        ]
    )
    for one in bookings:
        booking_deliveries(one.network, one.booking, CONFIRMED)
