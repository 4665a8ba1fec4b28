"""Credentials, registered clients and sign-in methods for their owners, invitations and the log for the staff.

Users: `hub.admin`.
"""

from django.contrib import admin, messages
from django.contrib.admin.models import LogEntry
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, StreamingHttpResponse
from django.urls import URLPattern, path

from accounts.act_export import FORMS, export_acts
from accounts.admin_site import OwnerScopedAdmin, make_filter, make_live_filter, site
from accounts.audit_log import ACT_NAMES, OTHER_ACT
from accounts.group_admin import GroupAdmin, GroupInvitationAdmin, MembershipAdmin
from accounts.models import (
    ClientGrant,
    Credential,
    Group,
    GroupInvitation,
    Invitation,
    Membership,
    Passkey,
    ProviderIdentity,
    User,
)
from accounts.scim_admin import TABLES as SCIM_TABLES

LiveFilter = make_live_filter(Q(pk__in=Credential.objects.live().values("pk")))
LiveGrantFilter = make_live_filter(Q(pk__in=ClientGrant.objects.live().values("pk")))
StaffFilter = make_filter(
    "user", "staff", {"yes": ("Staff", Q(user__is_staff=True)), "no": ("Other users", Q(user__is_staff=False))}
)


@admin.register(Credential, site=site)
class CredentialAdmin(OwnerScopedAdmin):
    """The tokens of users, to be recognised and revoked; shows neither the text nor the hash of a token."""

    owner_lookup = "user"
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
    list_filter = (LiveFilter, "kind")
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
        "is_jwt",
        "user_agent",
        "created_at",
        "last_used_at",
        "expires_at",
        "revoked_at",
    )

    @admin.display(description="begins with", ordering="prefix")
    def shown_prefix(self, credential: Credential) -> str:
        """The first characters of the token and an ellipsis, or the number of a JWT."""
        return credential.shown_prefix

    @admin.display(description="good", boolean=True)
    def is_usable(self, credential: Credential) -> bool:
        """True if the token is neither revoked nor expired."""
        return credential.is_live

    @admin.action(description="Revoke the chosen credentials")
    def revoke(self, request: HttpRequest, queryset: QuerySet[Credential]) -> None:
        """Revoke the chosen tokens from the next request on; sockets that use them close within seconds."""
        count = Credential.objects.filter(pk__in=queryset.values("pk")).revoke()
        self.message_user(request, f"{count} revoked.", messages.SUCCESS)


@admin.register(ClientGrant, site=site)
class ClientGrantAdmin(OwnerScopedAdmin):
    """The clients that refresh their tokens, to be recognised and signed out; shows no token and no hash."""

    owner_lookup = "user"
    list_display = ("app_name", "user", "scopes", "created_at", "refreshed_at", "expires_at", "is_usable")
    list_filter = (LiveGrantFilter,)
    list_select_related = ("user",)
    search_fields = ("app_name",)
    ordering = ("-created_at",)
    actions = ("revoke",)
    fields = (
        "app_name",
        "user",
        "scopes",
        "user_agent",
        "created_at",
        "refreshed_at",
        "expires_at",
        "revoked_at",
        "reused_at",
    )

    @admin.display(description="good", boolean=True)
    def is_usable(self, grant: ClientGrant) -> bool:
        """True if the grant has neither ended nor expired."""
        return grant.is_live

    @admin.action(description="Sign out the chosen clients")
    def revoke(self, request: HttpRequest, queryset: QuerySet[ClientGrant]) -> None:
        """Revoke the tokens of the chosen clients; sockets that use them close within seconds."""
        count = ClientGrant.objects.filter(pk__in=queryset.values("pk")).revoke()
        self.message_user(request, f"{count} signed out.", messages.SUCCESS)


@admin.register(ProviderIdentity, site=site)
class ProviderIdentityAdmin(OwnerScopedAdmin):
    """The accounts at identity providers with which users sign in."""

    owner_lookup = "user"
    list_display = ("user", "issuer", "subject", "created_at", "last_used_at")
    list_display_links = ("subject",)
    list_select_related = ("user",)
    search_fields = ("issuer", "subject")
    ordering = ("-created_at",)
    fields = ("user", "issuer", "subject", "created_at", "last_used_at")


@admin.register(Passkey, site=site)
class PasskeyAdmin(OwnerScopedAdmin):
    """The passkeys of users; their owners can delete them."""

    owner_lookup = "user"
    writes = ("delete",)
    list_display = ("name", "user", "created_at", "last_used_at", "sign_count")
    list_select_related = ("user",)
    ordering = ("-created_at",)
    fields = ("name", "user", "created_at", "last_used_at", "sign_count")


site.register(Group, GroupAdmin)
site.register(Membership, MembershipAdmin)
site.register(GroupInvitation, GroupInvitationAdmin)
for table, shown in SCIM_TABLES.items():
    site.register(table, shown)


@admin.register(Invitation, site=site)
class InvitationAdmin(OwnerScopedAdmin):
    """Invitations with their inviter and invitee; shows neither the link nor its hash."""

    list_display = ("login", "is_admin", "made_by", "user", "created_at", "expires_at", "used_at")
    list_select_related = ("made_by", "user")
    search_fields = ("login",)
    ordering = ("-created_at",)
    fields = ("login", "is_admin", "made_by", "user", "created_at", "expires_at", "used_at")


@admin.register(LogEntry, site=site)
class ActAdmin(OwnerScopedAdmin):
    """The audit log: the acts of users in the admin, and the questions that the staff looked at. Rows are only
    read, and downloaded as the list is filtered.
    """

    change_list_template = "admin/acts.html"

    list_display = ("action_time", "user", "did", "content_type", "object_repr", "how")
    list_display_links = None
    list_filter = (("content_type", admin.RelatedOnlyFieldListFilter), StaffFilter, "action_time")
    list_select_related = ("user", "content_type")
    search_fields = ("user__login", "object_repr")
    search_help_text = "In who, and to what"
    ordering = ("-action_time", "-pk")
    fields = ("action_time", "user", "did", "content_type", "object_repr", "how")

    def get_urls(self) -> list[URLPattern]:
        """Django's addresses, after the one of the export: theirs take every name for a row's key."""
        view = self.admin_site.admin_view(self.export)
        return [path("export/<str:form>", view, name="admin_logentry_export"), *super().get_urls()]

    def export(self, request: HttpRequest, form: str) -> StreamingHttpResponse:
        """The acts of the filtered list as a file.

        Raises:
            PermissionDenied: the user is not of the staff.
            TooManyAtOnce: too many downloads are under way.
            SuspiciousOperation: the address names a filter that the list has not.
        """
        if not self.has_view_permission(request) or not isinstance(request.user, User):
            raise PermissionDenied
        if form not in FORMS:
            raise Http404
        try:
            chosen = self.get_changelist_instance(request).get_queryset(request)
        except IncorrectLookupParameters:
            raise SuspiciousOperation("a filter that the log has not") from None
        acts = LogEntry.objects.filter(pk__in=chosen.order_by().values("pk"))
        return export_acts(request, acts, form, request.user)

    @admin.display(description="did")
    def did(self, act: LogEntry) -> str:
        """The kind of the act: one of Django's three, or reading."""
        return ACT_NAMES.get(act.action_flag, OTHER_ACT)

    @admin.display(description="how")
    def how(self, act: LogEntry) -> str:
        """The fields that changed, or the action."""
        return act.get_change_message()
