"""`/desk/network/bookings` and `/desk/network/log`: bookings of a network, and the envelopes that came to it."""

from datetime import date
from typing import Any, NamedTuple
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.dateparse import parse_date

from accounts.models import User
from accounts.pages import user_form, user_page
from agents.core.figures import moments_of, read_zone
from agnt.models import Booking, Interaction, UsageEvent
from agnt.pages import KEY, SENDER, VENUE, describe_cents, show_newest
from agnt.service.bookings import StatusRefused, change_status, list_actions, list_bookings
from agnt.service.cancellations import list_cancellations
from agnt.service.figures import DUPLICATE, OK
from clawbridge.agnt.fields import INTENTS, NETWORK, ErrorCode
from kit.filters import Filter, one_of

ENVELOPES_SHOWN = 20
Status = Booking.Status
FILTERS = (Filter("status", one_of(Status.values), lambda value: Q(status=value)), KEY, SENDER, VENUE)
ERRORS = "errors"
LOG_STATUSES = (OK, DUPLICATE, ERRORS, *sorted(ErrorCode))
LOG_FILTERS = (
    Filter(
        "status",
        one_of(LOG_STATUSES),
        lambda value: ~Q(status__in=[OK, DUPLICATE]) if value == ERRORS else Q(status=value),
    ),
    Filter("intent", one_of(INTENTS), lambda value: Q(intent=value)),
    KEY,
    SENDER,
    VENUE,
)
METADATA_TEXTS = {
    "user_agent": "{}",
    "context_bytes": "{} bytes of context",
    "dropped": "dropped {}",
    "origin": "first sent by {}",
    "via": "via {}",
    "reason": "refused: {}",
    "rule": "the venue broke the rule: {}",
    "venue_said": "the venue said: {}",
}


class StatusTexts(NamedTuple):
    """The texts of a status: the button that sets it, the message when it is set, and the class of its badge."""

    verb: str
    message: str
    badge: str


STATUS_TEXTS = {  # the main action first
    Status.CONFIRMED: StatusTexts("Confirm", "The booking at {} is confirmed.", "good"),
    Status.COMPLETED: StatusTexts("Complete", "The booking at {} is completed.", "good"),
    Status.NO_SHOW: StatusTexts("Mark as no-show", "The guest of the booking at {} did not come.", "bad"),
    Status.CANCELLED: StatusTexts("Cancel", "The booking at {} is cancelled. Its charge stays.", "bad"),
}

FIRST_DAY, LAST_DAY = date(1970, 1, 2), date(9000, 1, 1)  # a day beside these has no moments in every zone


@user_page
def bookings(request: HttpRequest, owner: User) -> HttpResponse:
    """The list, newest first, of the newest MAX_LISTED bookings."""
    shown = show_newest(request, owner, list_bookings(owner), "created_at", FILTERS)
    context = {
        **shown,
        "rows": [describe_booking_row(one) for one in shown["page"]],
        "statuses": Status.choices,
        "kept": shown["filters"].query,
        "here": request.GET.urlencode(),
    }
    return render(request, "agnt/bookings.html", context)


@user_form
def booking(request: HttpRequest, owner: User, booking_id: UUID) -> HttpResponse:
    """One booking. A POST sets the status of the booking, and redirects to this page or to the list it was sent
    from.
    """
    own = get_object_or_404(list_bookings(owner), public_id=booking_id)
    if request.method == "POST":
        _change(request, own)
        if "list" not in request.POST:
            return HttpResponseRedirect(reverse("desk-network-booking", args=[own.public_id]))
        kept = QueryDict(request.POST["list"]).urlencode()
        return HttpResponseRedirect(f"{reverse('desk-network-bookings')}{'?' if kept else ''}{kept}#bookings")
    charge: UsageEvent | None = getattr(own, "usage_event", None)
    envelopes = own.interactions.select_related("key__credential").order_by("-at", "-pk")[:ENVELOPES_SHOWN]
    context = {
        "row": describe_booking_row(own),
        "charge": charge,
        "amount": describe_cents(charge.amount_cents) if charge else "",
        "told": list_cancellations(owner).filter(public_id=own.public_id).first(),
        "envelopes": [_describe_log_row(one) for one in envelopes],
    }
    return render(request, "agnt/booking.html", context)


def describe_booking_row(booking: Booking) -> dict[str, Any]:
    """A booking as lists show it, with the statuses that its owner can give it now, each with its verb."""
    possible = list_actions(booking)
    return {
        "booking": booking,
        "actions": [(status.value, texts.verb) for status, texts in STATUS_TEXTS.items() if status in possible],
        "mark": STATUS_TEXTS[Status(booking.status)].badge if booking.status != Status.PENDING else "",
    }


def _change(request: HttpRequest, own: Booking) -> None:
    wanted = request.POST.get("status", "")
    if wanted not in STATUS_TEXTS:
        return messages.error(request, "Nothing is changed: choose what to do with the booking.")
    try:
        change_status(own, Status(wanted))
    except StatusRefused as refused:
        label = Status(refused.status).label.lower()
        return messages.error(request, f"Nothing is changed: the booking is {label}.")
    return messages.success(request, STATUS_TEXTS[Status(wanted)].message.format(own.venue.name))


@user_page
def log(request: HttpRequest, owner: User) -> HttpResponse:
    """The newest MAX_LISTED envelopes, newest first: their senders, and how they ended."""
    tz = read_zone(request.GET)

    def find_day(value: str) -> Q:
        begins, ends = moments_of(date.fromisoformat(value), tz)
        return Q(at__gte=begins, at__lt=ends)

    loaded = Interaction.objects.select_related("key__credential", "venue", "booking")
    declared = (*LOG_FILTERS, Filter("day", _read_day, find_day))
    shown = show_newest(request, owner, loaded.filter(network__owner=owner), "at", declared)
    context = {
        **shown,
        "rows": [_describe_log_row(row) for row in shown["page"]],
        "tz": tz,
        "statuses": LOG_STATUSES,
        "intents": sorted(INTENTS),
        "network": NETWORK,
        "kept": urlencode({**shown["filters"].chosen, "tz": tz}),
    }
    return render(request, "agnt/log.html", context)


def _read_day(given: str) -> str:
    try:
        day = parse_date(given)
    except ValueError:
        return ""
    return day.isoformat() if day and FIRST_DAY <= day <= LAST_DAY else ""


def _describe_log_row(row: Interaction) -> dict[str, Any]:
    """An envelope as the log shows it: the class of the badge of its status, and its metadata in a line."""
    about = []
    for name, value in row.metadata.items():
        if value:
            words = ", ".join(map(str, value)) if isinstance(value, list) else value
            about.append(METADATA_TEXTS.get(name, "{}").format(words))
    return {"row": row, "mark": {OK: "good", DUPLICATE: ""}.get(row.status, "bad"), "about": ", ".join(about)}
