"""The intents that the hub answers from rows: lists and searches of venues, and what became of a booking."""

from datetime import datetime

from django.db.models import QuerySet
from django.db.models.functions import Lower

from agnt.models import Booking, Venue
from agnt.service.bookings import StatusRefused, change_status, describe_state, find_of_caller
from agnt.service.cancellations import Reason
from agnt.service.keys import FoundKey
from agnt.service.venues.search import VenueSearch
from agnt.wire.envelope import Envelope, make_field_error
from agnt.wire.payloads import AgntBookingOrder, AgntConfirmOrder, AgntListOrder, AgntSearchOrder, Order
from clawbridge.agnt.fields import NETWORK, EnvelopeRefused, ErrorCode, Json
from kit.clock import iso
from kit.ids import read_uuid

NETWORK_VERSION = "1.0"
REFERRAL_FEE_PCT = 7


def answer_read(venues: VenueSearch, key: FoundKey, order: Order, *, sender: str, now: datetime) -> Json:
    """The result of an order that changes nothing.

    Raises:
        EnvelopeRefused: `booking_not_found`.
    """
    if isinstance(order, AgntBookingOrder):
        return describe_state(_find_booking(key, order))
    if not isinstance(order, AgntSearchOrder | AgntListOrder):
        return {
            "active_venues": venues.count(key.network_id, key.venues_version),
            "tier": key.tier,
            "agent_id": sender,
            "network_version": NETWORK_VERSION,
        }
    found = venues.find(key.network_id, key.venues_version, order, now)
    if isinstance(order, AgntListOrder):
        return {"venues": found.venues, "count": found.count}
    return {
        "results": found.venues,
        "count": found.count,
        "fee_pct": REFERRAL_FEE_PCT,
        "expires_at": iso(found.expires_at),
    }


def cancel_booking(key: FoundKey, order: AgntBookingOrder) -> Booking:
    """Cancel a booking of the customer; again is fine.

    Raises:
        EnvelopeRefused: `booking_not_found`, `booking_ended`.
    """
    booking = _find_booking(key, order)
    try:
        return change_status(booking, Booking.Status.CANCELLED, by=Reason.CALLER)
    except StatusRefused as refused:
        raise EnvelopeRefused(ErrorCode.BOOKING_ENDED, f"the booking is {refused.status}") from None


def check_recipient(envelope: Envelope, order: Order) -> None:
    """Refuse an order about a booking that is not `to` the network, which knows the booking.

    Raises:
        EnvelopeRefused: `invalid_envelope`.
    """
    if isinstance(order, AgntBookingOrder) and envelope.to != NETWORK:
        raise make_field_error(f"to: {envelope.intent} goes to {NETWORK}", ["to"])


def find_venue(network_id: int, envelope: Envelope, order: Order) -> Venue:
    """The active venue of an order, or whose agent an envelope is for.

    Raises:
        EnvelopeRefused: `venue_not_found`; `invalid_envelope`: `to` names the agent of another venue.
    """
    active = Venue.objects.filter(network_id=network_id, is_active=True)
    named = find_named(active, order.venue_id) if isinstance(order, AgntConfirmOrder) else None
    if isinstance(order, AgntConfirmOrder) and named is None:
        raise make_venue_error()
    recipient = named if envelope.to == NETWORK else active.filter(agent_name=envelope.to).first()
    if recipient is None:
        raise make_venue_error()
    if named is not None and named != recipient:
        raise make_field_error("to and venue_id name two venues", ["to", "payload.venue_id"])
    return recipient


def find_named(venues: QuerySet[Venue], name: str) -> Venue | None:
    """The venue with this UUID or slug; a UUID comes before a slug that reads like one."""
    if (public_id := read_uuid(name)) and (found := venues.filter(public_id=public_id).first()):
        return found
    return venues.alias(folded=Lower("slug")).filter(folded=name.lower()).first()


def _find_booking(key: FoundKey, order: AgntBookingOrder) -> Booking:
    if booking := find_of_caller(key, order.booking_id):
        return booking
    raise EnvelopeRefused(ErrorCode.BOOKING_NOT_FOUND, "this customer has no such booking")


def make_venue_error() -> EnvelopeRefused:
    """The error for a venue that is not there, not active, or of another network."""
    return EnvelopeRefused(ErrorCode.VENUE_NOT_FOUND, "this network has no such venue")
