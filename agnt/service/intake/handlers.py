"""The intents that the hub answers from rows: lists and searches of venues; the venue that an envelope names."""

import uuid
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import NamedTuple

from django.db.models import Q
from django.db.models.functions import Lower

from agnt.models import Venue
from agnt.service.keys import FoundKey
from agnt.service.venues.search import VenueSearch
from agnt.wire.envelope import Envelope, refuse_fields
from agnt.wire.errors import EnvelopeRefused, ErrorCode, Json
from agnt.wire.fields import NETWORK
from agnt.wire.payloads import Confirm, Order, Search, VenueList
from kit.clock import iso

NETWORK_VERSION = "1.0"
REFERRAL_FEE_PCT = 7


class VenueName(NamedTuple):
    """How an envelope names a venue of its network. `is_agent`: by its agent, otherwise by UUID or slug."""

    network_id: int
    name: str
    is_agent: bool = False


def find_venues(names: Collection[VenueName]) -> dict[VenueName, Venue]:
    """The active venues with these names, in one query. A UUID comes before a slug that reads like one."""
    if not names:
        return {}
    agents = {one.name for one in names if one.is_agent}
    others = {one.name for one in names if not one.is_agent}
    ids = {public_id for name in others if (public_id := _read_uuid(name))}
    named = Q(public_id__in=ids) | Q(folded__in={name.lower() for name in others}) | Q(agent_name__in=agents)
    networks = {one.network_id for one in names}
    rows = Venue.objects.filter(network_id__in=networks, is_active=True).alias(folded=Lower("slug")).filter(named)
    by_id: dict[tuple[int, uuid.UUID | None], Venue] = {}
    by_slug: dict[tuple[int, str], Venue] = {}
    by_agent: dict[tuple[int, str], Venue] = {}
    for row in rows:
        by_id[row.network_id, row.public_id] = row
        by_slug[row.network_id, row.slug.lower()] = row
        by_agent[row.network_id, row.agent_name] = row

    def find(one: VenueName) -> Venue | None:
        if one.is_agent:
            return by_agent.get((one.network_id, one.name))
        return by_id.get((one.network_id, _read_uuid(one.name))) or by_slug.get((one.network_id, one.name.lower()))

    return {one: venue for one in names if (venue := find(one)) is not None}


def _read_uuid(name: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(name)
    except ValueError:
        return None


def answer_read(venues: VenueSearch, key: FoundKey, order: Order, *, sender: str, now: datetime) -> Json:
    """The result of an order that books nothing."""
    if not isinstance(order, Search | VenueList):
        return {
            "active_venues": venues.count(key.network_id),
            "tier": key.tier,
            "agent_id": sender,
            "network_version": NETWORK_VERSION,
        }
    found = venues.find(key.network_id, key.venues_version, order, now)
    if isinstance(order, VenueList):
        return {"venues": found.venues, "count": found.count}
    return {
        "results": found.venues,
        "count": found.count,
        "fee_pct": REFERRAL_FEE_PCT,
        "expires_at": iso(found.expires_at),
    }


def name_venues(network_id: int, envelope: Envelope) -> list[VenueName]:
    """The venues that an envelope names, also where its payload is not checked yet."""
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
