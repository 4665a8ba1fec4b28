"""Keys in the admin: what they may do is changed, and they are revoked."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import display_for_value
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from accounts.admin_site import OwnerScopedAdmin, make_live_filter, site
from accounts.models import Credential
from agnt.models import ApiKey, KeyUsage
from agnt.service.keys import SENDERS, change_key, revoke_key
from kit.columns import make_form_field
from kit.list_fields import NameLines

RIGHTS = ("tier", "scope", "senders")
LiveFilter = make_live_filter(Q(credential__in=Credential.objects.live().values("pk")))


def _column(name: str, description: str, shown: str = "") -> Callable[[ApiKey], str]:
    """A column of the credential of a key. `shown`: the attribute that has its text, where another one has."""

    @admin.display(description=description, ordering=f"credential__{name}")
    def show(key: ApiKey) -> str:
        return display_for_value(getattr(key.credential, shown or name), "-")

    return show


class KeyForm(forms.ModelForm):  # type: ignore[type-arg]
    """The rights of a key; its senders as on the desk."""

    senders = make_form_field(ApiKey, "senders", NameLines, rule=SENDERS)

    class Meta:
        model = ApiKey
        fields = RIGHTS


@admin.register(ApiKey, site=site)
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
    name = staticmethod(_column("name", "name"))
    prefix = staticmethod(_column("prefix", "begins with", "shown_prefix"))
    last_used_at = staticmethod(_column("last_used_at", "last used"))
    expires_at = staticmethod(_column("expires_at", "expires"))
    revoked_at = staticmethod(_column("revoked_at", "revoked"))
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


@admin.register(KeyUsage, site=site)
class KeyUsageAdmin(OwnerScopedAdmin):
    """How often each key was used, by UTC day."""

    owner_lookup = "key__network__owner"
    list_display = ("key", "day", "calls")
    list_select_related = ("key",)
    list_filter = ("day",)
    ordering = ("-day", "-pk")
    fields = list_display
