"""Webhooks for their owners to look at, and deliveries to send again. Secrets are never shown."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from accounts.admin_site import OwnerScopedAdmin, site
from webhooks.models import Delivery, Subscription
from webhooks.service.sending import send_again


@admin.register(Subscription, site=site)
class SubscriptionAdmin(OwnerScopedAdmin):
    """The receivers of events, and the success of their deliveries."""

    owner_lookup = "owner"
    list_display = ("url", "events", "status", "consecutive_failures", "owner", "key_name", "last_delivery_at")
    list_filter = ("status",)
    list_select_related = ("owner", "credential")
    search_fields = ("url", "events")
    ordering = ("-pk",)
    fields = (
        *("url", "events", "session_id", "routing_name", "status", "consecutive_failures", "owner"),
        *("key_name", "created_at", "last_delivery_at", "previous_until", "paused_at"),
    )
    readonly_fields = ("key_name",)

    @admin.display(description="API key", ordering="credential__name")
    def key_name(self, own: Subscription) -> str:
        """The name of the key that owns it, if one does."""
        return own.credential.name if own.credential else ""


@admin.register(Delivery, site=site)
class DeliveryAdmin(OwnerScopedAdmin):
    """Every event of every webhook: what became of it, and a way to send it again."""

    owner_lookup = "subscription__owner"
    list_display = ("event_id", "type", "subscription", "status", "attempts", "queued_at", "last_status")
    list_filter = ("status", "type", "queued_at")
    list_select_related = ("subscription",)
    search_fields = ("event_id", "type")
    ordering = ("-pk",)
    actions = ("replay",)
    fields = (
        *("event_id", "type", "subscription", "payload", "status", "attempts", "queued_at"),
        *("next_attempt_at", "delivered_at", "last_status", "last_error", "last_response"),
    )

    @admin.action(description="Send the chosen deliveries again")
    def replay(self, request: HttpRequest, queryset: QuerySet[Delivery]) -> None:
        """The hub sends the chosen events again from the first attempt, under the same ids, except those that it
        sends at this moment.
        """
        count = sum(send_again(delivery) for delivery in queryset)
        self.message_user(request, f"{count} queued.", messages.SUCCESS)
