"""Networks for their owners: rules and venues to change, keys to revoke, bookings to move along, records."""

from collections.abc import Callable
from typing import Any, ClassVar, cast

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import display_for_value
from django.db.models import ForeignKey, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from accounts.admin_site import OwnerScopedAdmin, make_live_filter, site
from accounts.models import Credential, User
from accounts.quotas import QuotaExceeded
from agnt.models import (
    ApiKey,
    Booking,
    Breaker,
    Cancellation,
    Interaction,
    Invoice,
    KeyUsage,
    Network,
    UsageEvent,
    Venue,
)
from agnt.models.network import RULES
from agnt.pages.keys import RightsForm
from agnt.pages.venues import VenueForm, make_venue_form
from agnt.service.bookings import StatusRefused, change_status
from agnt.service.keys import change_key, revoke_key
from agnt.service.networks import change_rules, get_or_create_network
from agnt.service.venues.editing import (
    VenueTaken,
    change_venue,
    create_venue,
    delete_venue,
    set_venues_active,
)
from agnt.service.venues.fields import FIELDS, BadVenue

RIGHTS = ("tier", "scope", "senders")
LiveFilter = make_live_filter(Q(credential__in=Credential.objects.live().values("pk")))
Action = Callable[[OwnerScopedAdmin, HttpRequest, QuerySet[Booking]], None]


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
        """Write only the fields that the form changed, as REST does: `venues_version` may have grown meanwhile."""
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
        """The fields of the form; a new venue belongs to the network of the user who adds it."""
        return tuple(FIELDS) if obj is None else (*FIELDS, *self.readonly_fields)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """A form whose agent field finds the agents of the venue's owner."""
        owner = obj.network.owner if obj else cast(User, request.user)
        made = super().get_form(request, obj, change, **kwargs)
        return make_venue_form(owner, cast(type[VenueForm], made))

    def formfield_for_foreignkey(  # type: ignore[override]
        self, db_field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> forms.Field:
        """No list of all agents: the form has a field for the handle."""
        return forms.CharField(required=False)

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Create or change a venue; show an error if a name is taken or the network has too many venues."""
        try:
            return super().changeform_view(request, *args, **kwargs)
        except (BadVenue, VenueTaken, QuotaExceeded) as refused:
            self.message_user(request, f"Not saved: {refused}.", messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Write as REST does; of an existing venue only the fields that the form changed."""
        fields = {name: form.cleaned_data[name] for name in FIELDS}
        if change:
            stored = Venue.objects.select_related("network").get(pk=obj.pk)
            change_venue(stored, {name: fields[name] for name in form.changed_data})
            return
        made = create_venue(get_or_create_network(cast(User, request.user)), fields)
        obj.pk, obj.network = made.pk, made.network

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Delete a venue, or deactivate it."""
        self.delete_queryset(request, Venue.objects.filter(pk=obj.pk))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Venue]) -> None:
        """Delete or deactivate several venues."""
        venues = list(queryset.select_related("network"))
        if kept := [venue.slug for venue in venues if not delete_venue(venue)]:
            text = f"Deactivated, because bookings name them: {', '.join(kept)}."
            self.message_user(request, text, messages.WARNING)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """The rows that deleting would remove: the venues alone, no row that refers to them."""
        venues = list(objs)
        return [str(venue) for venue in venues], {"venues": len(venues)}, set(), []

    @admin.action(description="Offer the chosen venues")
    def activate(self, request: HttpRequest, queryset: QuerySet[Venue]) -> None:
        """Activate the venues: envelopes find active venues."""
        self._set_active(request, queryset, is_active=True)

    @admin.action(description="Offer the chosen venues no longer")
    def deactivate(self, request: HttpRequest, queryset: QuerySet[Venue]) -> None:
        """Deactivate the venues: envelopes do not find inactive venues, and bookings stay."""
        self._set_active(request, queryset, is_active=False)

    def _set_active(self, request: HttpRequest, queryset: QuerySet[Venue], *, is_active: bool) -> None:
        chosen = set(queryset.values_list("pk", flat=True))
        networks = Network.objects.filter(venues__in=chosen).distinct()
        count = sum(set_venues_active(network, chosen, is_active=is_active) for network in networks)
        self.message_user(request, f"Venues changed: {count}.", messages.SUCCESS)


def _column(name: str, description: str, shown: str = "") -> Callable[[ApiKey], str]:
    """A column of the credential of a key. `shown`: the attribute that has its text, where another one has."""

    @admin.display(description=description, ordering=f"credential__{name}")
    def show(key: ApiKey) -> str:
        return display_for_value(getattr(key.credential, shown or name), "-")

    return show


@admin.register(ApiKey, site=site)
class ApiKeyAdmin(OwnerScopedAdmin):
    """Keys to recognise, to change what they may do, and to revoke; never their text, never their secrets.

    Keys are made on the pages of a network, or over REST. A key that is revoked or has expired is not changed.
    """

    owner_lookup = "network__owner"
    writes = ("change",)
    form = RightsForm
    list_display = (
        "name",
        "prefix",
        "tier",
        "scope",
        "customer",
        "network",
        "created_at",
        "last_used_at",
        "expires_at",
        "is_usable",
    )
    list_filter = (LiveFilter, "tier", "scope")
    list_select_related = ("credential", "network")
    search_fields = ("credential__name", "credential__prefix", "customer")
    ordering = ("-pk",)
    actions = ("revoke",)
    name = staticmethod(_column("name", "name"))
    prefix = staticmethod(_column("prefix", "begins with", "shown_prefix"))
    last_used_at = staticmethod(_column("last_used_at", "last used"))
    expires_at = staticmethod(_column("expires_at", "expires"))
    revoked_at = staticmethod(_column("revoked_at", "revoked"))
    readonly_fields = (
        *("public_id", "name", "prefix", "customer", "network"),
        *("created_at", "last_used_at", "expires_at", "revoked_at", "previous_until"),
    )
    fields = (*RIGHTS, *readonly_fields)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """True if the key can be changed: a key that is neither revoked nor expired."""
        return super().has_change_permission(request, obj) and (obj is None or obj.credential.is_live)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Write as REST does, what the form changed."""
        change_key(obj, **{name: form.cleaned_data[name] for name in form.changed_data})

    @admin.display(description="good", boolean=True)
    def is_usable(self, key: ApiKey) -> bool:
        """Neither revoked nor expired."""
        return key.credential.is_live

    @admin.action(description="Revoke the chosen keys")
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        """Revoke the keys: the hub refuses them from the next envelope on."""
        for key in queryset:
            revoke_key(key)
        self.message_user(request, f"{len(queryset)} revoked.", messages.SUCCESS)


@admin.register(KeyUsage, site=site)
class KeyUsageAdmin(OwnerScopedAdmin):
    """The number of calls with each key, by UTC day."""

    owner_lookup = "key__network__owner"
    list_display = ("key", "day", "calls")
    list_select_related = ("key",)
    list_filter = ("day",)
    ordering = ("-day", "-pk")
    fields = list_display


def _make_action(name: str, description: str, status: Booking.Status) -> Action:
    """An action that gives each booking the status, and sends the event; others stay as they are."""

    def move(model_admin: OwnerScopedAdmin, request: HttpRequest, queryset: QuerySet[Booking]) -> None:
        refused = 0
        for booking in queryset.select_related("network"):
            try:
                change_status(booking, status)
            except StatusRefused:
                refused += 1
        text = f"{len(queryset) - refused} set to {status.label.lower()}."
        model_admin.message_user(request, text, messages.SUCCESS)
        if refused:
            text = f"{refused} cannot get this status from the one that they have."
            model_admin.message_user(request, text, messages.WARNING)

    move.__name__ = name  # by which Django calls it
    return admin.action(description=description)(move)


@admin.register(Booking, site=site)
class BookingAdmin(OwnerScopedAdmin):
    """Bookings; an owner changes their status by the actions."""

    owner_lookup = "network__owner"
    list_display = ("public_id", "venue", "sender", "slot_time", "party_size", "status", "created_at", "network")
    list_filter = ("status", "created_at")
    list_select_related = ("venue", "network")
    search_fields = ("sender", "venue__slug", "venue__name")
    ordering = ("-created_at", "-pk")
    actions = (
        _make_action("confirm", "Confirm the chosen bookings", Booking.Status.CONFIRMED),
        _make_action("complete", "Complete the chosen bookings", Booking.Status.COMPLETED),
        _make_action("cancel", "Cancel the chosen bookings", Booking.Status.CANCELLED),
        _make_action("mark_no_show", "Mark the chosen bookings as no-show", Booking.Status.NO_SHOW),
    )
    fields = (
        *("public_id", "venue", "key", "sender", "slot_id", "slot_time", "party_size", "user_note"),
        *("status", "venue_booking_id", "venue_reply", "network", "created_at", "updated_at"),
    )


class RecordAdmin(OwnerScopedAdmin):
    """Rows of a network that the hub writes; they are read-only in the admin."""

    owner_lookup = "network__owner"
    list_select_related: ClassVar[tuple[str, ...]] = ("network",)
    ordering = ("-pk",)


@admin.register(UsageEvent, site=site)
class UsageEventAdmin(RecordAdmin):
    """The cost of each booking."""

    list_display = ("at", "customer", "amount_cents", "booking", "invoice", "network")
    list_select_related = ("network", "booking", "invoice")
    list_filter = ("at",)
    search_fields = ("customer",)
    fields = (*list_display, "key")


@admin.register(Invoice, site=site)
class InvoiceAdmin(RecordAdmin):
    """The amount that each customer pays for a day."""

    list_display = ("day", "customer", "count", "total_cents", "state", "sent_at", "external_id", "network")
    list_filter = ("state", "day")
    search_fields = ("customer", "external_id")
    fields = list_display


@admin.register(Breaker, site=site)
class BreakerAdmin(RecordAdmin):
    """The circuit breakers of venues and of whole networks; the hub asks no venue past an open breaker."""

    list_display = ("network", "venue", "opened_at_s", "probe_until_s", "openings")
    list_select_related = ("network", "venue")
    fields = (*list_display, "failures")


@admin.register(Cancellation, site=site)
class CancellationAdmin(RecordAdmin):
    """The cancellations that the hub sent to venues, or will send."""

    list_display = ("public_id", "venue", "reason", "state", "attempts", "last_error", "created_at", "network")
    list_select_related = ("network", "venue")
    list_filter = ("state", "reason", "created_at")
    search_fields = ("public_id", "venue__slug")
    fields = (*list_display, "reservation", "next_attempt_at", "ended_at")


@admin.register(Interaction, site=site)
class InteractionAdmin(RecordAdmin):
    """The log of envelopes: never a key or a signature."""

    list_display = (
        *("at", "network", "sender", "recipient", "intent", "status", "http_status", "latency_ms"),
        *("key", "venue", "booking"),
    )
    list_filter = ("status", "intent", "at")
    list_select_related = ("network", "key", "venue", "booking")
    search_fields = ("sender", "recipient")
    fields = (*list_display, "source", "metadata")
