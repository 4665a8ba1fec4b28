"""Links accounts and groups that exist to SCIM, so that the identity provider finds and governs them."""

from django.db import IntegrityError, transaction

from accounts import audit_log
from accounts.groups import BadGroup
from accounts.models import Group, ScimGroup, ScimUser, User
from accounts.models.scim import MAX_SCIM_CHARS


@transaction.atomic
def link_scim_user(user: User, user_name: str, *, by: User) -> ScimUser:
    """Let the identity provider govern the account of a person, under this `userName`.

    Raises:
        BadGroup: the account is no person's, is linked already, or another user has the name.
    """
    if user.is_group or user.is_service or user.closed_at is not None:
        raise BadGroup(f"@{user.login} is no account of a person")
    user_name = _check_name(user_name)
    try:
        with transaction.atomic():
            ScimUser.objects.filter(user=user).exclude(removed_at=None).delete()
            row = ScimUser.objects.create(user=user, user_name=user_name, is_active=user.is_active)
    except IntegrityError:
        raise BadGroup("the account is linked already, or another user of SCIM has this name") from None
    audit_log.record_act(by, User, [(str(user.pk), user.login)], f"linked it to SCIM as {user_name}")
    return row


@transaction.atomic
def link_scim_group(group: Group, display_name: str, *, by: User) -> ScimGroup:
    """Let the identity provider add members to a group, and remove those that it added, under this `displayName`.

    Raises:
        BadGroup: the group is linked already, or another group has the name.
    """
    display_name = _check_name(display_name)
    try:
        with transaction.atomic():
            ScimGroup.objects.filter(group=group).exclude(removed_at=None).delete()
            row = ScimGroup.objects.create(group=group, display_name=display_name)
    except IntegrityError:
        raise BadGroup("the group is linked already, or another group of SCIM has this name") from None
    audit_log.record_act(by, Group, audit_log.name_rows([group]), f"linked it to SCIM as {display_name}")
    return row


def _check_name(name: str) -> str:
    name = name.strip()
    if not 0 < len(name) <= MAX_SCIM_CHARS or not name.isprintable():
        raise BadGroup(f"name: give 1 to {MAX_SCIM_CHARS} printable characters")
    return name
