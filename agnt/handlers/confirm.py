"""`booking.confirm`: which venue it is for."""

from collections.abc import Mapping

from agnt.envelope import Envelope, refuse_fields
from agnt.errors import EnvelopeRefused, ErrorCode
from agnt.models import Venue
from agnt.payloads import Confirm
from agnt.venue_lookup import VenueName
from agnt.wire import NETWORK


def name_venues(network_id: int, envelope: Envelope) -> list[VenueName]:
    """The venues that an envelope names; its payload need not be checked."""
    named = []
    venue_id = envelope.payload.get("venue_id") if envelope.intent == "booking.confirm" else None
    if isinstance(venue_id, str):
        named.append(VenueName(network_id, venue_id))
    if envelope.to != NETWORK:
        named.append(VenueName(network_id, envelope.to, is_agent=True))
    return named


def get_venue(network_id: int, envelope: Envelope, order: Confirm, venues: Mapping[VenueName, Venue]) -> Venue:
    """The venue of an order.

    Raises:
        EnvelopeRefused: `venue_not_found`; `invalid_envelope`: `to` names the agent of another venue.
    """
    venue = venues.get(VenueName(network_id, order.venue_id))
    if venue is None:
        raise refuse_unknown_venue()
    if envelope.to != NETWORK and get_recipient(network_id, envelope, venues).pk != venue.pk:
        raise refuse_fields("to and venue_id name two venues", ["to", "payload.venue_id"])
    return venue


def get_recipient(network_id: int, envelope: Envelope, venues: Mapping[VenueName, Venue]) -> Venue:
    """The venue whose agent an envelope is for.

    Raises:
        EnvelopeRefused: `venue_not_found`.
    """
    venue = venues.get(VenueName(network_id, envelope.to, is_agent=True))
    if venue is None:
        raise refuse_unknown_venue()
    return venue


def refuse_unknown_venue() -> EnvelopeRefused:
    """The error for a venue that is not there, not active, or of another network."""
    return EnvelopeRefused(ErrorCode.VENUE_NOT_FOUND, "this network has no such venue")
