"""Links by which signed-in users join a group: each link is for one user, once, within a week."""

from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.urls import reverse

from accounts import settings
from accounts.authn import digest
from accounts.errors import SignInRefused
from accounts.groups import NoMaintainer, join, lock_maintained, record_group_act
from accounts.limits import GROUP_INVITATIONS
from accounts.models import Group, GroupInvitation, Membership, User
from kit.clock import db_now
from kit.ids import unguessable

LIFETIME = timedelta(days=7)
GONE = "This link is not good: it was used or revoked, it is over 7 days old, or never was. Ask for a new one."


class NoGroupInvitation(SignInRefused):
    """No open invitation has the link. The text does not tell if the link was good before."""

    status = 404
    code = "invalid_invitation"

    def __init__(self) -> None:
        super().__init__(GONE)


@dataclass(frozen=True, slots=True)
class InvitedToGroup:
    """A new invitation and its link, which is not stored."""

    invitation: GroupInvitation
    url: str


@transaction.atomic
def invite_to_group(group: Group, role: str, *, by: User) -> InvitedToGroup:
    """Make a link by which one user joins the group in a role.

    Raises:
        accounts.groups.NoMaintainer: the user does not maintain the group any more.
        accounts.quotas.QuotaExceeded: the group has as many open links as one may.
    """
    lock_maintained(group, by)
    GROUP_INVITATIONS.check(group.pk)
    token = unguessable()
    invitation = GroupInvitation.objects.create(
        digest=digest(token),
        group=group,
        role=Membership.Role(role),
        made_by=by,
        expires_at=db_now() + LIFETIME,
    )
    record_group_act(by, group, f"made a link to join as {role}")
    return InvitedToGroup(invitation, f"{settings.PUBLIC_ORIGIN}{reverse('group-join', args=[token])}")


def find_group_invitation(token: str) -> GroupInvitation:
    """The open invitation of a link whose maker still maintains the group.

    Raises:
        NoGroupInvitation: no open invitation has the link.
    """
    return _checked(GroupInvitation.objects.open().filter(digest=digest(token)))


@transaction.atomic
def join_group(token: str, user: User) -> Membership:
    """Use a link: the user joins; a member keeps the role that the member has, and has agreed to be in the group.

    Raises:
        NoGroupInvitation, accounts.groups.GroupRefused, accounts.quotas.QuotaExceeded: nothing was written.
    """
    locked = GroupInvitation.objects.open().select_for_update(of=("self",))
    invitation = _checked(locked.filter(digest=digest(token)))
    GroupInvitation.objects.filter(pk=invitation.pk).update(used_at=db_now(), used_by=user)
    try:
        return join(invitation.group, user, invitation.role, invited_by=invitation.made_by)
    except NoMaintainer:  # removed since the look at the link
        raise NoGroupInvitation from None


def revoke_group_invitation(group: Group, invitation_id: int, *, by: User) -> bool:
    """Revoke an open link of the group; False if the group has no such open link."""
    revoked = GroupInvitation.objects.open().filter(group=group, pk=invitation_id).update(expires_at=db_now())
    if revoked:
        record_group_act(by, group, "revoked a link to join")
    return bool(revoked)


def _checked(rows: QuerySet[GroupInvitation]) -> GroupInvitation:
    invitation = rows.select_related("group__account", "made_by").first()
    if invitation is None:
        raise NoGroupInvitation
    maintaining = Membership.objects.maintaining().filter(group=invitation.group, user=invitation.made_by)
    if not maintaining.filter(user__is_active=True).exists():
        raise NoGroupInvitation
    return invitation
