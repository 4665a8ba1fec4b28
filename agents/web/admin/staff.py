"""The admin of staff: halts, sessions, remote servers, processes, connections, daily usage."""

from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from accounts.admin_site import OwnerScopedAdmin, make_filter, site
from accounts.models import User
from agents.core import halt_rules
from agents.core.halt_rules import HaltSubject, NoSuchSubject, get_halt_subject
from agents.models import Connection, DailyUsage, Halt, Process, RemoteServer, Session
from agents.models.halt import REASON_CHARS

HaltFilter = make_filter(
    "state", "state", {"active": ("Active", Q(lifted_at=None)), "lifted": ("Lifted", Q(lifted_at__isnull=False))}
)
SessionFilter = make_filter(
    "state",
    "state",
    {"current": ("Current", Q(archived_at=None)), "archived": ("Archived", Q(archived_at__isnull=False))},
)
BreakerFilter = make_filter(
    "calls",
    "calls",
    {"called": ("Called", Q(retry_at=None)), "paused": ("Paused after failures", Q(retry_at__isnull=False))},
)


class HaltForm(forms.ModelForm):  # type: ignore[type-arg]
    """The agent or the user to halt, by name."""

    kind = forms.ChoiceField(choices=Halt.Kind.choices)
    name = forms.CharField(max_length=128, help_text="The agent's handle, or the login of the owner or caller.")
    reason = forms.CharField(max_length=REASON_CHARS, required=False, help_text="For the record.")

    def clean_name(self) -> HaltSubject:
        """The agent or user of this name."""
        try:
            return get_halt_subject(self.cleaned_data.get("kind", ""), self.cleaned_data["name"])
        except NoSuchSubject as unknown:
            raise forms.ValidationError(f"There is {unknown}.") from None


@admin.register(Halt, site=site)
class HaltAdmin(OwnerScopedAdmin):
    """The kill switch and the record of its use: halts are added and lifted, never changed or deleted."""

    writes = ("add",)
    list_display = ("whom", "kind", "by_staff", "reason", "made_by", "made_at", "lifted_by", "lifted_at")
    list_select_related = ("agent", "user", "made_by", "lifted_by")
    list_filter = (HaltFilter, "kind")
    search_fields = ("agent__handle", "user__login", "reason")
    ordering = ("-pk",)
    actions = ("lift",)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """The fields of a new halt; later also the fields of its end."""
        return ("kind", "name", "reason") if obj is None else self.list_display

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """A new one names what it halts."""
        return super().get_form(request, obj, change, **(kwargs if change else {**kwargs, "form": HaltForm}))

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Through the same verb as the native API; again is fine."""
        subject, reason = form.cleaned_data["name"], form.cleaned_data["reason"]
        made, _ = halt_rules.halt_subject(subject, by=cast(User, request.user), by_staff=True, reason=reason)
        obj.pk = made.pk
        obj.refresh_from_db()

    @admin.action(description="Lift the chosen halts")
    def lift(self, request: HttpRequest, queryset: QuerySet[Halt]) -> None:
        """Lift halts at once; the rows stay."""
        chosen = Halt.objects.filter(pk__in=queryset.values("pk"))
        count = halt_rules.lift_halts(chosen, by=cast(User, request.user))
        self.message_user(request, f"{count} lifted.", messages.SUCCESS)


@admin.register(Session, site=site)
class SessionAdmin(OwnerScopedAdmin):
    """Agents that registered."""

    list_display = ("routing_name", "owner", "host", "cwd", "started_at", "last_seen_at", "archived_at")
    list_select_related = ("owner",)
    list_filter = (SessionFilter,)
    search_fields = ("routing_name", "owner__login", "host", "cwd")
    ordering = ("-last_seen_at",)


@admin.register(RemoteServer, site=site)
class RemoteServerAdmin(OwnerScopedAdmin):
    """Remote A2A servers that are agents; their credentials are never shown."""

    list_display = (
        "card_url",
        "session",
        "auth_scheme",
        "is_pinned",
        "tells_caller",
        "requires_task",
        "retry_at",
        "opens",
        "last_failure",
        "card_refusal",
    )
    list_select_related = ("session",)
    list_filter = (BreakerFilter,)
    search_fields = ("card_url", "session__owner__login")
    fields = list_display
    ordering = ("card_url", "pk")

    @admin.display(description="pinned keys", boolean=True)
    def is_pinned(self, server: RemoteServer) -> bool:
        """Whether its card has to be signed."""
        return bool(server.card_keys)


@admin.register(Process, site=site)
class ProcessAdmin(OwnerScopedAdmin):
    """Hub processes and their heartbeats."""

    list_display = ("id", "host", "pid", "started_at", "beat_at")
    ordering = ("-beat_at",)


@admin.register(Connection, site=site)
class ConnectionAdmin(OwnerScopedAdmin):
    """Which session is connected to which process."""

    list_display = ("id", "session", "process", "credential", "connected_at")
    list_select_related = ("session", "process", "credential")
    ordering = ("-pk",)


@admin.register(DailyUsage, site=site)
class DailyUsageAdmin(OwnerScopedAdmin):
    """The asks that agents accepted, day by day."""

    list_display = ("day", "agent", "queries")
    list_select_related = ("agent",)
    list_filter = ("day",)
    search_fields = ("agent__handle",)
    ordering = ("-day", "agent")
