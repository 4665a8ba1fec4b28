"""Threads, shared answers and recorded exchanges in the admin. Links and bodies are never shown."""

from django.contrib import admin
from django.db.models import Q

from a2a_bridge.models import AnswerShare, RecordedExchange, Thread
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


@admin.register(AnswerShare, site=site)
class AnswerShareAdmin(OwnerScopedAdmin):
    """Answers that callers show to others. Deleting a row ends the share."""

    owner_lookup = "owner"
    writes = ("delete",)
    list_display = ("title", "agent", "audience", "user", "owner", "created_at", "expires_at")
    list_filter = ("audience", "created_at")
    list_select_related = ("agent", "user", "owner")
    search_fields = ("title", "agent__handle", "owner__login")
    ordering = ("-pk",)
    fields = (
        "title",
        "agent",
        "task_id",
        "audience",
        "user",
        "owner",
        "content_bytes",
        "created_at",
        "expires_at",
    )


@admin.register(RecordedExchange, site=site)
class RecordedExchangeAdmin(OwnerScopedAdmin):
    """Requests and responses of asks, without their bodies: those are for the readers of the page of the ask."""

    owner_lookup = "caller"
    list_display = (
        "received_at",
        "protocol",
        "caller",
        "method",
        "path",
        "status",
        "request_bytes",
        "response_bytes",
    )
    list_select_related = ("caller",)
    list_filter = ("protocol", "received_at")
    search_fields = ("chat_id", "caller__login")
    fields = ("chat_id", *list_display, "frames", "ended_at")
    ordering = ("-pk",)
