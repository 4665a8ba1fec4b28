"""Finds the venues that envelopes name: by `venue_id` in the payload, or by agent in `to`."""

import uuid
from collections.abc import Collection
from typing import NamedTuple

from django.db.models import Q
from django.db.models.functions import Lower

from agnt.models import Venue
from agnt.ports import VenueRef


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


def refer_to(venue: Venue) -> VenueRef:
    """What asking a venue takes."""
    return VenueRef(
        venue_id=venue.pk,
        public_id=str(venue.public_id),
        slug=venue.slug,
        agent_name=venue.agent_name,
        name=venue.name,
        agent_id=venue.agent_id,
        url=venue.url,
    )


def _read_uuid(name: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(name)
    except ValueError:
        return None
