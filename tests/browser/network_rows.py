"""A network in a hub's database: venues, keys of each tier, bookings in every status, charges, invoices, a log."""

import random
import secrets
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from accounts.models import Credential, User
from agnt.models import ApiKey, Booking, Breaker, Interaction, Invoice, KeyUsage, Network, UsageEvent, Venue
from agnt.service.keys import mint_key
from agnt.service.networks import get_or_create_network
from tests.browser.vectors import Hostile

KINDS = ("restaurant", "beach club", "studio", "gallery")
AREAS = ("Canggu", "Ubud", "Seminyak", "Uluwatu")
NAMES = ("La Brisa", "The Lawn", "Ripple Studio", "Old Man's", "Kayu Gallery", "Warung Dandelion", "Milk & Madu")
KEYS = {
    "Concierge app": ("enterprise", "full", "concierge", ["concierge_eu", "concierge_us"]),
    "Trip planner": ("pro", "booking", "trips", []),
    "Trip planner, staging": ("pro", "query", "trips", ["trip_planner_staging"]),
    "Weekend project": ("free", "query", "", []),
}
STATUSES = ("pending", "confirmed", "completed", "cancelled", "no_show")
NOTE = "A table at the window, please, and a high chair for a child of two years."
ENDINGS = (
    ("ok", 200, "booking.search"),
    ("ok", 200, "venue.list"),
    ("ok", 200, "booking.confirm"),
    ("duplicate", 200, "booking.confirm"),
    ("rate_limited", 429, "network.ping"),
    ("circuit_open", 503, "booking.confirm"),
    ("invalid_signature", 401, "booking.search"),
)


@transaction.atomic  # else the hub may bill a day before the rows of its bill are there
def make_network(login: str) -> dict[str, str]:
    """All of it, for one owner; the ids of a venue, a key and a booking."""
    owner = User.objects.get(login=login)
    network = get_or_create_network(owner)
    venues = _make_venues(network)
    keys = _make_keys(owner)
    bookings = _book(network, venues, keys)
    _log(network, venues, keys, bookings)
    Breaker.objects.create(network=network, venue=venues[1], opened_at_s=timezone.now().timestamp(), openings=1)
    return _ids_of(venues[1], keys[0], bookings[0])


def make_hostile(login: str, vectors: list[str]) -> dict[str, str]:
    """A venue, a key, a booking and an envelope with vectors in every field; ids of the first three."""
    owner, now, hostile = User.objects.get(login=login), timezone.now(), Hostile(vectors)

    def text(at_most: int = 2000) -> str:
        return hostile.text(at_most)

    network = get_or_create_network(owner)
    venue = Venue.objects.create(
        network=network,
        slug=text(40) + secrets.token_hex(8),
        agent_name=text(40) + secrets.token_hex(8),
        name=text(200),
        description=text(),
        category=text(80),
        area=text(120),
        city=text(120),
        tags=[text(), text()],
        price_range=text(16),
        priority_rank=1,
        url=text(),
    )
    Breaker.objects.create(network=network, venue=venue, opened_at_s=now.timestamp())
    key = mint_key(owner, text(100), tier=ApiKey.Tier.PRO, customer=text(100), senders=[text(128)]).key
    booking = Booking.objects.create(
        network=network,
        venue=venue,
        key=key,
        sender=text(128),
        slot_id=text(128),
        slot_time=text(64),
        party_size=2,
        user_note=text(500),
    )
    day, number = now.date(), network.invoices.count()
    invoice = Invoice.objects.create(
        network=network, customer=text(60) + str(number), day=day, external_id=text(128), total_cents=25, count=1
    )
    UsageEvent.objects.create(
        network=network, booking=booking, key=key, customer=text(100), amount_cents=25, at=now, invoice=invoice
    )
    Interaction.objects.create(
        network=network,
        key=key,
        at=now,
        sender=text(128),
        recipient=text(128),
        intent=text(32),
        status=text(32),
        http_status=200,
        latency_ms=1,
        venue=venue,
        booking=booking,
        metadata={"user_agent": text(), text(): text(), "dropped": [text()]},
    )
    return _ids_of(venue, key, booking)


def _ids_of(venue: Venue, key: ApiKey, booking: Booking) -> dict[str, str]:
    named = {"venue": venue, "key": key, "booking": booking}
    return {f"network_{name}": str(row.public_id) for name, row in named.items()}


def _make_venues(network: Network) -> list[Venue]:
    return Venue.objects.bulk_create(
        Venue(
            network=network,
            slug=f"venue-{number}",
            name=NAMES[number % len(NAMES)] + (f" {number // len(NAMES) + 1}" if number >= len(NAMES) else ""),
            description="Sunset, music and food at the beach.",
            category=KINDS[number % len(KINDS)],
            area=AREAS[number % len(AREAS)],
            city="Bali",
            tags=["sunset", "dinner"],
            price_range="$" * (number % 3 + 1),
            priority_rank=max(0, 10 - number),
            is_active=number % 9 != 4,
            url="https://venue.example/a2a" if number % 5 == 1 else "",
            agent_name=f"venue_agent_{number}" if number % 5 == 1 else "",
        )
        for number in range(120)
    )


def _make_keys(owner: User) -> list[ApiKey]:
    made = []
    for number, (name, (tier, scope, customer, senders)) in enumerate(KEYS.items()):
        key = mint_key(
            owner, name, tier=ApiKey.Tier(tier), scope=ApiKey.Scope(scope), customer=customer, senders=senders
        ).key
        KeyUsage.objects.bulk_create(
            KeyUsage(
                key=key, day=timezone.now().date() - timedelta(days=back), calls=(4 - number) * (70 - 9 * back)
            )
            for back in range(7)
        )
        made.append(key)
    lost = mint_key(owner, "Lost laptop").key
    Credential.objects.filter(pk=lost.credential_id).update(revoked_at=timezone.now())
    return made


def _book(network: Network, venues: list[Venue], keys: list[ApiKey]) -> list[Booking]:
    now, chance = timezone.now(), random.Random(7)
    bookings = [
        Booking(
            network=network,
            venue=venues[number % 11],
            key=keys[number % 2],
            sender=("concierge_eu", "my_agent_001")[number % 2],
            slot_time="2026-04-12T19:30" if number % 4 else "",
            party_size=number % 6 + 1 if number % 3 else None,
            user_note="" if number % 4 else NOTE,
            status=STATUSES[number % len(STATUSES)],
            created_at=now - timedelta(hours=3 * number),
        )
        for number in range(64)
    ]
    Booking.objects.bulk_create(bookings)
    for one in bookings:
        UsageEvent.objects.create(
            network=network,
            booking=one,
            key=one.key,
            customer=one.key.customer,
            amount_cents=25,
            at=one.created_at,
        )
    for back in range(1, 5):
        day, count = now.date() - timedelta(days=back), chance.randint(3, 9)
        for customer in ("concierge", "trips"):
            is_sent = back > 1
            Invoice.objects.create(
                network=network,
                customer=customer,
                day=day,
                count=count,
                total_cents=25 * count,
                state="sent" if is_sent else "open",
                sent_at=now if is_sent else None,
                external_id=f"in_{back}{customer}" if is_sent else "",
            )
    return bookings


def _log(network: Network, venues: list[Venue], keys: list[ApiKey], bookings: list[Booking]) -> None:
    now = timezone.now()
    rows = []
    for number in range(70):
        status, http_status, intent = ENDINGS[number % len(ENDINGS)]
        is_booked = status == "ok" and intent == "booking.confirm"
        rows.append(
            Interaction(
                network=network,
                key=keys[number % len(keys)],
                at=now - timedelta(minutes=11 * number),
                sender="my_agent_001",
                recipient="network:agnt",
                intent=intent,
                status=status,
                http_status=http_status,
                latency_ms=number % 40,
                venue=venues[number % 11] if intent == "booking.confirm" else None,
                booking=bookings[number % 64] if is_booked else None,
                metadata={"user_agent": "concierge/2.1", "context_bytes": 120} if number % 2 else {},
            )
        )
    Interaction.objects.bulk_create(rows)
