"""`/desk/network`: a network in figures: venues, keys by tier, bookings that wait and revenue by day."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from django.db.models import Count, F, Max, Q, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_safe

from accounts.models import User
from agents.web.desk import require_owner
from agents.web.desk.figures import window_of
from agnt.limits import DAILY_CALLS
from agnt.models import ApiKey, Booking, Breaker, KeyUsage, Venue
from agnt.web.bookings import BookingRow
from agnt.web.keys import find_keys
from agnt.web.revenue import load_revenue
from kit.clock import db_now

REVENUE_DAYS = 7
WAITING_SHOWN = 5
COUNTS: dict[str, Any] = {"all": Count("pk"), "active": Count("pk", filter=Q(is_active=True))}
USED: dict[str, Any] = {"most": Max("calls"), "sum": Sum("calls")}


@dataclass(frozen=True, slots=True)
class TierRow:
    """The live keys of one tier, and the envelopes that came with them today (UTC).

    `most`: of the key that was used most; `limit`: of each key.
    """

    name: str
    keys: int
    calls: int
    most: int
    limit: int


@never_cache
@gzip_page
@require_safe
@require_owner
def network(request: HttpRequest, owner: User) -> HttpResponse:
    """The page; its script asks for it again every few seconds."""
    now = db_now()
    tiers = _load_tiers(owner)
    venues = Venue.objects.filter(network__owner=owner).aggregate(**COUNTS)
    waiting = Booking.objects.filter(network__owner=owner, status=Booking.Status.PENDING)
    oldest = waiting.select_related("venue", "key__credential").order_by("created_at", "pk")
    opened = Breaker.objects.filter(network__owner=owner, opened_at_s__isnull=False).select_related("venue")
    context = {
        "venues": venues,
        "tiers": tiers,
        "keys": sum(one.keys for one in tiers),
        "calls": sum(one.calls for one in tiers),
        "waiting": waiting.count(),
        "waiting_rows": [BookingRow(one) for one in oldest[:WAITING_SHOWN]],
        "open": list(opened.order_by("pk")[:WAITING_SHOWN]),
        "total": load_revenue(owner, window_of(now, REVENUE_DAYS, str(UTC))),
        "revenue_days": REVENUE_DAYS,
    }
    return render(request, "agnt/network.html", context)


def _load_tiers(owner: User) -> Sequence[TierRow]:
    live = find_keys(owner)
    counted = dict(live.order_by().values_list("tier").annotate(count=Count("pk")))
    today = KeyUsage.objects.filter(key__in=live, day=db_now().date()).order_by()
    by_tier: Any = today.values(tier=F("key__tier")).annotate(**USED)
    used = {row["tier"]: row for row in by_tier}
    none = {"sum": 0, "most": 0}
    return [
        TierRow(
            tier.label,
            counted.get(tier.value, 0),
            used.get(tier.value, none)["sum"],
            used.get(tier.value, none)["most"],
            DAILY_CALLS[tier],
        )
        for tier in ApiKey.Tier
    ]
