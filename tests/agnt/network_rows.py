"""Rows of networks for tests: venues, keys, bookings, invoices and envelopes."""

import itertools
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from accounts.models import User
from agnt.models import ApiKey, Booking, Interaction, Invoice, KeyUsage, Network, UsageEvent, Venue
from agnt.service.bookings import record_booking
from agnt.service.invoices import AFTER_MIDNIGHT
from agnt.service.keys import FoundKey, MintedKey, find_key, mint_key
from agnt.service.networks import get_or_create_network
from kit.clock import db_now
from tests.native.rows import person

DAY = timedelta(days=1)


def make_venue(owner: User, slug: str = "la-brisa", **fields: Any) -> Venue:
    """A venue as an older process wrote it: without the functions that are tested."""
    return Venue.objects.create(network=get_or_create_network(owner), slug=slug, name=slug.title(), **fields)


def make_key(owner: User, name: str = "key", **options: Any) -> MintedKey:
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


def found_key(token: str) -> FoundKey:
    """A key that is live, as an envelope finds it."""
    key = find_key(token)
    assert key is not None
    return key


def count_calls(key: ApiKey, calls: int, at: datetime | None = None) -> None:
    """Calls of a key on the UTC day of a moment."""
    KeyUsage.objects.create(key=key, day=(at or timezone.now()).date(), calls=calls)


def make_interaction(network: Network, at: datetime | None = None, **fields: Any) -> Interaction:
    given = {"sender": "agent_1", "recipient": "network:agnt", "intent": "network.ping", "status": "ok"}
    given |= {"http_status": 200, "latency_ms": 3, "at": at or timezone.now()}
    return Interaction.objects.create(network=network, **(given | fields))


_numbers = itertools.count(1)


def network_of(login: str) -> Network:
    """A network with a key of the pro tier."""
    return mint_key(
        person(login).user, "its key", tier=ApiKey.Tier.PRO, scope=ApiKey.Scope.BOOKING, customer=f"{login}-pays"
    ).key.network


@pytest.fixture
def network(db: None) -> Network:
    """That of `ana`."""
    return network_of("ana")


def venue_of(network: Network, **fields: Any) -> Venue:
    number = next(_numbers)
    details = {"slug": f"venue-{number}", "name": f"Venue {number}"} | fields
    return Venue.objects.create(network=network, **details)


def order_of(network: Network, venue: Venue | None = None, at: datetime | None = None, **fields: Any) -> Booking:
    """The booking that a confirm with the network's first key asks for."""
    key = network.keys.order_by("pk").first()
    assert key is not None
    now = at or db_now()
    return Booking(
        network=network,
        venue=venue or network.venues.order_by("pk").first() or venue_of(network),
        key=key,
        created_at=now,
        updated_at=now,
        **{"sender": "my_agent_001", **fields},
    )


def booked(network: Network, customer: str = "", **fields: Any) -> Booking:
    """A booking as a confirm writes it."""
    booking = order_of(network, **fields)
    assert booking.key is not None
    with transaction.atomic():
        record_booking(booking, network.owner_id, customer or booking.key.customer)
    return booking


def unbilled_day() -> date:
    """The UTC day that a batch does not bill yet: until ten minutes after midnight, yesterday."""
    return (db_now() - AFTER_MIDNIGHT).date()


def noon(days_ago: int) -> datetime:
    """Noon in UTC of a day before the one that is not billed yet."""
    return datetime.combine(unbilled_day() - timedelta(days=days_ago), time(12), tzinfo=UTC)


def charged(network: Network, customer: str, *days_ago: int) -> None:
    """Charge a customer for a booking on each of these days."""
    for days in days_ago:
        booked(network, at=noon(days), customer=customer)


def list_invoices() -> list[tuple[str, int, int, str]]:
    """Customer, days before the one that is not billed yet, cents and state of each invoice."""
    rows = Invoice.objects.order_by("day", "customer")
    return [(one.customer, (unbilled_day() - one.day).days, one.total_cents, one.state) for one in rows]
