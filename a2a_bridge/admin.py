"""The threads of callers in the admin."""

from django.contrib import admin
from django.db.models import Q

from a2a_bridge.models import Thread
from accounts.admin_site import OwnerScopedAdmin, make_filter, site

ThreadFilter = make_filter(
    "state",
    "state",
    {"current": ("Current", Q(archived_at=None)), "archived": ("Archived", Q(archived_at__isnull=False))},
)


@admin.register(Thread, site=site)
class ThreadAdmin(OwnerScopedAdmin):
    """The conversations of callers with agents; nothing is changed by hand."""

    owner_lookup = "caller"
    list_display = ("title", "agent", "caller", "began_at", "last_asked_at", "archived_at")
    list_select_related = ("agent", "caller")
    list_filter = (ThreadFilter, "last_asked_at")
    search_fields = ("title", "agent__handle", "caller__login")
    fields = ("public_id", *list_display, "context_id")
    readonly_fields = ("public_id",)
    ordering = ("-pk",)
