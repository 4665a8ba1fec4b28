"""The network and its venues in the admin."""

from collections.abc import Callable
from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.db.models import ForeignKey, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from accounts.admin_site import OwnerScopedAdmin, site
from accounts.models import User
from accounts.quotas import QuotaExceeded
from agnt.models import Network, Venue
from agnt.models.network import RULES
from agnt.service.networks import change_rules, get_or_create_network
from agnt.service.venues.editing import (
    VenueTaken,
    change_venue,
    create_venue,
    delete_venue,
    set_venues_active,
)
from agnt.service.venues.fields import FIELDS, BadVenue
from agnt.web.venues import VenueForm, make_venue_form


@admin.register(Network, site=site)
class NetworkAdmin(OwnerScopedAdmin):
    """The rules of networks."""

    owner_lookup = "owner"
    writes = ("change",)
    list_display = ("owner", *RULES)
    list_select_related = ("owner",)
    search_fields = ("owner__login",)
    ordering = ("-pk",)
    fields = (*list_display, "created_at")
    readonly_fields = ("owner", "created_at")

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Write as REST does, what the form changed: the version of the venues may have grown since."""
        change_rules(obj.owner, {name: form.cleaned_data[name] for name in form.changed_data})


@admin.register(Venue, site=site)
class VenueAdmin(OwnerScopedAdmin):
    """Venues, written by the functions that REST calls. A venue with bookings is deactivated, not deleted."""

    owner_lookup = "network__owner"
    writes = ("add", "change", "delete")
    form = VenueForm
    list_display = (
        *("slug", "name", "agent_name", "category", "area", "city"),
        *("priority_rank", "is_active", "network"),
    )
    list_filter = ("is_active",)
    list_select_related = ("network",)
    search_fields = ("slug", "name", "agent_name", "category", "city", "area")
    ordering = ("-priority_rank", "name", "pk")
    actions = ("activate", "deactivate")
    readonly_fields = ("public_id", "network", "previous_until", "created_at", "updated_at")

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """A new venue is of the network of the user who adds it."""
        return tuple(FIELDS) if obj is None else (*FIELDS, *self.readonly_fields)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """A form that finds the agents of the venue's owner."""
        owner = obj.network.owner if obj else cast(User, request.user)
        made = super().get_form(request, obj, change, **kwargs)
        return make_venue_form(owner, cast(type[VenueForm], made))

    def formfield_for_foreignkey(  # type: ignore[override]
        self, db_field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> forms.Field:
        """No list of all agents: the form has a field for the handle."""
        return forms.CharField(required=False)

    def add_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Offer a venue, unless a name of it is taken or there are too many."""
        return self._unless_refused(request, super().add_view, *args, **kwargs)

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        """Change a venue, unless a name of it is taken."""
        return self._unless_refused(request, super().change_view, object_id, *args, **kwargs)

    def _unless_refused(
        self, request: HttpRequest, view: Callable[..., HttpResponse], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except (BadVenue, VenueTaken, QuotaExceeded) as refused:
            self.message_user(request, f"Not saved: {refused}.", messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Write as REST does; of a present venue what the form changed."""
        fields = {name: form.cleaned_data[name] for name in FIELDS}
        if change:
            stored = Venue.objects.select_related("network").get(pk=obj.pk)
            change_venue(stored, {name: fields[name] for name in form.changed_data})
            return
        made = create_venue(get_or_create_network(cast(User, request.user)), fields)
        obj.pk, obj.network = made.pk, made.network

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Delete it, or deactivate it."""
        self._delete(request, [obj])

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Venue]) -> None:
        """The same for several."""
        self._delete(request, list(queryset.select_related("network")))

    def _delete(self, request: HttpRequest, venues: list[Venue]) -> None:
        if kept := [venue.slug for venue in venues if not delete_venue(venue)]:
            text = f"Deactivated, because bookings name them: {', '.join(kept)}."
            self.message_user(request, text, messages.WARNING)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """The rows that deleting would remove: the venues alone, no row that refers to them."""
        venues = list(objs)
        return [str(venue) for venue in venues], {"venues": len(venues)}, set(), []

    @admin.action(description="Offer the chosen venues")
    def activate(self, request: HttpRequest, queryset: QuerySet[Venue]) -> None:
        """Envelopes find them from now on."""
        self._set_active(request, queryset, is_active=True)

    @admin.action(description="Offer the chosen venues no longer")
    def deactivate(self, request: HttpRequest, queryset: QuerySet[Venue]) -> None:
        """Envelopes do not find them any more; bookings stay."""
        self._set_active(request, queryset, is_active=False)

    def _set_active(self, request: HttpRequest, queryset: QuerySet[Venue], *, is_active: bool) -> None:
        chosen = set(queryset.values_list("pk", flat=True))
        networks = Network.objects.filter(venues__in=chosen).distinct()
        count = sum(set_venues_active(network, chosen, is_active=is_active) for network in networks)
        self.message_user(request, f"Venues changed: {count}.", messages.SUCCESS)
