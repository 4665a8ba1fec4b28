"""Groups of users, and the roles of their members (docs/adr/0190)."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from accounts.models.user import User

MAX_NAME_CHARS = 100


class GroupQuerySet(models.QuerySet["Group"]):
    def of(self, user: User) -> "GroupQuerySet":
        """The groups in which the user has any role."""
        return self.filter(pk__in=Membership.objects.filter(user=user).values("group"))


class Group(models.Model):
    """A group of users. What the group owns is owned by its account, whose login is the name of the group.

    The key of the row is the account's key, so that a column that names a user may name a group.
    """

    account = models.OneToOneField(User, models.CASCADE, primary_key=True, related_name="group")
    name = models.CharField(max_length=MAX_NAME_CHARS, help_text="For people: Data platform.")
    claim_value = models.CharField(
        max_length=255,
        blank=True,
        default="",
        db_default="",
        help_text="The value of OIDC_GROUPS_CLAIM that makes a user a member at sign-in; empty: none does.",
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects: ClassVar[GroupQuerySet] = GroupQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["claim_value"], condition=~Q(claim_value=""), name="one_group_per_claim_value"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def slug(self) -> str:
        """The login of the group's account."""
        return self.account.login


class MembershipQuerySet(models.QuerySet["Membership"]):
    def asking(self) -> "MembershipQuerySet":
        """The memberships that give access to what a group may ask: not those of auditors."""
        return self.exclude(role=Membership.Role.AUDITOR).filter(group__account__is_active=True)

    def maintaining(self) -> "MembershipQuerySet":
        """The memberships of maintainers, who act for the group."""
        return self.filter(role=Membership.Role.MAINTAINER, group__account__is_active=True)

    def auditing(self) -> "MembershipQuerySet":
        """The memberships of maintainers and auditors, who read the audit of what the group owns."""
        roles = (Membership.Role.MAINTAINER, Membership.Role.AUDITOR)
        return self.filter(role__in=roles, group__account__is_active=True)


class Membership(models.Model):
    """The role of a user in a group. The membership ends when nothing gives it any more."""

    class Role(models.TextChoices):
        MEMBER = "member", "member: asks what the group may ask"
        MAINTAINER = "maintainer", "maintainer: acts for the group"
        AUDITOR = "auditor", "auditor: reads the audit of what the group owns"

    group = models.ForeignKey(Group, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role, default=Role.MEMBER)
    added_by = models.ForeignKey(User, models.SET_NULL, null=True, blank=True, related_name="+")
    by_hand = models.BooleanField(default=True, db_default=True, help_text="Given by a maintainer or the staff.")
    by_scim = models.BooleanField(default=False, db_default=False, help_text="Given by the identity provider.")
    by_claim = models.BooleanField(default=False, db_default=False, help_text="Given by a claim at sign-in.")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects: ClassVar[MembershipQuerySet] = MembershipQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["group", "user"], name="one_membership_per_group_and_user"),
            models.CheckConstraint(condition=~Q(group=models.F("user")), name="a_group_is_not_its_own_member"),
        ]

    def __str__(self) -> str:
        return f"membership {self.pk}"


class GroupInvitationQuerySet(models.QuerySet["GroupInvitation"]):
    def open(self) -> "GroupInvitationQuerySet":
        """The invitations that are neither used, revoked nor expired."""
        return self.filter(used_at=None, expires_at__gt=Now())


class GroupInvitation(models.Model):
    """A link by which one user joins a group in a role. The row has only the hash of the link's token."""

    digest = models.CharField(max_length=64, unique=True)
    group = models.ForeignKey(Group, models.CASCADE, related_name="invitations")
    role = models.CharField(max_length=10, choices=Membership.Role, default=Membership.Role.MEMBER)
    made_by = models.ForeignKey(User, models.CASCADE, related_name="+")
    used_by = models.ForeignKey(User, models.SET_NULL, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(db_index=True)
    used_at = models.DateTimeField(null=True, blank=True)

    objects: ClassVar[GroupInvitationQuerySet] = GroupInvitationQuerySet.as_manager()  # type: ignore[assignment]

    def __str__(self) -> str:
        return f"group invitation {self.pk}"
