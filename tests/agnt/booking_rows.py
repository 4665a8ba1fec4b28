"""Networks, keys, venues and bookings of one database."""

import itertools
from datetime import datetime
from typing import Any

from django.db import transaction

from agnt.bookings import NewBooking, record_bookings
from agnt.keys import mint_key
from agnt.models import ApiKey, Booking, Network, Venue
from kit.clock import db_now
from tests.native.rows import person

_numbers = itertools.count(1)


def network_of(login: str) -> Network:
    """A network with a key of the pro tier."""
    return mint_key(
        person(login).user, "its key", tier=ApiKey.Tier.PRO, scope=ApiKey.Scope.BOOKING, customer=f"{login}-pays"
    ).key.network


def venue_of(network: Network, **fields: Any) -> Venue:
    number = next(_numbers)
    details = {"slug": f"venue-{number}", "name": f"Venue {number}"} | fields
    return Venue.objects.create(network=network, **details)


def order_of(network: Network, venue: Venue | None = None, **fields: Any) -> NewBooking:
    """What a confirm with the network's first key asks for."""
    found = venue or network.venues.order_by("pk").first() or venue_of(network)
    key = network.keys.order_by("pk").first()
    assert key is not None
    details: dict[str, Any] = {"sender": "my_agent_001", "customer": key.customer, **fields}
    return NewBooking(
        network_id=network.pk,
        owner_id=network.owner_id,
        venue_id=found.pk,
        venue_public_id=str(found.public_id),
        key_id=key.pk,
        **details,
    )


def booked(network: Network, *, at: datetime | None = None, **fields: Any) -> Booking:
    """A booking as a confirm writes it."""
    with transaction.atomic():
        return record_bookings([order_of(network, **fields)], at or db_now())[0]
