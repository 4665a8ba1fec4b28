"""`/desk/network`: a network in figures, its revenue and its rules; the addresses of all pages of a network."""

import json
from datetime import UTC
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.db.models import Count, F, FilteredRelation, Max, Q, Sum
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import path, reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_safe

from accounts.models import User
from accounts.pages import user_form, user_page
from agents.core.figures import WINDOW_DAYS, DayWindow, window_of
from agents.pages.desk.charts import amount_chart
from agnt.models import ApiKey, Booking, Invoice, Network, UsageEvent, Venue
from agnt.models.network import RULES
from agnt.pages import ON_A_PAGE, bookings, describe_cents, keys, venues
from agnt.pages.bookings import describe_booking_row
from agnt.service.asks.breakers import list_open_breakers
from agnt.service.bookings import list_bookings
from agnt.service.figures import load_days
from agnt.service.key_checks import DAILY_CALLS
from agnt.service.keys import list_keys
from agnt.service.networks import change_rules, find_network
from clawbridge.agnt.fields import NETWORK, Json
from kit.clock import db_now
from kit.columns import make_bounded_field
from kit.filters import page_of

REVENUE_DAYS = 7
WAITING_SHOWN = 5
COUNTS: dict[str, Any] = {"all": Count("pk"), "active": Count("pk", filter=Q(is_active=True))}
USED: dict[str, Any] = {
    "keys": Count("pk"),
    "calls": Sum("today__calls", default=0),
    "most": Max("today__calls", default=0),
}
NONE_USED = dict.fromkeys(USED, 0)
INVOICES_SHOWN = 30
GROUPS = {"customer": "customer", "key": "key__credential__name", "venue": "booking__venue__name"}
GONE = {"key": "a key that is gone"}
SUMS: dict[str, Any] = {"bookings": Count("pk"), "cents": Sum("amount_cents", default=0)}
# The second vector of the reference: what the page shows at first can be compared with it.
SECRET = "test-signing-key-0001"  # noqa: S105  it is published
SENDER = "agnt_consumer_42"
AT_S = 1775988123
FIRST = "booking.search"
EXAMPLES: dict[str, Json] = {
    FIRST: {"query": "sunset dinner", "location": "canggu", "limit": 5},
    "booking.confirm": {"venue_id": "la-brisa", "time": "19:30", "party_size": 2, "user_note": "window"},
    "venue.list": {"category": "restaurant", "location": "canggu", "limit": 10},
    "network.ping": {},
}


class NetworkRulesForm(forms.ModelForm):  # type: ignore[type-arg]
    """The rules of a network."""

    class Meta:
        model = Network
        fields = RULES
        formfield_callback = make_bounded_field


@user_page
def network(request: HttpRequest, owner: User) -> HttpResponse:
    """The page with the figures; its script fetches the page again every few seconds."""
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
        "waiting_rows": [describe_booking_row(one) for one in oldest[:WAITING_SHOWN]],
        "open": list(opened.order_by("pk")[:WAITING_SHOWN]),
        "total": load_revenue(owner, window_of(now, REVENUE_DAYS, str(UTC))),
        "revenue_days": REVENUE_DAYS,
    }
    return render(request, "agnt/network.html", context)


@user_form
def rules(request: HttpRequest, owner: User) -> HttpResponse:
    """The rules of the visitor's network."""
    if request.method != "POST":
        form = NetworkRulesForm(instance=find_network(owner) or Network())
        return render(request, "agnt/rules.html", {"form": form})
    form = NetworkRulesForm(request.POST)
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


@user_page
def revenue(request: HttpRequest, owner: User) -> HttpResponse:
    """The page with the revenue. Days are UTC, as those of invoices."""
    count = next((each for each in WINDOW_DAYS if request.GET.get("days") == str(each)), WINDOW_DAYS[0])
    window, by = window_of(db_now(), count, str(UTC)), request.GET.get("by", "")
    by = by if by in GROUPS else "customer"
    charged = UsageEvent.objects.filter(network__owner=owner, at__gte=window.since).order_by()
    grouped: Any = charged.values(of=F(GROUPS[by])).annotate(**SUMS)
    page = page_of(request, grouped.order_by("-cents", "of"), ON_A_PAGE)
    invoices = Invoice.objects.filter(network__owner=owner).order_by("-day", "customer")[:INVOICES_SHOWN]
    context = {
        "window": window,
        "choices": WINDOW_DAYS,
        "by": by,
        "groups": list(GROUPS),
        "total": load_revenue(owner, window),
        "rows": [(row["of"] or GONE.get(by, "–"), row["bookings"], describe_cents(row["cents"])) for row in page],
        "page": page,
        "invoices": [(one, describe_cents(one.total_cents)) for one in invoices],
        "most_invoices": INVOICES_SHOWN,
        "kept": urlencode({"days": window.count, "by": by}),
    }
    return render(request, "agnt/revenue.html", context)


def load_revenue(owner: User, window: DayWindow) -> dict[str, Any]:
    """The revenue of the days of a window: their sums, a chart, and the rows of a table, the newest first."""
    loaded = load_days(owner, window.days[0], window.days[-1])
    days, amounts = [one.day for one in loaded], [one.revenue_cents for one in loaded]
    return {
        "rows": [(one.day, describe_cents(one.revenue_cents), one.bookings) for one in reversed(loaded)],
        "bookings": sum(one.bookings for one in loaded),
        "shown": describe_cents(sum(amounts)),
        "chart": amount_chart(
            days, amounts, kind="revenue", about="Revenue in US dollars.", describe=describe_cents
        ),
    }


@never_cache
@gzip_page
@require_safe
def sign_envelope(request: HttpRequest) -> HttpResponse:
    """A form that signs an envelope in the browser, filled with an example; nothing typed into the form is sent to
    the hub.
    """
    examples = {intent: json.dumps(payload, indent=2) for intent, payload in EXAMPLES.items()}
    context = {
        "secret": SECRET,
        "sender": SENDER,
        "network": NETWORK,
        "at_s": AT_S,
        "examples": examples,
        "payload": examples[FIRST],
    }
    return render(request, "agnt/sign.html", context)


urlpatterns = [  # `hub/urls.py` includes them where AGNT is on
    path("desk/network", network, name="desk-network"),
    path("desk/network/venues", venues.venues, name="desk-network-venues"),
    path("desk/network/venues.csv", venues.export, name="desk-network-venues-csv"),
    path("desk/network/venues/import", venues.import_file, name="desk-network-venues-import"),
    path("desk/network/venues/new", venues.new, name="desk-network-venue-new"),
    path("desk/network/venues/<uuid:venue_id>", venues.venue, name="desk-network-venue"),
    path("desk/network/keys", keys.keys, name="desk-network-keys"),
    path("desk/network/keys/<uuid:api_key_id>", keys.key, name="desk-network-key"),
    path("desk/network/bookings", bookings.bookings, name="desk-network-bookings"),
    path("desk/network/bookings/<uuid:booking_id>", bookings.booking, name="desk-network-booking"),
    path("desk/network/revenue", revenue, name="desk-network-revenue"),
    path("desk/network/log", bookings.log, name="desk-network-log"),
    path("desk/network/rules", rules, name="desk-network-rules"),
    path("demos/agnt/", sign_envelope, name="sign-envelope"),
]
