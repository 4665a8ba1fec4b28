"""Groups of SCIM: an identity provider creates groups, and says who is in them (docs/adr/0211).

Each function runs in the transaction of its request, and its acts are in the audit log.
"""

import re
from collections.abc import Iterable
from typing import Any

from django.db import IntegrityError, transaction
from scim2_models import (
    ConflictException,
    InvalidValueException,
    Meta,
    PatchOp,
    PatchOperation,
    TooManyException,
    UniquenessException,
)

from accounts import audit_log, settings
from accounts.models import Group, Membership, ScimGroup, ScimToken, ScimUser, User
from accounts.models.group import MAX_NAME_CHARS
from accounts.oauth.provider_accounts import free_logins
from accounts.provided_memberships import Giver, change_provided
from accounts.scim.resources import DirectoryGroup, DirectoryMember, check_text
from kit.clock import db_now
from kit.ids import read_row_id

_MEMBER: Any = DirectoryMember  # mypy does not know the names of its fields
UNNAMED = "group"
ONE_MEMBER = re.compile(r'members\[\s*value\s+eq\s+"([^"\\]*)"\s*\]', re.IGNORECASE)
MAX_OTHER_OPERATIONS = 50
NO_MEMBER = (
    "members: {value} is no user that this identity provider has provided; groups in groups are not supported"
)


def show_groups(rows: Iterable[ScimGroup], *, with_members: bool = True) -> list[DirectoryGroup]:
    """The resources of rows. Members are those that SCIM gave, and that are provided now."""
    rows, members = list(rows), dict[int, list[DirectoryMember]]()
    if with_members:
        given = Membership.objects.filter(group__in=[one.group_id for one in rows], by_scim=True)
        given = given.filter(user__scim_user__removed_at=None).exclude(user__scim_user=None)
        for group_id, user_id in given.order_by("pk").values_list("group_id", "user__scim_user__pk"):
            members.setdefault(group_id, []).append(_show_member(user_id))
    return [_show_group(row, members.get(row.group_id)) for row in rows]


def create_group(given: DirectoryGroup, token: ScimToken) -> ScimGroup:
    """Make a group, with these members and without a maintainer, whom the staff names.

    Raises:
        SCIMException: a value cannot be stored, or another group has the name.
    """
    row = _find_former(given) or ScimGroup(group=_make_group(_read_name(given)))
    row.removed_at = None
    _store(row, given, token, "made the group")
    return row


def change_group(row: ScimGroup, given: DirectoryGroup, token: ScimToken) -> None:
    """Write the new state of a group: its name and its members.

    Raises:
        SCIMException: as for `create_group`.
        accounts.groups.LastMaintainer: a member to remove is the only maintainer.
        accounts.quotas.QuotaExceeded: the group would have more members than one may.
    """
    _store(row, given, token, "changed the group")


def delete_group(row: ScimGroup, token: ScimToken) -> None:
    """End what SCIM gave to members, and forget the group. The group itself stays, with what it owns.

    Raises:
        accounts.groups.LastMaintainer: a member to remove is the only maintainer.
    """
    given = Membership.objects.filter(group=row.group, by_scim=True).select_related("user").order_by("pk")
    change_provided(row.group, Giver.SCIM, removed=[one.user for one in given], by=token.account)
    row.removed_at = db_now()
    row.save()
    _record(row, token, "deleted: ended the memberships that it gave")


def apply_patch(resource: DirectoryGroup, patch: "PatchOp[DirectoryGroup]") -> None:
    """Apply a patch to a resource. Members that are added and removed one by one, as identity providers do it, are
    kept by their ids: the library compares each with all others, which takes long in large groups.

    Raises:
        SCIMException: an operation cannot be applied.
    """
    members = {str(one.value): one for one in resource.members or []}
    others = 0
    for operation in patch.operations or []:
        if _is_of_members(operation, members):
            continue
        others += 1
        if others > MAX_OTHER_OPERATIONS:
            raise TooManyException(detail=f"more than {MAX_OTHER_OPERATIONS} operations besides those of members")
        resource.members = list(members.values()) or None
        PatchOp[DirectoryGroup].model_construct(operations=[operation]).patch(resource)
        members = {str(one.value): one for one in resource.members or []}
    resource.members = list(members.values()) or None


def _is_of_members(operation: "PatchOperation[DirectoryGroup]", members: dict[str, DirectoryMember]) -> bool:
    """Apply an operation that adds or removes members by their ids; False: another kind of operation."""
    path, values = str(operation.path or ""), operation.value
    if operation.op == PatchOperation.Op.remove and (one := ONE_MEMBER.fullmatch(path)) and values is None:
        members.pop(one[1], None)
        return True
    values = [values] if isinstance(values, dict) else values
    if path.lower() != "members" or operation.op == PatchOperation.Op.replace_ or not isinstance(values, list):
        return False
    for value in values:
        key = value.get("value") if isinstance(value, dict) else None
        if not isinstance(key, str):
            raise InvalidValueException(detail="members: want objects with a value, the id of a user")
        if operation.op == PatchOperation.Op.remove:
            members.pop(key, None)
        else:
            members[key] = members.get(key) or _MEMBER(value=key)
    return True


def _store(row: ScimGroup, given: DirectoryGroup, token: ScimToken, what: str) -> None:
    row.display_name = _read_name(given)
    row.external_id = check_text("externalId", given.external_id, needed=False)
    row.changed_at = db_now()
    name = row.display_name[:MAX_NAME_CHARS]
    if row.group.name != name:
        row.group.name = name
        row.group.save(update_fields=["name"])
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:
        raise UniquenessException(detail=f"another group has the displayName {row.display_name}") from None
    _record(row, token, what)
    _set_members(row, given.members or [], token)


def _set_members(row: ScimGroup, members: Iterable[DirectoryMember], token: ScimToken) -> None:
    wanted = _find_users(members)
    given = Membership.objects.filter(group=row.group, by_scim=True).select_related("user")
    held = {one.user_id: one.user for one in given}
    added = [user for key, user in wanted.items() if key not in held]
    removed = [user for key, user in held.items() if key not in wanted]
    if added or removed:
        change_provided(row.group, Giver.SCIM, added=added, removed=removed, by=token.account)


def _find_users(members: Iterable[DirectoryMember]) -> dict[int, User]:
    """The accounts of members, by their keys.

    Raises:
        InvalidValueException: a value is no provided user.
    """
    values = list(dict.fromkeys(str(one.value) for one in members))
    keys = [key for one in values if (key := read_row_id(one)) is not None]
    rows = ScimUser.objects.provided().filter(pk__in=keys).select_related("user")
    found = {str(row.pk): row.user for row in rows}
    if missing := [one for one in values if one not in found]:
        raise InvalidValueException(detail=NO_MEMBER.format(value=missing[0][:100]))
    return {user.pk: user for user in found.values()}


def _show_member(user_id: int) -> DirectoryMember:
    reference = f"{settings.PUBLIC_URL}/scim/v2/Users/{user_id}"
    return DirectoryMember.model_validate({"value": str(user_id), "$ref": reference, "type": "User"})


def _show_group(row: ScimGroup, members: list[DirectoryMember] | None) -> DirectoryGroup:
    location = f"{settings.PUBLIC_URL}/scim/v2/Groups/{row.pk}"
    meta = Meta(resource_type="Group", created=row.created_at, last_modified=row.changed_at, location=location)
    return DirectoryGroup(
        id=str(row.pk),
        external_id=row.external_id or None,
        display_name=row.display_name,
        members=members,
        meta=meta,
    )


def _find_former(given: DirectoryGroup) -> ScimGroup | None:
    """The group that the provider deleted, and creates again: by its key, or by its name if it has none."""
    former = ScimGroup.objects.exclude(removed_at=None).filter(group__account__closed_at=None)
    former = former.filter(external_id=given.external_id or "")
    if not given.external_id:
        former = former.filter(display_name__iexact=given.display_name or "")
    return former.select_related("group__account").order_by("-removed_at").first()


def _make_group(name: str) -> Group:
    for slug in free_logins(name, UNNAMED):
        try:
            with transaction.atomic():
                account = User.objects.create(login=slug.lower(), is_group=True)
                return Group.objects.create(account=account, name=name[:MAX_NAME_CHARS])
        except IntegrityError:  # another request took the login
            continue
    raise ConflictException(detail="no short name is free for this group: try again")


def _read_name(given: DirectoryGroup) -> str:
    return check_text("displayName", (given.display_name or "").strip())


def _record(row: ScimGroup, token: ScimToken, what: str) -> None:
    audit_log.record_act(
        token.account, Group, audit_log.name_rows([row.group]), f"SCIM {what} (@{row.group.slug})"
    )
