"""Callers whom an owner does not answer."""

from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from accounts.admin_site import OwnedAdmin, site
from agents.core.publishing import block
from agents.models import CallerBlock
from agents.web.admin.forms import BlockForm


@admin.register(CallerBlock, site=site)
class CallerBlockAdmin(OwnedAdmin):
    """Made and removed, never changed."""

    list_display = ("caller", "owner", "created_at")
    list_select_related = ("caller", "owner")
    search_fields = ("caller__login",)
    ordering = ("-pk",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Everybody, for what is theirs."""
        return True

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Whatever one sees here."""
        return True

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """A login to begin with, then what became of it."""
        return ("login",) if obj is None else ("caller", "owner", "created_at")

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """The visitor blocks for themselves."""
        if change:
            return super().get_form(request, obj, change, **kwargs)
        form = super().get_form(request, obj, change, **{**kwargs, "form": BlockForm})
        return type("VisitorsBlockForm", (form,), {"owner": request.user})

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Through the same verb as the native API; again is fine."""
        made, _ = block(form.owner, form.cleaned_data["login"])
        obj.pk = made.pk
        obj.refresh_from_db()
