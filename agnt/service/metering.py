"""The drift check: whether each confirmed booking has one charge, and each charge its answered confirm.

Booking, charge and interaction are one transaction: any difference is a fault. The newest rows are checked on each
request of `/metrics`; the rest were the newest once.
"""

import logging
from datetime import timedelta
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet
from msgspec import Struct

from agnt.models import Booking, Interaction, UsageEvent
from kit.clock import db_now

logger = logging.getLogger(__name__)

NEWEST = 1_000
WITHIN = timedelta(hours=1)  # interactions are kept for longer
NAMED = 10
MOST = 10_000


class Drift(Struct, frozen=True):
    """`uncharged`: bookings without a charge; `unconfirmed`: charges without the log of a successful confirm.

    `charged_last_hour`, `oldest_unbilled_s`: of charges that are on no bill yet; the first stops at MOST.
    """

    uncharged: int = 0
    unconfirmed: int = 0
    charged_last_hour: int = 0
    oldest_unbilled_s: float = 0


def find_drift() -> Drift:
    """Look once, by indexes, at NEWEST rows at most of each kind."""
    now = db_now()
    unbilled = UsageEvent.objects.filter(invoice=None)
    oldest = unbilled.order_by("at").values_list("at", flat=True).first()
    return Drift(
        uncharged=len(find_uncharged()),
        unconfirmed=len(find_unconfirmed()),
        charged_last_hour=unbilled.filter(at__gt=now - timedelta(hours=1)).order_by()[:MOST].count(),
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
