"""Rows of networks for tests: venues, keys, bookings and envelopes."""

from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from accounts.models import User
from agnt.models import ApiKey, Booking, Interaction, KeyUsage, Network, UsageEvent, Venue
from agnt.service.keys import MintedKey, mint_key
from agnt.service.networks import get_or_create_network

DAY = timedelta(days=1)


def make_venue(owner: User, slug: str = "la-brisa", **fields: Any) -> Venue:
    """A venue as an older process wrote it: without the functions that are tested."""
    return Venue.objects.create(network=get_or_create_network(owner), slug=slug, name=slug.title(), **fields)


def make_key(owner: User, name: str = "key", **options: Any) -> MintedKey:
    """A key of the owner's network."""
    return mint_key(owner, name, **options)


def make_booking(venue: Venue, key: ApiKey, at: datetime | None = None, **fields: Any) -> Booking:
    """A booking with its charge of 25 cents."""
    moment = at or timezone.now()
    booking = Booking.objects.create(
        network=venue.network, venue=venue, key=key, created_at=moment, **{"sender": "agent_1", **fields}
    )
    UsageEvent.objects.create(
        network=venue.network, booking=booking, key=key, customer=key.customer, amount_cents=25, at=moment
    )
    return booking


def count_calls(key: ApiKey, calls: int, at: datetime | None = None) -> None:
    """Calls of a key on the UTC day of a moment."""
    KeyUsage.objects.create(key=key, day=(at or timezone.now()).date(), calls=calls)


def make_interaction(network: Network, at: datetime | None = None, **fields: Any) -> Interaction:
    """An envelope that was answered."""
    given = {"sender": "agent_1", "recipient": "network:agnt", "intent": "network.ping", "status": "ok"}
    given |= {"http_status": 200, "latency_ms": 3, "at": at or timezone.now()}
    return Interaction.objects.create(network=network, **(given | fields))
