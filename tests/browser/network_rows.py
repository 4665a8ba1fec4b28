"""A network in a hub's database: venues, keys of each tier, bookings in every status, charges, invoices, a log."""

import random
import secrets
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from accounts.groups import create_group
from accounts.models import Credential, Group, User
from accounts.tokens import mint
from agnt.models import ApiKey, Booking, Breaker, Invoice, Network, UsageEvent, Venue
from agnt.service.keys import mint_key
from agnt.service.networks import get_or_create_network
from tests.agnt.network_rows import count_calls, make_booking, make_interaction
from tests.browser.hostile import Hostile
from tests.native.rows import make_client_grant

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
    """A venue, a key, a booking, an envelope and a group with vectors in every field; their ids."""
    owner, now, text = User.objects.get(login=login), timezone.now(), Hostile(vectors).text
    lengths = {"name": 200, "description": 2000, "category": 80, "area": 120, "city": 120, "price_range": 16}
    unique = {name: text(40) + secrets.token_hex(8) for name in ("slug", "agent_name")}
    fields = {name: text(at_most) for name, at_most in lengths.items()} | {"url": text(2000)}
    network = get_or_create_network(owner)
    venue = Venue.objects.create(network=network, **unique, **fields, tags=[text(2000), text(2000)])
    Breaker.objects.create(network=network, venue=venue, opened_at_s=now.timestamp())
    key = mint_key(owner, text(100), tier=ApiKey.Tier.PRO, customer=text(100), senders=[text(128)]).key
    words = {"sender": 128, "slot_id": 128, "slot_time": 64, "user_note": 500}
    booking = make_booking(venue, key, **{name: text(at_most) for name, at_most in words.items()})
    customer = text(60) + str(network.invoices.count())
    invoice = Invoice.objects.create(
        network=network, customer=customer, day=now.date(), external_id=text(128), total_cents=25, count=1
    )
    UsageEvent.objects.filter(booking=booking).update(invoice=invoice, customer=text(100))
    make_interaction(
        network,
        **{name: text(at_most) for name, at_most in (("sender", 128), ("intent", 32), ("status", 32))},
        **{"recipient": text(128), "key": key, "venue": venue, "booking": booking},
        metadata={"user_agent": text(2000), text(2000): text(2000), "dropped": [text(2000)]},
    )
    for reused_at in (None, now):
        make_client_grant(
            owner, app_name=text(60), user_agent=text(300), revoked_at=reused_at, reused_at=reused_at
        )
    group = create_group(f"team-{secrets.token_hex(4)}", "A team", made_by=owner)
    Group.objects.filter(pk=group.pk).update(name=text(100))
    mint(group.account, Credential.Kind.APP, text(100), minted_by=owner)
    return _ids_of(venue, key, booking) | {"group": group.slug}


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
        kinds = {"tier": ApiKey.Tier(tier), "scope": ApiKey.Scope(scope)}
        key = mint_key(owner, name, **kinds, customer=customer, senders=senders).key
        for back in range(7):
            count_calls(key, (4 - number) * (70 - 9 * back), timezone.now() - timedelta(days=back))
        made.append(key)
    lost = mint_key(owner, "Lost laptop").key
    Credential.objects.filter(pk=lost.credential_id).update(revoked_at=timezone.now())
    return made


def _book(network: Network, venues: list[Venue], keys: list[ApiKey]) -> list[Booking]:
    now, chance = timezone.now(), random.Random(7)
    bookings = [
        make_booking(
            venues[number % 11],
            keys[number % 2],
            now - timedelta(hours=3 * number),
            sender=("concierge_eu", "my_agent_001")[number % 2],
            slot_time="2026-04-12T19:30" if number % 4 else "",
            party_size=number % 6 + 1 if number % 3 else None,
            user_note="" if number % 4 else NOTE,
            status=STATUSES[number % len(STATUSES)],
        )
        for number in range(64)
    ]
    for back in range(1, 5):
        day, count = now.date() - timedelta(days=back), chance.randint(3, 9)
        for customer in ("concierge", "trips"):
            sent = {"state": "sent", "sent_at": now, "external_id": f"in_{back}{customer}"} if back > 1 else {}
            Invoice.objects.create(
                network=network, customer=customer, day=day, count=count, total_cents=25 * count, **sent
            )
    return bookings


def _log(network: Network, venues: list[Venue], keys: list[ApiKey], bookings: list[Booking]) -> None:
    for number in range(70):
        status, http_status, intent = ENDINGS[number % len(ENDINGS)]
        is_booked = status == "ok" and intent == "booking.confirm"
        make_interaction(
            network,
            timezone.now() - timedelta(minutes=11 * number),
            key=keys[number % len(keys)],
            sender="my_agent_001",
            **{"intent": intent, "status": status, "http_status": http_status, "latency_ms": number % 40},
            venue=venues[number % 11] if intent == "booking.confirm" else None,
            booking=bookings[number % 64] if is_booked else None,
            metadata={"user_agent": "concierge/2.1", "context_bytes": 120} if number % 2 else {},
        )
