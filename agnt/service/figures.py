"""Figures of networks: their use and revenue by UTC day, the drift of their charges, and counters of this process.

Booking, charge and interaction are one transaction: any difference is a fault. The drift check looks at the newest
rows on each request of `/metrics`; the rest were the newest once.
"""

import logging
from collections import Counter
from collections.abc import Collection, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final

from django.db.models import Count, Exists, OuterRef, QuerySet, Sum
from django.db.models.functions import TruncDate
from msgspec import Struct

from accounts.models import User
from agnt.models import ApiKey, Booking, Interaction, KeyUsage, UsageEvent
from clawbridge.agnt.fields import INTENTS
from kit.clock import db_now

logger = logging.getLogger(__name__)

NEWEST = 1_000
WITHIN = timedelta(hours=1)  # interactions are kept for longer
NAMED = 10
MAX_COUNTED = 10_000
TIERS: Final = frozenset(ApiKey.Tier.values)
OK = "ok"
DUPLICATE = "duplicate"


class UsageDay(Struct, frozen=True):
    """One UTC day. `calls`: envelopes that came with a key; `bookings`: those that were charged."""

    day: date
    calls: int
    bookings: int
    revenue_cents: int


def load_days(owner: User, first: date, last: date, *, key: ApiKey | None = None) -> Sequence[UsageDay]:
    """Each day of an owner's network from `first` to `last`, oldest first; with `key`, what came with it alone."""
    start = datetime.combine(first, time.min, UTC)
    end = datetime.combine(last + timedelta(days=1), time.min, UTC)
    used = KeyUsage.objects.filter(key__network__owner=owner, day__range=(first, last))
    charged = UsageEvent.objects.filter(network__owner=owner, at__gte=start, at__lt=end)
    if key is not None:
        used, charged = used.filter(key=key), charged.filter(key=key)
    calls = dict(used.values_list("day").annotate(total=Sum("calls")).order_by())
    by_day = charged.annotate(on=TruncDate("at", tzinfo=UTC)).values_list("on")
    sums = by_day.annotate(number=Count("pk"), cents=Sum("amount_cents")).order_by()
    charges = {on: (number, cents) for on, number, cents in sums}
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    return [UsageDay(day, calls.get(day, 0), *charges.get(day, (0, 0))) for day in days]


def load_calls(keys: Collection[ApiKey], day: date) -> dict[int, int]:
    """The calls of each key on a UTC day, by primary key; a key without calls is not in it."""
    rows = KeyUsage.objects.filter(key__in=[key.pk for key in keys], day=day)
    return dict(rows.values_list("key_id", "calls"))


class Drift(Struct, frozen=True):
    """`uncharged`: bookings without a charge; `unconfirmed`: charges without the log of a successful confirm.

    `charged_last_hour`, `oldest_unbilled_s`: of charges that are on no bill yet; the first stops at MAX_COUNTED.
    """

    uncharged: int = 0
    unconfirmed: int = 0
    charged_last_hour: int = 0
    oldest_unbilled_s: float = 0


def find_drift() -> Drift:
    """Compute the drift from at most NEWEST rows of each kind; all queries use indexes."""
    now = db_now()
    unbilled = UsageEvent.objects.filter(invoice=None)
    oldest = unbilled.order_by("at").values_list("at", flat=True).first()
    return Drift(
        uncharged=len(find_uncharged()),
        unconfirmed=len(find_unconfirmed()),
        charged_last_hour=unbilled.filter(at__gt=now - timedelta(hours=1)).order_by()[:MAX_COUNTED].count(),
        oldest_unbilled_s=max(0.0, (now - oldest).total_seconds()) if oldest else 0,
    )


def find_uncharged() -> list[int]:
    """Keys of bookings among the newest that have no charge."""
    newest = Booking.objects.filter(pk__gte=_find_start(Booking.objects.all()))
    return list(newest.filter(usage_event=None).values_list("pk", flat=True))


def find_unconfirmed() -> list[int]:
    """Keys of bookings whose charge is among the newest, and of which no successful confirm is logged."""
    newest = UsageEvent.objects.filter(pk__gte=_find_start(UsageEvent.objects.all()), at__gt=db_now() - WITHIN)
    confirms = Interaction.objects.filter(booking=OuterRef("booking"), intent="booking.confirm", status="ok")
    return list(newest.filter(~Exists(confirms)).values_list("booking_id", flat=True))


def _find_start(rows: QuerySet[Any]) -> int:
    """The key of the oldest among the newest rows."""
    keys = rows.order_by("-pk").values_list("pk", flat=True)
    return keys[NEWEST - 1 : NEWEST].first() or 0


def report_drift() -> int:
    """Log which bookings differ, the first NAMED of each kind; how many differ."""
    found = {"uncharged": find_uncharged(), "unconfirmed": find_unconfirmed()}
    for kind, keys in found.items():
        if keys:
            ids = Booking.objects.filter(pk__in=keys[:NAMED]).values_list("public_id", flat=True)
            extra = {"kind": kind, "count": len(keys), "bookings": " ".join(map(str, ids))}
            logger.error("agnt.metering_drift", extra=extra)
    return sum(map(len, found.values()))


class AgntCounts:
    """`requests`: answered envelopes by intent, tier and status. `metered_events`: charges that were committed.

    The event loop counts envelopes and charges; one thread at a time counts openings of breakers.
    """

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, str]] = Counter()
        self.metered_events = 0
        self.breakers_opened = 0
        self.venue_breakers_opened = 0

    def note_envelope(self, intent: str, tier: str, status: str) -> None:
        """An envelope was answered. `status`: OK, DUPLICATE for a stored answer, or the code of the error.

        An unknown intent counts as `other`, an unknown tier as `none`: callers cannot make up labels.
        """
        known_intent = intent if intent in INTENTS else "other"
        self.requests[known_intent, tier if tier in TIERS else "none", status] += 1
