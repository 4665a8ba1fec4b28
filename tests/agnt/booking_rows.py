"""Networks, keys, venues, bookings and invoices of one database."""

import itertools
from datetime import UTC, datetime, time, timedelta
from typing import Any

from django.db import transaction

from agnt.models import ApiKey, Booking, Invoice, Network, Venue
from agnt.service.bookings import record_booking
from agnt.service.keys import mint_key
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


def noon(days_ago: int) -> datetime:
    """Noon of a day in UTC."""
    return datetime.combine(db_now().date() - timedelta(days=days_ago), time(12), tzinfo=UTC)


def charged(network: Network, customer: str, *days_ago: int) -> None:
    """Charge a customer for a booking on each of these days."""
    for days in days_ago:
        booked(network, at=noon(days), customer=customer)


def list_invoices() -> list[tuple[str, int, int, str]]:
    """Customer, days ago, cents and state of each invoice."""
    today = db_now().date()
    rows = Invoice.objects.order_by("day", "customer")
    return [(one.customer, (today - one.day).days, one.total_cents, one.state) for one in rows]
