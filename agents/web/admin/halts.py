"""The kill switch, and the record of its use: for the staff."""

from typing import Any, cast

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from accounts.admin_site import StaffAdmin, site
from accounts.models import User
from agents.core import halting
from agents.models import Halt
from agents.web.admin.forms import HaltForm


@admin.register(Halt, site=site)
class HaltAdmin(StaffAdmin):
    """Made and lifted, never changed or deleted."""

    list_display = ("whom", "kind", "by_staff", "reason", "made_by", "made_at", "lifted_by", "lifted_at")
    list_select_related = ("agent", "user", "made_by", "lifted_by")
    list_filter = ("kind", ("lifted_at", admin.EmptyFieldListFilter))
    search_fields = ("agent__handle", "user__login", "reason")
    ordering = ("-pk",)
    actions = ("lift",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Staff."""
        return bool(request.user.is_staff)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """What to halt to begin with, then what became of it."""
        return ("kind", "name", "reason") if obj is None else self.list_display

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """A new one names what it halts."""
        return super().get_form(request, obj, change, **(kwargs if change else {**kwargs, "form": HaltForm}))

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Through the same verb as the native API; again is fine."""
        subject, reason = form.cleaned_data["name"], form.cleaned_data["reason"]
        made, _ = halting.halt(subject, by=cast(User, request.user), by_staff=True, reason=reason)
        obj.pk = made.pk
        obj.refresh_from_db()

    @admin.action(description="Lift the chosen halts")
    def lift(self, request: HttpRequest, queryset: QuerySet[Halt]) -> None:
        """They go on at once; the rows stay."""
        chosen = Halt.objects.filter(pk__in=queryset.values("pk"))
        count = halting.resume(chosen, by=cast(User, request.user))
        self.message_user(request, f"{count} lifted.", messages.SUCCESS)
