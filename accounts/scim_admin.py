"""SCIM in the admin, for the staff: its token, and the users and groups that the identity provider provides."""

from typing import Any, cast

from django import forms
from django.contrib import admin, messages
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from accounts import settings
from accounts.admin_site import OwnerScopedAdmin
from accounts.group_admin import ServiceForm, StaffWrites
from accounts.groups import BadGroup
from accounts.models import Group, ScimGroup, ScimToken, ScimUser, User
from accounts.scim_links import link_scim_group, link_scim_user
from accounts.scim_tokens import end_scim_token, make_scim_token


class NewScimTokenForm(ServiceForm):
    class Meta:
        model = ScimToken
        fields = ("issuer",)

    def change(self, given: dict[str, Any]) -> ScimToken:
        """Make the token; an earlier one ends."""
        made = make_scim_token(given["issuer"], by=self.changed_by)
        made.row.shown_once = made.token  # type: ignore[attr-defined]
        return made.row


class LinkedUserForm(ServiceForm):
    login = forms.CharField(max_length=64, help_text="The account that the identity provider is to govern.")

    class Meta:
        model = ScimUser
        fields = ("user_name",)

    def change(self, given: dict[str, Any]) -> ScimUser:
        """Link the account."""
        return link_scim_user(self.find_user(given["login"]), given["user_name"], by=self.changed_by)


class LinkedGroupForm(ServiceForm):
    slug = forms.CharField(max_length=39, label="group", help_text="Its short name.")

    class Meta:
        model = ScimGroup
        fields = ("display_name",)

    def change(self, given: dict[str, Any]) -> ScimGroup:
        """Link the group."""
        group = Group.objects.filter(account__login__iexact=given["slug"].strip().removeprefix("@")).first()
        if group is None:
            raise BadGroup("there is no such group")
        return link_scim_group(group, given["display_name"], by=self.changed_by)


class ScimTable(StaffWrites):
    """A table of SCIM: the staff adds rows by a form; what exists the identity provider changes."""

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """All columns of a row; of a new row those that the staff fills in."""
        return self.fields if obj else self.add_fields

    def has_module_permission(self, request: HttpRequest) -> bool:
        """True for the staff."""
        return bool(request.user.is_staff)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """False: rows are only read."""
        return False


class ScimTokenAdmin(ScimTable):
    """The token of the identity provider; shows its text once, and never its hash."""

    form = add_form = NewScimTokenForm
    add_fields = ("issuer",)
    list_display = ("prefix", "issuer", "made_by", "created_at", "last_used_at", "revoked_at")
    list_select_related = ("made_by",)
    ordering = ("-created_at",)
    actions = ("end",)
    fields = ("prefix", "issuer", "account", "made_by", "created_at", "last_used_at", "revoked_at")

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: str | None = None) -> HttpResponse:
        """The page that shows the token, once."""
        shown = {**self.admin_site.each_context(request), "title": "The SCIM token", "token": obj.shown_once}
        address = f"{settings.PUBLIC_URL}/scim/v2"
        return TemplateResponse(request, "admin/scim_token.html", shown | {"address": address, "opts": self.opts})

    @admin.action(description="End the SCIM token")
    def end(self, request: HttpRequest, queryset: QuerySet[ScimToken]) -> None:
        """End the live token, if it is one of the chosen rows: the hub has no SCIM then."""
        if queryset.filter(revoked_at=None).exists() and end_scim_token(by=cast(User, request.user)):
            self.message_user(request, "SCIM is off.", messages.SUCCESS)
        else:
            self.message_user(request, "The token ended before.", messages.WARNING)


class ScimUserAdmin(ScimTable):
    """The persons that the identity provider provides; the staff links accounts that existed before."""

    form = add_form = LinkedUserForm
    add_fields = ("login", "user_name")
    list_display = ("user_name", "user", "is_active", "external_id", "created_at", "removed_at")
    list_filter = ("is_active",)
    list_select_related = ("user",)
    search_fields = ("user_name", "user__login", "external_id")
    ordering = ("user_name",)
    fields = (
        "user_name",
        "user",
        "is_active",
        "external_id",
        "profile",
        "created_at",
        "changed_at",
        "removed_at",
    )


class ScimGroupAdmin(ScimTable):
    """The groups to which the identity provider adds members; the staff links groups that existed before."""

    form = add_form = LinkedGroupForm
    add_fields = ("slug", "display_name")
    list_display = ("display_name", "group", "external_id", "created_at", "removed_at")
    list_select_related = ("group__account",)
    search_fields = ("display_name", "group__account__login", "external_id")
    ordering = ("display_name",)
    fields = ("display_name", "group", "external_id", "created_at", "changed_at", "removed_at")


TABLES: dict[type[Model], type[OwnerScopedAdmin]] = {
    ScimToken: ScimTokenAdmin,
    ScimUser: ScimUserAdmin,
    ScimGroup: ScimGroupAdmin,
}
