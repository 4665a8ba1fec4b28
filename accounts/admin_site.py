"""The admin as an owner's desk: every signed-in user enters, each model shows them their own rows."""

from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.core.exceptions import SuspiciousOperation
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, URLResolver, reverse

from accounts import acts
from accounts.browser import sign_out
from accounts.models import User

MAX_ROW_DIGITS = 18
DELETE_SELECTED = "delete_selected"
LEFT_OUT = ("password_change", "password_change_done", "view_on_site")


class OwnersAdminSite(admin.AdminSite):
    """Django's admin, entered by `cw_session`; there are no passwords here."""

    site_header = "Clawbridge"
    site_title = "Clawbridge"
    index_title = "Administration"
    site_url = "/"
    enable_nav_sidebar = False  # a handful of tables: the room goes to their columns

    def has_permission(self, request: HttpRequest) -> bool:
        """Anybody signed in and not suspended."""
        return bool(request.user.is_authenticated and request.user.is_active)

    def login(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Send the visitor to the hub's sign-in, and back here after it."""
        target = request.GET.get(REDIRECT_FIELD_NAME) or reverse("admin:index", current_app=self.name)
        if self.has_permission(request):
            return HttpResponseRedirect(reverse("admin:index", current_app=self.name))
        return HttpResponseRedirect(f"{reverse('signin')}?{urlencode({'next': target})}")

    def logout(  # type: ignore[override]
        self, request: HttpRequest, extra_context: Any = None
    ) -> HttpResponse:
        """The same as signing out on the home page."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        response = HttpResponseRedirect(reverse("home"))
        sign_out(request, response)
        return response

    def get_urls(self) -> list[URLPattern | URLResolver]:
        """Django's, without changing passwords and without "view on site", which looks up any row of any table."""
        return [url for url in super().get_urls() if getattr(url, "name", None) not in LEFT_OUT]

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:
        """Django's, but for NUL in an address: filters would pass it on to a database that refuses it."""
        inner: Callable[..., HttpResponse] = super().admin_view(view, cacheable)

        @wraps(inner)
        def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if "\0" in request.path_info or "%00" in request.META.get("QUERY_STRING", ""):
                raise SuspiciousOperation("NUL in the address")
            return inner(request, *args, **kwargs)

        return checked


site = OwnersAdminSite(name="admin")


def is_row_number(text: str) -> bool:
    """Whether a text can be the number of a row in any database."""
    return text.isdecimal() and len(text) <= MAX_ROW_DIGITS


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Rows to look at. Subclasses open single doors. What is done here is written down (`accounts.acts`)."""

    show_full_result_count = False

    def response_action(
        self, request: HttpRequest, queryset: QuerySet[Any], *args: Any, **kwargs: Any
    ) -> HttpResponse | None:
        """Run an action on rows chosen by number, and note it; Django breaks on anything else."""
        chosen, action = request.POST.getlist(ACTION_CHECKBOX_NAME), request.POST.get("action", "")
        if not all(map(self.is_key, chosen)):
            raise SuspiciousOperation("a row is chosen by its number")
        everything = request.POST.get("select_across") == "1"
        some = queryset if everything else queryset.filter(pk__in=chosen)
        rows = acts.name_rows(list(some[: acts.ROWS_NAMED + 1])) if action in self.get_actions(request) else []
        response = super().response_action(request, queryset, *args, **kwargs)
        if rows and action != DELETE_SELECTED and isinstance(request.user, User):  # Django notes its own
            acts.note(request.user, self.model, rows, action)
        return response

    def is_key(self, text: str) -> bool:
        """Whether a text can be a row's key."""
        return is_row_number(text)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """No."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """No."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """No."""
        return False


class OwnedAdmin(ReadOnlyAdmin):
    """Rows of owners: each sees their own, staff see all. `owner_path` leads from a row to its owner."""

    owner_path = "owner"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """What this visitor may see; rows outside of it do not exist for them."""
        rows = super().get_queryset(request)
        return rows if request.user.is_staff else self.owned_by(rows, request.user.pk)

    def owned_by(self, rows: QuerySet[Any], user_id: int | None) -> QuerySet[Any]:
        """Those of one owner."""
        return rows.filter(**{self.owner_path: user_id})

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Everybody has a desk."""
        return True

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Which rows is decided by `get_queryset`."""
        return True


class StaffAdmin(ReadOnlyAdmin):
    """Rows only staff see."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Every row for staff. For others no row exists, also where Django looks for it before it asks leave."""
        rows = super().get_queryset(request)
        return rows if request.user.is_staff else rows.none()

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Staff."""
        return bool(request.user.is_staff)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Staff."""
        return bool(request.user.is_staff)
