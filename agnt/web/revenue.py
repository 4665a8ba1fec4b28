"""`/desk/network/revenue`: what bookings brought in, by UTC day, customer, key or venue, and the invoices."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date
from typing import Any
from urllib.parse import urlencode

from django.db.models import Count, F, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from accounts.models import User
from agents.core.figures import WINDOW_DAYS, DayWindow, window_of
from agents.web.desk import owner_page
from agents.web.desk.charts import Chart, amount_chart
from agnt.models import Invoice, Network, UsageEvent
from agnt.service.figures import Day, load_days
from agnt.service.networks import find_network
from agnt.web.lists import describe_cents, page_of
from kit.clock import db_now

INVOICES_SHOWN = 30
GROUPS = {"customer": "customer", "key": "key__credential__name", "venue": "booking__venue__name"}
GONE = {"key": "a key that is gone"}
SUMS: dict[str, Any] = {"bookings": Count("pk"), "cents": Sum("amount_cents", default=0)}


@dataclass(frozen=True, slots=True)
class Revenue:
    """The days of a window, and their sums."""

    days: Sequence[Day]

    @property
    def rows(self) -> list[tuple[date, str, int]]:
        """The day, its amount for people and its bookings, the newest first."""
        return [(one.day, describe_cents(one.revenue_cents), one.bookings) for one in reversed(self.days)]

    @property
    def bookings(self) -> int:
        """How many were charged."""
        return sum(one.bookings for one in self.days)

    @property
    def shown(self) -> str:
        """The whole amount for people."""
        return describe_cents(sum(one.revenue_cents for one in self.days))

    @property
    def chart(self) -> Chart:
        """A bar for each day."""
        days, amounts = [one.day for one in self.days], [one.revenue_cents for one in self.days]
        return amount_chart(days, amounts, kind="revenue", about="Revenue in US dollars.", describe=describe_cents)


@owner_page
def revenue(request: HttpRequest, owner: User) -> HttpResponse:
    """The page. Days are UTC: invoices go by them."""
    count = next((each for each in WINDOW_DAYS if request.GET.get("days") == str(each)), WINDOW_DAYS[0])
    window, by = window_of(db_now(), count, str(UTC)), request.GET.get("by", "")
    by = by if by in GROUPS else "customer"
    charged = UsageEvent.objects.filter(network__owner=owner, at__gte=window.since).order_by()
    grouped: Any = charged.values(of=F(GROUPS[by])).annotate(**SUMS)
    page = page_of(request, grouped.order_by("-cents", "of"))
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


def load_revenue(owner: User, window: DayWindow) -> Revenue:
    """The revenue of each day of a window."""
    return Revenue(load_days(find_network(owner) or Network(), window.days[0], window.days[-1]))
