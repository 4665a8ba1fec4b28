"""`/desk/network`: a network in figures, and its rules; the addresses of all pages of a network."""

from datetime import UTC
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Count, FilteredRelation, Max, Q, Sum
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import path, reverse

from accounts.models import User
from agents.core.figures import window_of
from agents.web.desk import owner_form, owner_page
from agnt.models import ApiKey, Booking, Network, Venue
from agnt.models.network import RULES
from agnt.service.asks.breakers import list_open_breakers
from agnt.service.bookings import list_bookings
from agnt.service.key_checks import DAILY_CALLS
from agnt.service.keys import list_keys
from agnt.service.networks import change_rules, find_network
from agnt.web import bookings, keys, log, revenue, signing_page, venue_files, venues
from agnt.web.bookings import BookingRow
from agnt.web.revenue import load_revenue
from kit.clock import db_now
from kit.columns import make_bounded_field

REVENUE_DAYS = 7
WAITING_SHOWN = 5
COUNTS: dict[str, Any] = {"all": Count("pk"), "active": Count("pk", filter=Q(is_active=True))}
USED: dict[str, Any] = {
    "keys": Count("pk"),
    "calls": Sum("today__calls", default=0),
    "most": Max("today__calls", default=0),
}
NONE_USED = dict.fromkeys(USED, 0)


class RulesForm(forms.ModelForm):  # type: ignore[type-arg]
    """The rules of a network."""

    class Meta:
        model = Network
        fields = RULES
        formfield_callback = make_bounded_field


@owner_page
def network(request: HttpRequest, owner: User) -> HttpResponse:
    """The page; its script asks for it again every few seconds."""
    now = db_now()
    tiers = _load_tiers(owner)
    waiting = list_bookings(owner).filter(status=Booking.Status.PENDING)
    oldest = waiting.order_by("created_at", "pk")
    opened = list_open_breakers(owner).select_related("venue")
    context = {
        "venues": Venue.objects.filter(network__owner=owner).aggregate(**COUNTS),
        "tiers": tiers,
        "keys": sum(one["keys"] for one in tiers),
        "calls": sum(one["calls"] for one in tiers),
        "waiting": waiting.count(),
        "waiting_rows": [BookingRow(one) for one in oldest[:WAITING_SHOWN]],
        "open": list(opened.order_by("pk")[:WAITING_SHOWN]),
        "total": load_revenue(owner, window_of(now, REVENUE_DAYS, str(UTC))),
        "revenue_days": REVENUE_DAYS,
    }
    return render(request, "agnt/network.html", context)


@owner_form
def rules(request: HttpRequest, owner: User) -> HttpResponse:
    """The rules of the visitor's network."""
    if request.method != "POST":
        form = RulesForm(instance=find_network(owner) or Network())
        return render(request, "agnt/rules.html", {"form": form})
    form = RulesForm(request.POST)
    if not form.is_valid():
        return render(request, "agnt/rules.html", {"form": form}, status=400)
    change_rules(owner, form.cleaned_data)
    messages.success(request, "The rules are saved.")
    return HttpResponseRedirect(reverse("desk-network-rules"))


def _load_tiers(owner: User) -> list[dict[str, Any]]:
    """The live keys of each tier, and the envelopes that came with them today (UTC); `limit`: of each key."""
    today = FilteredRelation("usage", condition=Q(usage__day=db_now().date()))
    live: Any = list_keys(owner).order_by().annotate(today=today).values("tier").annotate(**USED)
    used = {row["tier"]: row for row in live}
    return [
        NONE_USED | used.get(tier.value, {}) | {"name": tier.label, "limit": DAILY_CALLS[tier]}
        for tier in ApiKey.Tier
    ]


urlpatterns = [  # `hub/urls.py` includes them where AGNT is on
    path("desk/network", network, name="desk-network"),
    path("desk/network/venues", venues.venues, name="desk-network-venues"),
    path("desk/network/venues.csv", venue_files.as_csv, name="desk-network-venues-csv"),
    path("desk/network/venues/import", venue_files.import_file, name="desk-network-venues-import"),
    path("desk/network/venues/new", venues.new, name="desk-network-venue-new"),
    path("desk/network/venues/<uuid:venue_id>", venues.venue, name="desk-network-venue"),
    path("desk/network/keys", keys.keys, name="desk-network-keys"),
    path("desk/network/keys/<uuid:api_key_id>", keys.key, name="desk-network-key"),
    path("desk/network/bookings", bookings.bookings, name="desk-network-bookings"),
    path("desk/network/bookings/<uuid:booking_id>", bookings.booking, name="desk-network-booking"),
    path("desk/network/revenue", revenue.revenue, name="desk-network-revenue"),
    path("desk/network/log", log.log, name="desk-network-log"),
    path("desk/network/rules", rules, name="desk-network-rules"),
    path("demos/agnt/", signing_page.sign_envelope, name="sign-envelope"),
]
