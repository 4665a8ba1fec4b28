"""The admin: every signed-in user may enter, and sees their own rows of each table; staff see all rows."""

from collections.abc import Callable, Collection, Mapping
from functools import wraps
from typing import Any, ClassVar
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.models import LogEntry
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.core.exceptions import SuspiciousOperation
from django.db import transaction
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, URLResolver, reverse

from accounts import audit_log
from accounts.browser import sign_out
from accounts.models import User
from kit.ids import read_row_id

DELETE_SELECTED = "delete_selected"
SECRET_WORDS = ("digest", "secret", "password", "credentials")  # in names of columns
LEFT_OUT = ("password_change", "password_change_done", "view_on_site")


class OwnersAdminSite(admin.AdminSite):
    """Django's admin for users with the cookie `cw_session`, without its own sign-in by password."""

    site_header = "Clawbridge"
    site_title = "Clawbridge"
    index_title = "Administration"
    site_url = "/"
    enable_nav_sidebar = False  # there are few tables: the width is for their columns

    def has_permission(self, request: HttpRequest) -> bool:
        """True for every user who is signed in and not suspended."""
        return bool(request.user.is_authenticated and request.user.is_active)

    def login(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Redirect to the hub's sign-in, which leads back to this page."""
        target = request.GET.get(REDIRECT_FIELD_NAME) or reverse("admin:index", current_app=self.name)
        if self.has_permission(request):
            return HttpResponseRedirect(reverse("admin:index", current_app=self.name))
        return HttpResponseRedirect(f"{reverse('signin')}?{urlencode({'next': target})}")

    def logout(  # type: ignore[override]
        self, request: HttpRequest, extra_context: Any = None
    ) -> HttpResponse:
        """Sign out as on the home page."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        response = HttpResponseRedirect(reverse("home"))
        sign_out(request, response)
        return response

    def get_urls(self) -> list[URLPattern | URLResolver]:
        """Django's addresses, without changing passwords and without "view on site", which shows any row of any
        table.
        """
        return [url for url in super().get_urls() if getattr(url, "name", None) not in LEFT_OUT]

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:
        """Wrap a view as Django does, and refuse NUL in an address: a filter would pass it to a database that
        refuses it.
        """
        inner: Callable[..., HttpResponse] = super().admin_view(view, cacheable)

        @wraps(inner)
        def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            if "\0" in request.path_info or "%00" in request.META.get("QUERY_STRING", ""):
                raise SuspiciousOperation("NUL in the address")
            return inner(request, *args, **kwargs)

        return checked


site = OwnersAdminSite(name="admin")


class OwnerScopedAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """The rows of one table: staff see all, other users their own; for them a row of another user is absent.

    `owner_lookup` leads from a row to its owner; None: only staff see the rows. `writes` names what those who see
    a row may do with it: "add", "change", "delete". Each write and each action is logged (`accounts.audit_log`).
    """

    owner_lookup: str | None = None
    writes: Collection[str] = ()
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """The rows that this user sees. Django looks rows up here before it asks for permissions."""
        rows = super().get_queryset(request)
        if request.user.is_staff:
            return rows
        return self.owned_by(rows, request.user.pk) if self.owner_lookup else rows.none()

    def owned_by(self, rows: QuerySet[Any], user_id: int | None) -> QuerySet[Any]:
        """The rows of one owner."""
        return rows.filter(**{str(self.owner_lookup): user_id})

    def has_module_permission(self, request: HttpRequest) -> bool:
        """True if the index lists the table."""
        return bool(self.owner_lookup or request.user.is_staff)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """True if the user may see the module; `get_queryset` decides which rows."""
        return self.has_module_permission(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """True if `writes` allows it."""
        return "add" in self.writes and self.has_module_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """True if `writes` allows it."""
        return "change" in self.writes and self.has_module_permission(request)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """True if `writes` allows it."""
        return "delete" in self.writes and self.has_module_permission(request)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Forbid filters on a secret or its hash: by repeated filters a user could guess the value."""
        return not any(word in lookup for word in SECRET_WORDS) and super().lookup_allowed(lookup, value, request)

    @transaction.atomic
    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> LogEntry:
        """Log as Django does, and announce the entry."""
        return _announced(super().log_addition(request, obj, message))

    @transaction.atomic
    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> LogEntry:
        """Log as Django does, and announce the entry."""
        return _announced(super().log_change(request, obj, message))

    @transaction.atomic
    def log_deletions(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[LogEntry]:
        """Log as Django does, and announce the entries."""
        added = list(super().log_deletions(request, queryset))
        audit_log.announce(added)
        return added

    def response_action(
        self, request: HttpRequest, queryset: QuerySet[Any], *args: Any, **kwargs: Any
    ) -> HttpResponse | None:
        """Run an action and log it. Refuses chosen keys that are not numbers, on which Django would fail."""
        chosen, action = request.POST.getlist(ACTION_CHECKBOX_NAME), request.POST.get("action", "")
        if not all(map(self.is_key, chosen)):
            raise SuspiciousOperation("a row is chosen by its number")
        everything = request.POST.get("select_across") == "1"
        some = queryset if everything else queryset.filter(pk__in=chosen)
        rows = (
            audit_log.name_rows(list(some[: audit_log.ROWS_NAMED + 1]))
            if action in self.get_actions(request)
            else []
        )
        response = super().response_action(request, queryset, *args, **kwargs)
        if rows and action != DELETE_SELECTED and isinstance(request.user, User):  # Django logs this action itself
            audit_log.record_act(request.user, self.model, rows, action)
        return response

    def is_key(self, text: str) -> bool:
        """True if a text can be a row's key."""
        return read_row_id(text) is not None


def _announced(entry: LogEntry) -> LogEntry:
    audit_log.announce([entry])
    return entry


class ConditionFilter(admin.SimpleListFilter):
    """A filter beside a list, by named conditions; `make_filter` makes subclasses."""

    conditions: ClassVar[Mapping[str, tuple[str, Q]]] = {}

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """The conditions by name."""
        return [(value, label) for value, (label, _) in self.conditions.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """The rows that meet the chosen condition; all rows if no known condition is chosen."""
        chosen = self.conditions.get(self.value() or "")
        return queryset.filter(chosen[1]) if chosen else queryset


def make_filter(title: str, parameter: str, conditions: Mapping[str, tuple[str, Q]]) -> type[ConditionFilter]:
    """Make a filter titled `title`; `conditions` maps each value of the query parameter to a label and a
    condition.
    """
    attributes = {"title": title, "parameter_name": parameter, "conditions": conditions}
    return type("MadeFilter", (ConditionFilter,), attributes)


def make_live_filter(live: Q) -> type[ConditionFilter]:
    """Make a filter of credentials or related rows. `live`: the condition of accepted credentials."""
    return make_filter("state", "good", {"yes": ("Accepted", live), "no": ("Revoked or expired", ~live)})
