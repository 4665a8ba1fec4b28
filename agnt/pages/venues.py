"""`/desk/network/venues`: the venues of a network, with a search, the form of one, and their files."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.contrib import messages
from django.db.models import QuerySet
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
    StreamingHttpResponse,
)
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.text import capfirst
from django.views.decorators.debug import sensitive_variables

from accounts.models import User
from accounts.pages import user_form, user_page, user_read
from accounts.quotas import QuotaExceeded
from agents.models import Agent
from agents.pages.forms import LongTextField
from agnt.models import Network, Venue
from agnt.pages import ON_A_PAGE
from agnt.pages.keys import OVERLAPS
from agnt.service.asks.breakers import list_open_breakers
from agnt.service.cancellations import list_cancellations, send_again
from agnt.service.keys import OVERLAP, derive_venue_secrets, rotate_venue_secret
from agnt.service.networks import find_network, get_or_create_network
from agnt.service.venues.editing import (
    VenueTaken,
    change_venue,
    create_venue,
    delete_venue,
    find_agent,
    find_venues,
    list_venues,
    set_venues_active,
)
from agnt.service.venues.fields import TAG_SEPARATOR, BadVenue, check_fields
from agnt.service.venues.file import COLUMNS, MAX_ROWS, BadFile, export_venues
from agnt.service.venues.importing import BAD_ROWS_NAMED, ImportReport, import_venues
from kit.async_db import stream_slices
from kit.columns import make_form_field
from kit.concurrency import DOWNLOADS, take_slot
from kit.filters import Filter, Filters, one_of, page_of
from kit.ids import read_uuid
from kit.list_fields import LinesField

MAX_FAILURES = 5
MAX_CANCELLATIONS = 20
VENUE_OVERLAPS = {"0": "no time, it is known to others", **OVERLAPS}
FEE = forms.NumberInput(attrs={"min": 0, "max": 100, "step": 0.01})
STATES = {"active": True, "inactive": False}
FILTERS = (Filter("q"), Filter("category"), Filter("location"), Filter("state", one_of(STATES)))


class VenueForm(forms.ModelForm):  # type: ignore[type-arg]
    """The fields of a venue as a visitor types them; `make_venue_form` sets `owner`. `agent`: a handle."""

    owner: ClassVar[User]

    description = make_form_field(Venue, "description", LongTextField, widget=forms.Textarea(attrs={"rows": 4}))
    tags = make_form_field(Venue, "tags", LinesField)
    referral_fee_pct = make_form_field(Venue, "referral_fee_pct", forms.CharField, initial=7, widget=FEE)
    agent = make_form_field(Venue, "agent", forms.CharField)

    class Meta:
        model = Venue
        fields = (  # the order of errors above the form
            *("name", "slug", "category", "description", "area", "city", "tags", "price_range"),
            *("referral_fee_pct", "priority_rank", "is_active", "agent_name", "agent", "url"),
        )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["agent"] = str(self.instance.agent or "")

    def clean_agent(self) -> Agent | None:
        """The agent that has the typed handle."""
        try:
            return find_agent(self.owner, self.cleaned_data["agent"])
        except BadVenue as bad:
            raise forms.ValidationError(f"{capfirst(bad.reasons['agent'])}.") from None

    def clean(self) -> dict[str, Any]:
        """The fields as `agnt.service.venues` takes them."""
        super().clean()
        try:
            return check_fields(self.cleaned_data)
        except BadVenue as bad:
            for name, reason in bad.reasons.items():
                self.add_error(name, f"{capfirst(reason)}.")
        return self.cleaned_data

    def write(self, write: Callable[[dict[str, Any]], Any]) -> bool:
        """Write the venue that the visitor typed; returns False if nothing was written and the form has the
        errors.
        """
        if not self.is_valid():
            return False
        try:
            write(self.cleaned_data)
        except VenueTaken as taken:
            self.add_error(taken.field, f"{capfirst(str(taken))}.")
        except QuotaExceeded as over:
            self.add_error(None, f"{capfirst(str(over))}.")
        return not self.errors


def make_venue_form(owner: User, made: type[VenueForm] = VenueForm) -> type[VenueForm]:
    """The form class for the venues of this owner."""
    return type("OwnersVenueForm", (made,), {"owner": owner})


@user_page
def venues(request: HttpRequest, owner: User) -> HttpResponse:
    """The list, as envelopes have it: the highest rank first."""
    filters = Filters(request, FILTERS)
    page = page_of(request, _find_chosen(owner, filters.chosen), ON_A_PAGE)
    opened = list_open_breakers(owner).filter(venue__in=list(page))
    context = {
        "page": page,
        "open": set(opened.values_list("venue_id", flat=True)),
        "filters": filters,
        "states": list(STATES),
        "kept": filters.query,
        "is_empty": not filters.chosen and not page.paginator.count,
    }
    return render(request, "agnt/venues.html", context)


@user_form
def new(request: HttpRequest, owner: User) -> HttpResponse:
    """The form of a new venue."""
    form = make_venue_form(owner)(request.POST if request.method == "POST" else None, instance=Venue())
    if form.is_bound and form.write(lambda fields: create_venue(get_or_create_network(owner), fields)):
        messages.success(request, f"{form.cleaned_data['name']} is in the network.")
        return HttpResponseRedirect(reverse("desk-network-venues"))
    return render(request, "agnt/venue.html", {"form": form}, status=400 if form.is_bound else 200)


@user_form
@sensitive_variables("context")
def venue(request: HttpRequest, owner: User, venue_id: UUID) -> HttpResponse:
    """One venue. A POST saves it, or does what `action` says: of the venue itself, or of its signing secret."""
    own = get_object_or_404(list_venues(owner), public_id=venue_id)
    action = request.POST.get("action", "")
    if done := _act(own, action):
        messages.success(request, done)
        gone = action == "delete"
        return HttpResponseRedirect(reverse("desk-network-venues") if gone else request.get_full_path())
    if action == "retry":
        _retry(request, owner, own)
        return HttpResponseRedirect(request.get_full_path())
    if action == "rotate":
        chosen = request.POST.get("overlap", "")
        overlap = timedelta(seconds=int(chosen)) if chosen in VENUE_OVERLAPS else OVERLAP
        rotate_venue_secret(own, overlap=overlap)
    shows_secret = action in ("secret", "rotate")
    given = request.POST if request.method == "POST" and not shows_secret else None
    form = make_venue_form(owner)(given, instance=own)
    if form.is_bound and form.write(lambda fields: _change(own, fields)):
        messages.success(request, f"{own.name} is saved.")
        return HttpResponseRedirect(reverse("desk-network-venues"))
    context = {
        "form": form,
        "own": Venue.objects.get(pk=own.pk) if form.is_bound else own,
        "secrets": derive_venue_secrets(own),
        "shows_secret": shows_secret,
        "overlaps": VENUE_OVERLAPS,
        "bookings": own.bookings.count(),
        "is_open": list_open_breakers(owner).filter(venue=own).exists(),
        "cancellations": list_cancellations(owner)
        .filter(venue=own)
        .order_by("-created_at", "-pk")[:MAX_CANCELLATIONS],
        "failures": own.interactions.filter(metadata__has_key="rule").order_by("-at", "-pk")[:MAX_FAILURES],
    }
    return render(request, "agnt/venue.html", context, status=400 if form.is_bound else 200)


def _find_chosen(owner: User, chosen: Mapping[str, str]) -> QuerySet[Venue]:
    return find_venues(
        owner,
        words=chosen.get("q", ""),
        category=chosen.get("category", ""),
        location=chosen.get("location", ""),
        is_active=STATES.get(chosen.get("state", "")),
    )


def _change(own: Venue, fields: dict[str, Any]) -> None:
    if not change_venue(own, fields):
        raise Http404  # another request deleted the venue meanwhile


def _retry(request: HttpRequest, owner: User, own: Venue) -> None:
    """Send a venue again a cancellation that the hub had given up."""
    wanted = read_uuid(request.POST.get("booking", ""))
    found = list_cancellations(owner).filter(venue=own, public_id=wanted).first() if wanted else None
    if found and send_again(found):
        messages.success(request, f"{own.name} is told again.")
    else:
        messages.error(request, "Nothing is changed: this cancellation was not given up.")


def _act(own: Venue, action: str) -> str:
    """Activate, deactivate or delete a venue and return the message for the visitor; empty for another action."""
    if action == "activate":
        set_venues_active(own.network, [own.pk], is_active=True)
        return f"{own.name} is offered."
    if action == "deactivate":
        set_venues_active(own.network, [own.pk], is_active=False)
        return f"{own.name} is not offered any more."
    if action != "delete":
        return ""
    name = own.name
    if delete_venue(own):
        return f"{name} is deleted."
    return f"{name} has bookings, or orders to cancel: it is kept, and not offered any more."


class VenueImportForm(forms.Form):
    """A file of venues."""

    file = forms.FileField(
        label="CSV file", allow_empty_file=True, widget=forms.FileInput(attrs={"accept": ".csv"})
    )
    skips_bad_rows = forms.BooleanField(
        label="Leave wrong rows out",
        required=False,
        help_text="Without this, nothing is written when a row is wrong.",
    )

    def run(self, owner: User) -> ImportReport | None:
        """Import the file; None: the hub could not read the file, and the form has the error."""
        file, skips_bad_rows = self.cleaned_data["file"].file, self.cleaned_data["skips_bad_rows"]
        try:
            return import_venues(get_or_create_network(owner), file, skips_bad_rows=skips_bad_rows)
        except BadFile as bad:
            self.add_error("file", f"Nothing was imported. {capfirst(str(bad))}.")
        except QuotaExceeded as over:
            self.add_error("file", f"Nothing was imported: {over}.")
        return None


@user_form
def import_file(request: HttpRequest, owner: User) -> HttpResponse:
    """The form; after a POST with the report of the file."""
    form = VenueImportForm(request.POST, request.FILES) if request.method == "POST" else VenueImportForm()
    report = form.run(owner) if form.is_bound and form.is_valid() else None
    context = {
        "form": form,
        "report": report,
        "columns": ", ".join(COLUMNS),
        "most_rows": f"{MAX_ROWS:,}",
        "most_bad_rows": BAD_ROWS_NAMED,
        "separator": TAG_SEPARATOR,
    }
    is_refused = form.is_bound and (report is None or not report.is_done)
    return render(request, "agnt/venues_import.html", context, status=400 if is_refused else 200)


@user_read
def export(request: HttpRequest, owner: User) -> HttpResponseBase:
    """All venues, as a file that the import takes."""
    take_slot(request, DOWNLOADS, owner.pk)
    headers = {"Content-Disposition": 'attachment; filename="venues.csv"'}
    slices = stream_slices(export_venues(find_network(owner) or Network()))
    return StreamingHttpResponse(slices, content_type="text/csv; charset=utf-8", headers=headers)
