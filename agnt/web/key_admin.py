"""Keys in the admin: what they may do is changed, and they are revoked."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import display_for_value
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from accounts.admin_site import OwnerScopedAdmin, make_live_filter
from accounts.models import Credential
from agnt.keys import change_key, revoke_key
from agnt.models import ApiKey
from agnt.web.keys import SendersField

RIGHTS = ("tier", "scope", "senders")
LiveFilter = make_live_filter(Q(credential__in=Credential.objects.live().values("pk")))


class KeyForm(forms.ModelForm):  # type: ignore[type-arg]
    """What a key may do; its senders as on the desk."""

    senders = SendersField()

    class Meta:
        model = ApiKey
        fields = RIGHTS


class ApiKeyAdmin(OwnerScopedAdmin):
    """Keys to recognise, to change what they may do, and to revoke; never their text, never their secrets.

    They are made elsewhere. A key that is revoked or has expired is not changed.
    """

    owner_lookup = "network__owner"
    writes = ("change",)
    form = KeyForm
    list_display = (
        "name",
        "prefix",
        "tier",
        "scope",
        "customer",
        "network",
        "created_at",
        "last_used_at",
        "expires_at",
        "is_usable",
    )
    list_filter = (LiveFilter, "tier", "scope")
    list_select_related = ("credential", "network")
    search_fields = ("credential__name", "credential__prefix", "customer")
    ordering = ("-pk",)
    actions = ("revoke",)
    readonly_fields = (
        *("public_id", "name", "prefix", "customer", "network"),
        *("created_at", "last_used_at", "expires_at", "revoked_at", "previous_until"),
    )
    fields = (*RIGHTS, *readonly_fields)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Of a key that works."""
        return super().has_change_permission(request, obj) and (obj is None or obj.credential.is_live)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Write as REST does, what the form changed."""
        change_key(obj, **{name: form.cleaned_data[name] for name in form.changed_data})

    @admin.display(description="name", ordering="credential__name")
    def name(self, key: ApiKey) -> str:
        """What its owner calls it."""
        return key.credential.name

    @admin.display(description="begins with", ordering="credential__prefix")
    def prefix(self, key: ApiKey) -> str:
        """The head of the key, with a sign that it goes on."""
        return key.credential.shown_prefix

    @admin.display(description="last used", ordering="credential__last_used_at")
    def last_used_at(self, key: ApiKey) -> str:
        """Within a minute or so."""
        return display_for_value(key.credential.last_used_at, "-")

    @admin.display(description="expires", ordering="credential__expires_at")
    def expires_at(self, key: ApiKey) -> str:
        """Empty: it works until it is revoked."""
        return display_for_value(key.credential.expires_at, "-")

    @admin.display(description="revoked")
    def revoked_at(self, key: ApiKey) -> str:
        """Empty: it was not."""
        return display_for_value(key.credential.revoked_at, "-")

    @admin.display(description="good", boolean=True)
    def is_usable(self, key: ApiKey) -> bool:
        """Neither revoked nor expired."""
        return key.credential.is_live

    @admin.action(description="Revoke the chosen keys")
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        """Refuse them from the next envelope on."""
        for key in queryset:
            revoke_key(key)
        self.message_user(request, f"{len(queryset)} revoked.", messages.SUCCESS)
