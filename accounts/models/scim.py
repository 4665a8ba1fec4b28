"""The token of the identity provider for SCIM, and the users and groups that it provides (docs/adr/0210)."""

from typing import Any, Self

from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower
from django.utils import timezone

from accounts.models.group import Group
from accounts.models.user import User

MAX_SCIM_CHARS = 255


class ScimToken(models.Model):
    """The Bearer token of the identity provider. The row has only the hash; at most one row is live.

    `account`: the service user under which the audit log records what the provider did.
    """

    digest = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the token, in hex.")
    prefix = models.CharField(max_length=16, help_text="The first characters, to recognise it by.")
    issuer = models.CharField(
        max_length=255,
        blank=True,
        help_text="The OpenID Connect provider at which these users sign in; empty: the only one of the hub.",
    )
    account = models.ForeignKey(User, models.CASCADE, related_name="+")
    made_by = models.ForeignKey(
        User,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="The member of the staff; empty: made on the hub's machine.",
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "SCIM token"

    def __str__(self) -> str:
        return f"{self.prefix}…"


class ScimQuerySet(models.QuerySet[Any]):
    def provided(self) -> Self:
        """The resources that the identity provider has not deleted."""
        return self.filter(removed_at=None)


class ScimRow(models.Model):
    """The columns of each resource of SCIM. `removed_at`: the provider has deleted it; the account stays."""

    external_id = models.CharField(
        max_length=MAX_SCIM_CHARS, blank=True, default="", help_text="The key of the identity provider."
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    changed_at = models.DateTimeField(default=timezone.now, editable=False)
    removed_at = models.DateTimeField(null=True, blank=True, help_text="When the identity provider deleted it.")

    objects = ScimQuerySet.as_manager()

    class Meta:
        abstract = True


class ScimUser(ScimRow):
    """The resource of SCIM that provides the account of a person. Its key is the `id` of the resource.

    `is_active`: as the provider said last; the account itself may be suspended by the staff besides.
    """

    user = models.OneToOneField(User, models.CASCADE, related_name="scim_user")
    user_name = models.CharField(max_length=MAX_SCIM_CHARS)
    is_active = models.BooleanField(default=True)
    profile: Any = models.JSONField(default=dict, help_text="Name, display name and mail addresses, as in SCIM.")

    class Meta:
        verbose_name = "SCIM user"
        constraints = [
            models.UniqueConstraint(
                Lower("user_name"), condition=Q(removed_at=None), name="one_scim_user_per_name_in_any_case"
            )
        ]
        indexes = [models.Index(fields=["external_id"], name="scim_user_external_id")]

    def __str__(self) -> str:
        return self.user_name


class ScimGroup(ScimRow):
    """The resource of SCIM that provides members to a group. Its key is the `id` of the resource."""

    group = models.OneToOneField(Group, models.CASCADE, related_name="scim_group")
    display_name = models.CharField(max_length=MAX_SCIM_CHARS)

    class Meta:
        verbose_name = "SCIM group"
        constraints = [
            models.UniqueConstraint(
                Lower("display_name"), condition=Q(removed_at=None), name="one_scim_group_per_name_in_any_case"
            )
        ]
        indexes = [models.Index(fields=["external_id"], name="scim_group_external_id")]

    def __str__(self) -> str:
        return self.display_name
