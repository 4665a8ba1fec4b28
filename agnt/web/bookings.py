"""`/desk/network/bookings`: the bookings of a network, and what its owner does with each."""

from dataclasses import dataclass
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import get_object_or_404, render
from django.urls import reverse

from accounts.models import User
from agents.web.desk import owner_form, owner_page
from agnt.models import Booking, UsageEvent
from agnt.service.bookings import StatusRefused, change_status, list_actions, list_bookings
from agnt.service.cancellations import list_cancellations
from agnt.web.lists import KEY, SENDER, VENUE, describe_cents, show_newest
from agnt.web.log import LogRow
from kit.filters import Filter, one_of

ENVELOPES_SHOWN = 20
Status = Booking.Status
VERBS = {
    Status.CONFIRMED: "Confirm",
    Status.COMPLETED: "Complete",
    Status.NO_SHOW: "Mark as no-show",
    Status.CANCELLED: "Cancel",
}
SAID = {
    Status.CONFIRMED: "The booking at {} is confirmed.",
    Status.COMPLETED: "The booking at {} is completed.",
    Status.NO_SHOW: "The guest of the booking at {} did not come.",
    Status.CANCELLED: "The booking at {} is cancelled. Its charge stays.",
}
FILTERS = (Filter("status", one_of(Status.values), lambda value: Q(status=value)), KEY, SENDER, VENUE)
MARKS = {Status.CONFIRMED: "good", Status.COMPLETED: "good", Status.CANCELLED: "bad", Status.NO_SHOW: "bad"}


@dataclass(frozen=True, slots=True)
class BookingRow:
    """A booking. `actions`: the statuses that it can get now, each with its verb."""

    booking: Booking

    @property
    def actions(self) -> list[tuple[str, str]]:
        """The acts that its owner can do, the main action first."""
        possible = list_actions(self.booking)
        return [(status.value, verb) for status, verb in VERBS.items() if status in possible]

    @property
    def mark(self) -> str:
        """The class of the badge of its status."""
        return MARKS.get(Status(self.booking.status), "")


@owner_page
def bookings(request: HttpRequest, owner: User) -> HttpResponse:
    """The list, newest first, of the newest MOST_LISTED bookings."""
    shown = show_newest(request, owner, list_bookings(owner), "created_at", FILTERS)
    context = {
        **shown,
        "rows": [BookingRow(one) for one in shown["page"]],
        "statuses": Status.choices,
        "kept": urlencode(shown["filters"].chosen),
        "here": request.GET.urlencode(),
    }
    return render(request, "agnt/bookings.html", context)


@owner_form
def booking(request: HttpRequest, owner: User, booking_id: UUID) -> HttpResponse:
    """One booking. A POST gives it a status, and comes back to this page, or to the list that it came from."""
    own = get_object_or_404(list_bookings(owner), public_id=booking_id)
    if request.method == "POST":
        _change(request, own)
        return HttpResponseRedirect(_way_back(request, own))
    charge: UsageEvent | None = getattr(own, "usage_event", None)
    envelopes = own.interactions.select_related("key__credential").order_by("-at", "-pk")[:ENVELOPES_SHOWN]
    context = {
        "row": BookingRow(own),
        "charge": charge,
        "amount": describe_cents(charge.amount_cents) if charge else "",
        "told": list_cancellations(owner).filter(public_id=own.public_id).first(),
        "envelopes": [LogRow(one) for one in envelopes],
    }
    return render(request, "agnt/booking.html", context)


def _change(request: HttpRequest, own: Booking) -> None:
    wanted = request.POST.get("status", "")
    if wanted not in SAID:
        return messages.error(request, "Nothing is changed: choose what to do with the booking.")
    status = Status(wanted)
    try:
        change_status(own, status)
    except StatusRefused as refused:
        return messages.error(
            request, f"Nothing is changed: the booking is {Status(refused.status).label.lower()}."
        )
    return messages.success(request, SAID[status].format(own.venue.name))


def _way_back(request: HttpRequest, own: Booking) -> str:
    if "list" not in request.POST:
        return reverse("desk-network-booking", args=[own.public_id])
    kept = QueryDict(request.POST["list"]).urlencode()
    return f"{reverse('desk-network-bookings')}{'?' if kept else ''}{kept}#bookings"
