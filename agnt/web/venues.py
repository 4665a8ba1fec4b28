"""`/desk/network/venues`: the venues of a network, with a search, and the form of one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlencode
from uuid import UUID

from django import forms
from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.text import capfirst
from django.views.decorators.cache import never_cache
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_http_methods, require_safe

from accounts.models import User
from accounts.quotas import QuotaExceeded
from agents.web.card_fields import LinesField
from agents.web.desk import require_owner
from agents.web.forms import LongTextField
from agnt.models import Breaker, Network, Venue
from agnt.networks import find_network, get_or_create_network
from agnt.venue_fields import DEFAULTS, MAX_TAGS, BadVenue
from agnt.venue_secrets import show_venue_secret
from agnt.venues import (
    NO_AGENT,
    VenueTaken,
    change_venue,
    create_venue,
    delete_venue,
    find_agents,
    find_venues,
    set_venues_active,
)
from agnt.web.lists import page_of, read_words

PAGE = ["GET", "HEAD", "POST"]
STATES = {"active": True, "inactive": False}


class VenueForm(forms.Form):
    """The fields of a venue as they are typed; `agnt.venue_fields` checks them. `agent`: a handle."""

    name = forms.CharField(label="Name")
    slug = forms.CharField(
        label="Slug",
        help_text="Names the venue in envelopes and files, such as la-brisa.",
    )
    category = forms.CharField(label="Category", required=False, help_text="Programs ask for it in these words.")
    description = LongTextField(label="Description", required=False, widget=forms.Textarea(attrs={"rows": 4}))
    area = forms.CharField(label="Area", required=False)
    city = forms.CharField(label="City", required=False)
    tags = LinesField(label="Tags", required=False, help_text=f"One on a line, at most {MAX_TAGS}.")
    price_range = forms.CharField(label="Price range", required=False, help_text="Such as $$.")
    referral_fee_pct = forms.CharField(
        label="Referral fee in per cent", widget=forms.NumberInput(attrs={"min": 0, "max": 100, "step": 0.01})
    )
    priority_rank = forms.IntegerField(label="Rank", help_text="The highest is listed first.")
    is_active = forms.BooleanField(
        label="Offered",
        required=False,
        help_text="Without this it is not found, and takes no bookings.",
    )
    agent_name = forms.CharField(
        label="Agent id", required=False, help_text="Envelopes to this name ask the venue itself."
    )
    agent = forms.CharField(
        label="Agent of this hub",
        required=False,
        help_text="One of yours, @owner/name: asked before a booking is confirmed.",
    )
    url = forms.CharField(label="URL", required=False, help_text="Asked by HTTP instead of an agent of this hub.")

    @classmethod
    def of(cls, venue: Venue | None, given: Any = None) -> Self:
        """The form with what was typed, or else with what the venue has, or a new one."""
        initial = {name: getattr(venue, name) if venue else default for name, default in DEFAULTS.items()}
        agent = initial["agent"]
        return cls(given, initial={**initial, "agent": f"@{agent.handle}" if agent else ""})

    def save(self, owner: User, write: Callable[[dict[str, Any]], Any]) -> bool:
        """Check what was typed, and write it; whether it was written. The form then says what is wrong."""
        if not self.is_valid():
            return False
        fields = dict(self.cleaned_data)
        if handle := fields.pop("agent"):
            fields["agent"] = find_agents(owner, [handle]).get(handle)
            if fields["agent"] is None:
                self.add_error("agent", f"{capfirst(NO_AGENT)}.")
                return False
        else:
            fields["agent"] = None
        try:
            write(fields)
        except BadVenue as bad:
            for name, reason in bad.reasons.items():
                self.add_error(name, f"{capfirst(reason)}.")
        except VenueTaken as taken:
            self.add_error(taken.field, f"{capfirst(str(taken))}.")
        except QuotaExceeded as over:
            self.add_error(None, f"{capfirst(str(over))}.")
        return not self.errors


@dataclass(frozen=True, slots=True)
class Filters:
    """What the list shows; empty for all."""

    words: str
    category: str
    location: str
    state: str

    @classmethod
    def read(cls, request: HttpRequest) -> Self:
        """As they were typed; what cannot be one is left out."""
        state = request.GET.get("state", "")
        words, category, location = (read_words(request, name) for name in ("q", "category", "location"))
        return cls(words, category, location, state if state in STATES else "")

    @property
    def chosen(self) -> dict[str, str]:
        """The query that shows the same list."""
        named = {"q": self.words, "category": self.category, "location": self.location, "state": self.state}
        return {name: value for name, value in named.items() if value}

    def find(self, network: Network) -> QuerySet[Venue]:
        """The venues that it shows."""
        return find_venues(
            network,
            words=self.words,
            category=self.category,
            location=self.location,
            is_active=STATES.get(self.state),
        )


@never_cache
@gzip_page
@require_safe
@require_owner
def venues(request: HttpRequest, owner: User) -> HttpResponse:
    """The list, as envelopes have it: the highest rank first."""
    filters, network = Filters.read(request), find_network(owner)
    page = page_of(request, filters.find(network) if network else Venue.objects.none())
    opened = Breaker.objects.filter(venue__in=list(page), opened_at_s__isnull=False)
    context = {
        "page": page,
        "open": set(opened.values_list("venue_id", flat=True)),
        "filters": filters,
        "states": list(STATES),
        "kept": urlencode(filters.chosen),
        "is_empty": not filters.chosen and not page.paginator.count,
    }
    return render(request, "agnt/venues.html", context)


@never_cache
@require_http_methods(PAGE)
@require_owner
def new(request: HttpRequest, owner: User) -> HttpResponse:
    """The form of a new venue."""
    form = VenueForm.of(None, request.POST if request.method == "POST" else None)
    if form.is_bound and form.save(owner, lambda fields: create_venue(get_or_create_network(owner), fields)):
        messages.success(request, f"{form.cleaned_data['name']} is in the network.")
        return HttpResponseRedirect(reverse("desk-network-venues"))
    return render(request, "agnt/venue.html", {"form": form}, status=400 if form.is_bound else 200)


@never_cache
@require_http_methods(PAGE)
@require_owner
def venue(request: HttpRequest, owner: User, venue_id: UUID) -> HttpResponse:
    """One venue. A POST saves it; with `action` it offers, withdraws or deletes it, or shows its secret."""
    own = Venue.objects.filter(network__owner=owner, public_id=venue_id).select_related("network", "agent").first()
    if own is None:
        raise Http404
    action = request.POST.get("action", "")
    if act := ACTIONS.get(action):
        messages.success(request, act(own))
        gone = action == "delete"
        return HttpResponseRedirect(reverse("desk-network-venues") if gone else request.get_full_path())
    shows_secret = action == "secret"
    form = VenueForm.of(own, request.POST if request.method == "POST" and not shows_secret else None)
    if form.is_bound and form.save(owner, lambda fields: _change(own, fields)):
        messages.success(request, f"{own.name} is saved.")
        return HttpResponseRedirect(reverse("desk-network-venues"))
    context = {
        "form": form,
        "own": Venue.objects.get(pk=own.pk) if form.is_bound else own,
        "secret": show_venue_secret(str(own.public_id)) if shows_secret else "",
        "bookings": own.bookings.count(),
        "is_open": Breaker.objects.filter(venue=own, opened_at_s__isnull=False).exists(),
    }
    return render(request, "agnt/venue.html", context, status=400 if form.is_bound else 200)


def _change(own: Venue, fields: dict[str, Any]) -> None:
    if not change_venue(own, fields):
        raise Http404  # it was deleted meanwhile


def _activate(own: Venue) -> str:
    set_venues_active(own.network, [own.pk], is_active=True)
    return f"{own.name} is offered."


def _deactivate(own: Venue) -> str:
    set_venues_active(own.network, [own.pk], is_active=False)
    return f"{own.name} is not offered any more."


def _delete(own: Venue) -> str:
    name = own.name
    if delete_venue(own):
        return f"{name} is deleted."
    return f"{name} has bookings, which name it: it is kept, and not offered any more."


ACTIONS: dict[str, Callable[[Venue], str]] = {
    "activate": _activate,
    "deactivate": _deactivate,
    "delete": _delete,
}
