"""Credentials for their owners, users for the staff."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from accounts.acts import READ
from accounts.admin_site import OwnedAdmin, StaffAdmin, site
from accounts.models import Credential, Invitation, Passkey, ProviderIdentity, User

ACTS = {ADDITION: "added", CHANGE: "changed", DELETION: "deleted", READ: "read"}


class GoodFilter(admin.SimpleListFilter):
    """By whether they are accepted now."""

    title = "good"
    parameter_name = "good"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Good ones, and history."""
        return [("yes", "Good"), ("no", "Revoked or expired")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Credential]) -> QuerySet[Credential]:
        """Those of the chosen kind."""
        live = Credential.objects.live().values("pk")
        match self.value():
            case "yes":
                return queryset.filter(pk__in=live)
            case "no":
                return queryset.exclude(pk__in=live)
        return queryset


@admin.register(Credential, site=site)
class CredentialAdmin(OwnedAdmin):
    """Tokens to recognise and to revoke; never their text, never their hash."""

    owner_path = "user"
    list_display = (
        "name",
        "kind",
        "shown_prefix",
        "user",
        "created_at",
        "last_used_at",
        "expires_at",
        "is_usable",
    )
    list_filter = (GoodFilter, "kind")
    list_select_related = ("user",)
    search_fields = ("name", "prefix")
    ordering = ("-created_at",)
    actions = ("revoke",)
    fields = (
        "name",
        "kind",
        "shown_prefix",
        "user",
        "source",
        "machine_id",
        "app_name",
        "scopes",
        "only_agent",
        "user_agent",
        "created_at",
        "last_used_at",
        "expires_at",
        "revoked_at",
    )

    @admin.display(description="begins with", ordering="prefix")
    def shown_prefix(self, credential: Credential) -> str:
        """The head of the token, with a sign that it goes on."""
        return f"{credential.prefix}…"

    @admin.display(description="good", boolean=True)
    def is_usable(self, credential: Credential) -> bool:
        """Neither revoked nor expired."""
        return credential.is_live

    @admin.action(description="Revoke the chosen credentials")
    def revoke(self, request: HttpRequest, queryset: QuerySet[Credential]) -> None:
        """Refuse them from the next request on; sockets that use them close within seconds."""
        count = Credential.objects.filter(pk__in=queryset.values("pk")).revoke()
        self.message_user(request, f"{count} revoked.", messages.SUCCESS)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Nobody feels out a hash by filtering on it."""
        return not lookup.startswith("digest") and super().lookup_allowed(lookup, value, request)


@admin.register(User, site=site)
class UserAdmin(StaffAdmin):
    """Staff suspend and reinstate users here; nothing else about them is changed by hand."""

    list_display = ("login", "is_active", "is_staff", "is_service", "github_id", "created_at")
    list_filter = ("is_active", "is_staff", "is_service")
    search_fields = ("login",)
    ordering = ("login",)
    fields = ("login", "github_id", "avatar_url", "is_active", "is_staff", "created_at")
    readonly_fields = ("login", "github_id", "avatar_url", "is_staff", "created_at")

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Staff, and nobody on their own row: who suspends himself is locked out."""
        return bool(request.user.is_staff) and (obj is None or obj.pk != request.user.pk)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """No filter on the hash of a password: it would let a visitor guess it."""
        return not lookup.startswith("password") and super().lookup_allowed(lookup, value, request)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Only the suspension; the rest of the row may have moved since."""
        obj.save(update_fields=["is_active"])


@admin.register(ProviderIdentity, site=site)
class ProviderIdentityAdmin(OwnedAdmin):
    """By which accounts elsewhere users sign in."""

    owner_path = "user"
    list_display = ("user", "issuer", "subject", "created_at", "last_used_at")
    list_display_links = ("subject",)
    list_select_related = ("user",)
    search_fields = ("issuer", "subject")
    ordering = ("-created_at",)
    fields = ("user", "issuer", "subject", "created_at", "last_used_at")


@admin.register(Passkey, site=site)
class PasskeyAdmin(OwnedAdmin):
    """Which passkeys there are; their owners remove what they lost."""

    owner_path = "user"
    list_display = ("name", "user", "created_at", "last_used_at", "sign_count")
    list_select_related = ("user",)
    ordering = ("-created_at",)
    fields = ("name", "user", "created_at", "last_used_at", "sign_count")

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Owners remove their own, staff all."""
        return True


@admin.register(Invitation, site=site)
class InvitationAdmin(StaffAdmin):
    """Who was invited by whom; never the link, never its hash."""

    list_display = ("login", "is_admin", "made_by", "user", "created_at", "expires_at", "used_at")
    list_select_related = ("made_by", "user")
    search_fields = ("login",)
    ordering = ("-created_at",)
    fields = ("login", "is_admin", "made_by", "user", "created_at", "expires_at", "used_at")

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """No filter on the hash: it would let a visitor guess it."""
        return not lookup.startswith("digest") and super().lookup_allowed(lookup, value, request)


@admin.register(LogEntry, site=site)
class ActAdmin(StaffAdmin):
    """Who did what in the admin, and which questions staff looked at; nothing here changes or goes."""

    list_display = ("action_time", "user", "did", "content_type", "object_repr", "how")
    list_display_links = None
    list_filter = ("user__is_staff", "content_type", "action_time")
    list_select_related = ("user", "content_type")
    search_fields = ("user__login", "object_repr")
    search_help_text = "In who, and to what"
    ordering = ("-action_time", "-pk")
    fields = ("action_time", "user", "did", "content_type", "object_repr", "how")

    @admin.display(description="did")
    def did(self, act: LogEntry) -> str:
        """Django's three, and reading."""
        return ACTS.get(act.action_flag, "did")

    @admin.display(description="how")
    def how(self, act: LogEntry) -> str:
        """Which fields, or which action."""
        return act.get_change_message()
