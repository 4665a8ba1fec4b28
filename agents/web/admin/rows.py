"""The hub's own rows, for the staff to look at."""

from django.contrib import admin

from accounts.admin_site import StaffAdmin, site
from agents.models import Connection, DailyUsage, Process, RemoteServer, Session


@admin.register(Session, site=site)
class SessionAdmin(StaffAdmin):
    """Agents that registered."""

    list_display = ("routing_name", "owner", "host", "cwd", "started_at", "last_seen_at", "archived_at")
    list_select_related = ("owner",)
    list_filter = (("archived_at", admin.EmptyFieldListFilter),)
    search_fields = ("routing_name", "owner__login", "host", "cwd")
    ordering = ("-last_seen_at",)


@admin.register(RemoteServer, site=site)
class RemoteServerAdmin(StaffAdmin):
    """Remote A2A servers that are agents; their credentials are nobody's to see."""

    list_display = (
        "card_url",
        "session",
        "auth_scheme",
        "is_pinned",
        "tells_caller",
        "retry_at",
        "opens",
        "last_failure",
        "card_refusal",
    )
    list_select_related = ("session",)
    list_filter = (("retry_at", admin.EmptyFieldListFilter),)
    search_fields = ("card_url", "session__owner__login")
    fields = list_display
    ordering = ("card_url", "pk")

    @admin.display(description="pinned keys", boolean=True)
    def is_pinned(self, server: RemoteServer) -> bool:
        """Whether its card has to be signed."""
        return bool(server.card_keys)


@admin.register(Process, site=site)
class ProcessAdmin(StaffAdmin):
    """Hub processes and their heartbeats."""

    list_display = ("id", "host", "pid", "started_at", "beat_at")
    ordering = ("-beat_at",)


@admin.register(Connection, site=site)
class ConnectionAdmin(StaffAdmin):
    """Who is connected where."""

    list_display = ("id", "session", "process", "credential", "connected_at")
    list_select_related = ("session", "process", "credential")
    ordering = ("-pk",)


@admin.register(DailyUsage, site=site)
class DailyUsageAdmin(StaffAdmin):
    """What agents accepted, day by day."""

    list_display = ("day", "agent", "queries")
    list_select_related = ("agent",)
    list_filter = ("day",)
    search_fields = ("agent__handle",)
    ordering = ("-day", "agent")
