"""Users, with an action that needs all parts of the hub: the export of one user's data."""

from typing import Any, cast

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase

from accounts.admin_site import site
from accounts.models import User
from accounts.user_admin import UserAdmin
from hub.account_data.export import export_of


@admin.register(User, site=site)
class WholeUserAdmin(UserAdmin):
    """For users who ask the hub's staff for their data."""

    actions = ("export",)

    @admin.action(description="Download everything of the chosen user")
    def export(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponseBase | None:
        """One at a time; it is written down like every act."""
        chosen = list(queryset[:2])
        if len(chosen) == 1:
            return export_of(request, chosen[0], cast(User, request.user).pk)
        self.message_user(request, "Choose one user.", messages.ERROR)
        return None
