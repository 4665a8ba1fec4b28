"""What the intents answer from rows: reads from the index of venues; which venue `booking.confirm` is for."""

from collections.abc import Mapping
from datetime import datetime

from agnt.envelope import Envelope, refuse_fields
from agnt.errors import EnvelopeRefused, ErrorCode, Json
from agnt.models import Venue
from agnt.payloads import Confirm, Order, Search, VenueList
from agnt.venue_index import VenueIndex
from agnt.venue_lookup import VenueName
from agnt.wire import NETWORK
from kit.clock import iso

NETWORK_VERSION = "1.0"
REFERRAL_FEE_PCT = 7


def answer_read(index: VenueIndex, order: Order, *, tier: str, sender: str, now: datetime) -> Json:
    """The result of an order that books nothing."""
    if isinstance(order, VenueList):
        return _list(index, order)
    if isinstance(order, Search):
        return _search(index, order, now)
    return {
        "active_venues": index.count,
        "tier": tier,
        "agent_id": sender,
        "network_version": NETWORK_VERSION,
    }


def _list(index: VenueIndex, order: VenueList) -> Json:
    found = index.list_venues(order)
    return {"venues": found.venues, "count": found.count}


def _search(index: VenueIndex, order: Search, now: datetime) -> Json:
    found = index.search(order, now)
    return {
        "results": found.venues,
        "count": found.count,
        "fee_pct": REFERRAL_FEE_PCT,
        "expires_at": iso(found.expires_at),
    }


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
