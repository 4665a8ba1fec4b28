"""Memberships that an identity provider gives: over SCIM, or by a claim at sign-in (docs/adr/0211).

A membership may be given by several: by hand, over SCIM, by a claim. Each giver takes back only what it gave, and
the membership ends when no giver is left.
"""

import logging
from collections.abc import Collection, Iterable
from enum import StrEnum
from functools import reduce
from operator import or_

from django.db import transaction
from django.db.models import Q

from accounts.errors import SignInRefused
from accounts.groups import record_group_act, remove_member
from accounts.limits import GROUP_MEMBERS
from accounts.models import Group, Membership, User
from accounts.quotas import lock_owner

logger = logging.getLogger(__name__)

CLAIMED_GROUPS_READ = 500
LOGINS_NAMED = 20


class Giver(StrEnum):
    """What gives a membership: the column that says so."""

    SCIM = "by_scim"
    CLAIM = "by_claim"


@transaction.atomic
def change_provided(
    group: Group, giver: Giver, *, added: Collection[User] = (), removed: Collection[User] = (), by: User | None
) -> None:
    """Give users the membership of a group, as members, and take it from others; roles of members stay.

    Raises:
        LastMaintainer: one to remove is the only maintainer; nothing was changed.
        accounts.quotas.QuotaExceeded: the group would have more members than one may; nothing was changed.
    """
    lock_owner(group.pk)
    users = [one.pk for one in (*added, *removed)]
    held = {one.user_id: one for one in Membership.objects.filter(group=group, user__in=users)}
    new = [user for user in added if user.pk not in held]
    if new:
        GROUP_MEMBERS.check(group.pk, len(new))
        Membership.objects.bulk_create(
            Membership(group=group, user=user, added_by=by, by_hand=False, **{giver: True}) for user in new
        )
        record_group_act(by, group, f"added {_name(new)} as member")
    more = [held[user.pk].pk for user in added if user.pk in held and not getattr(held[user.pk], giver)]
    Membership.objects.filter(pk__in=more).update(**{giver: True})
    _take_back(group, giver, [user for user in removed if user.pk in held and getattr(held[user.pk], giver)], by)


def _take_back(group: Group, giver: Giver, users: Collection[User], by: User | None) -> None:
    """End what the giver gave to these members. Only a maintainer may have tokens of the group, which end, too."""
    given = Membership.objects.filter(group=group, user__in=[user.pk for user in users])
    still = reduce(or_, [Q(**{one: True}) for one in ("by_hand", *Giver) if one != giver])
    given.filter(still).update(**{giver: False})
    ended = dict(given.exclude(still).values_list("user_id", "role"))
    maintainers = [user for user in users if ended.get(user.pk) == Membership.Role.MAINTAINER]
    others = [user for user in users if user.pk in ended and user not in maintainers]
    for user in maintainers:
        remove_member(group, user, by=by)
    if others:
        given.filter(user__in=others).delete()
        record_group_act(by, group, f"removed {_name(others)}")


def follow_claim(user: User, values: Iterable[str]) -> None:
    """Make the user a member of the groups that the values of the claim name, and end what the claim gave before.

    A value means the group whose `claim_value` it is; other values mean nothing here. The last maintainer of a
    group stays.
    """
    named = list(dict.fromkeys(values))[:CLAIMED_GROUPS_READ]
    active = Group.objects.filter(account__is_active=True, account__closed_at=None).select_related("account")
    wanted = {one.pk: one for one in active.filter(claim_value__in=[one for one in named if one])}
    given = Membership.objects.filter(user=user, by_claim=True).select_related("group__account")
    held = {one.group_id: one.group for one in given}
    for key in sorted(wanted.keys() ^ held.keys()):
        group = wanted.get(key) or held[key]
        changed = {"added": [user]} if key in wanted else {"removed": [user]}
        try:
            change_provided(group, Giver.CLAIM, by=user, **changed)
        except SignInRefused as refused:  # the last maintainer stays, or the group is full
            logger.warning("claim.refused", extra={"group": group.slug, "why": str(refused)})


def _name(users: Collection[User]) -> str:
    """The logins of users, for the audit log; of many, the first."""
    named = ", ".join(f"@{one.login}" for one in list(users)[:LOGINS_NAMED])
    more = len(users) - LOGINS_NAMED
    return f"{named} and {more} more" if more > 0 else named
