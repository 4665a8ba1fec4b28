"""Sessions of teams for their owners and the staff to look at. Their entries are sealed, and not shown."""

from django.contrib import admin

from accounts.admin_site import OwnerScopedAdmin, site
from gateway.models import SessionLog


@admin.register(SessionLog, site=site)
class SessionLogAdmin(OwnerScopedAdmin):
    """What agents said to each other: how much, and when."""

    owner_lookup = "owner"
    list_display = ("session_id", "agent", "owner", "state", "entries", "bytes", "last_entry_at")
    list_filter = ("state",)
    list_select_related = ("owner",)
    search_fields = ("session_id", "agent", "owner__login")
    ordering = ("-pk",)
    fields = (
        *("session_id", "agent", "owner", "state", "entries", "bytes", "compacted", "created_at"),
        *("last_entry_at", "committed_at", "archived_at", "locked_by", "locked_until", "imported_from"),
    )
