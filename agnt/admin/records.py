"""Bookings in the admin, with what owners do about them, and the rows that the hub writes."""

from collections.abc import Callable
from typing import ClassVar

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from accounts.admin_site import OwnerScopedAdmin, site
from agnt.models import Booking, Breaker, Cancellation, Interaction, Invoice, UsageEvent
from agnt.service.bookings import StatusRefused, change_status

Action = Callable[[OwnerScopedAdmin, HttpRequest, QuerySet[Booking]], None]


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
    """Bookings; what owners do about them are the actions."""

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
    """Rows of a network that the hub writes; nothing here is changed by hand."""

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
    """Which venues, and which networks as a whole, are not asked for a while."""

    list_display = ("network", "venue", "opened_at_s", "probe_until_s", "openings")
    list_select_related = ("network", "venue")
    fields = (*list_display, "failures")


@admin.register(Cancellation, site=site)
class CancellationAdmin(RecordAdmin):
    """What venues were told to cancel, or will be."""

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
