"""What the gateway wrote down, for owners and staff to look at. Secrets are never shown."""

from django.contrib import admin

from accounts.admin_site import OwnerScopedAdmin, site
from gateway.models import EnvelopeKey, FrameRecord


@admin.register(FrameRecord, site=site)
class FrameRecordAdmin(OwnerScopedAdmin):
    """Nothing here can be changed: it is the record."""

    owner_lookup = "owner"
    list_display = (
        *("at", "owner", "source", "destination", "type"),
        *("outcome", "error_code", "bytes", "latency_ms", "message_id"),
    )
    list_filter = ("outcome", "type", "at")
    list_select_related = ("owner",)
    search_fields = ("source", "destination", "message_id")
    ordering = ("-pk",)
    fields = (*list_display, "session_id")


@admin.register(EnvelopeKey, site=site)
class EnvelopeKeyAdmin(OwnerScopedAdmin):
    """By which keys a team signs; they are made and deleted over REST."""

    owner_lookup = "owner"
    list_display = ("key_id", "name", "owner", "created_at")
    list_select_related = ("owner",)
    ordering = ("-pk",)
    fields = list_display
