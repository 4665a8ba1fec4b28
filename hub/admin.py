"""Users in the admin, for the staff: one page with what a user may do, and how and where the user signs in."""

from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString

from accounts import access
from accounts.admin_site import OwnerScopedAdmin, site
from accounts.browser import device_name
from accounts.models import Credential, User
from accounts.oauth.signin_methods import list_signin_methods
from hub.account_data.export import export_of

FIELDS = ("is_active", "is_staff")
NO_RIGHTS_LEFT = "You have no staff rights any more."


class AccessForm(forms.ModelForm):  # type: ignore[type-arg]
    """The form that says if a user is active and of the staff. `changed_by`: the member of the staff who sends the
    form."""

    changed_by: User

    class Meta:
        model = User
        fields = FIELDS
        labels = {"is_active": "Active", "is_staff": "Staff"}
        help_texts = {
            "is_active": "Untick to suspend the user: tokens are refused, agents are absent, sockets close.",
            "is_staff": "Sees all rows of the admin, the health of the hub and its limits, and invites users."
            " Rights that are taken away end with the next request.",
        }

    def clean(self) -> dict[str, Any]:
        """Lock the administrators and the user, then check what remains; the view's transaction keeps the locks.

        Raises:
            ValidationError: of the form or of a field; nothing is written.
        """
        given: dict[str, Any] = super().clean() or self.cleaned_data
        try:
            access.check_access(self.instance.pk, {name: given[name] for name in FIELDS}, by=self.changed_by)
        except access.AccessRefused as refused:
            raise ValidationError({refused.field: str(refused)} if refused.field else str(refused)) from None
        return given


@admin.register(User, site=site)
class UserAdmin(OwnerScopedAdmin):
    """Staff suspend users, give and take staff rights, and export the data of users who ask for it.

    Nothing else about users is changed by hand.
    """

    writes = ("change",)
    actions = ("export",)
    form = AccessForm
    list_display = ("login", "is_active", "is_staff", "is_service", "github_id", "created_at")
    list_filter = ("is_active", "is_staff", "is_service", "is_group")
    search_fields = ("login",)
    ordering = ("login",)
    fieldsets = (
        (None, {"fields": ("login", "holder", "created_at")}),
        ("Access", {"fields": ("is_active", "is_staff")}),
        ("Sign-in", {"fields": ("signin_methods", "sessions", "tokens")}),
    )
    readonly_fields = ("login", "holder", "created_at", "signin_methods", "sessions", "tokens")

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """The form class, with the member of the staff who sends the form."""
        form: Any = super().get_form(request, obj, change, **kwargs)
        form.changed_by = request.user
        return form

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """True if the account may be changed: an erased account may not."""
        is_erased = isinstance(obj, User) and obj.closed_at is not None
        return super().has_change_permission(request, obj) and not is_erased

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        """Save only the access: other columns may have changed since the form was read."""
        access.save_access(obj)

    def construct_change_message(self, request: HttpRequest, form: Any, formsets: Any, add: bool = False) -> str:  # type: ignore[override]
        """The text for the history: it names the action, not the changed fields."""
        changed = {name: form.cleaned_data[name] for name in form.changed_data}
        return access.name_changes(changed) or "changed nothing"

    def response_change(self, request: HttpRequest, obj: User) -> HttpResponse:
        """Redirect a user who gave up staff rights to the admin's first page: this page would refuse the user."""
        if obj.pk != request.user.pk or obj.is_staff:
            return super().response_change(request, obj)
        self.message_user(request, NO_RIGHTS_LEFT, messages.SUCCESS)
        return HttpResponseRedirect(reverse("admin:index"))

    @admin.display(description="account of")
    def holder(self, user: User) -> str:
        """A person, or a program."""
        return "a group" if user.is_group else "a program" if user.is_service else "a person"

    @admin.display(description="signs in with")
    def signin_methods(self, user: User) -> SafeString:
        """The ways in which the user can sign in."""
        return render_to_string("admin/signin_methods.html", {"methods": list_signin_methods(user)})

    @admin.display(description="is signed in on")
    def sessions(self, user: User) -> SafeString:
        """The places where the user is signed in."""
        live = user.credentials.live().filter(kind=Credential.Kind.SESSION).order_by("-created_at", "-pk")
        rows = [(one, device_name(one.user_agent)) for one in live]
        return render_to_string("admin/sessions.html", {"sessions": rows})

    def tokens(self, user: User) -> SafeString:
        """The number of accepted tokens of the user, with a link to the page on which staff revoke them."""
        live: QuerySet[Credential] = user.credentials.live().exclude(kind=Credential.Kind.SESSION)
        return render_to_string("admin/tokens.html", {"count": live.count(), "owner": user})

    @admin.action(description="Download everything of the chosen user")
    def export(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponseBase | None:
        """Export one user at a time; the export is logged like every action."""
        chosen = list(queryset[:2])
        if len(chosen) == 1:
            return export_of(request, chosen[0], cast(User, request.user).pk)
        self.message_user(request, "Choose one user.", messages.ERROR)
        return None
