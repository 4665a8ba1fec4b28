"""Creates groups, and adds, changes and removes their members (docs/adr/0190). Pages, REST and commands call it.

Each function locks the account of the group first, so that changes of one group run one after another.
"""

from collections.abc import Callable

from django.db import IntegrityError, transaction

from accounts import audit_log
from accounts.errors import SignInRefused
from accounts.limits import GROUP_MEMBERS, GROUPS_MAINTAINED
from accounts.models import Credential, Group, Membership, User
from accounts.models.group import MAX_NAME_CHARS
from accounts.quotas import lock_owner
from accounts.tokens import BAD_LOGIN, LOGIN, Minted

Role = Membership.Role
MAX_CLAIM_CHARS = 255


class GroupRefused(SignInRefused):
    """A change of a group is refused, and nothing was written; the text is for people."""

    status = 409
    code = "conflict"


class BadGroup(GroupRefused):
    """The name or the slug of a group cannot be taken."""

    status = 400
    code = "validation_failed"


class LastMaintainer(GroupRefused):
    """The group would have no maintainer."""

    def __init__(self, slug: str) -> None:
        super().__init__(f"@{slug} would have no maintainer: make another member a maintainer first")


class NotAMember(GroupRefused):
    """The user has no role in the group."""

    status = 404
    code = "not_found"

    def __init__(self, login: str, slug: str) -> None:
        super().__init__(f"@{login} is not in @{slug}")


class NoMaintainer(GroupRefused):
    """The user who changes the group does not maintain the group any more."""

    status = 404
    code = "not_found"

    def __init__(self, slug: str) -> None:
        super().__init__(f"you do not maintain @{slug}")


class NotAgreed(GroupRefused):
    """The user would become a maintainer, who has duties, without having joined by a link."""

    def __init__(self, login: str) -> None:
        super().__init__(f"@{login} has not agreed: a maintainer must have joined by a link, so make one for them")


@transaction.atomic
def create_group(slug: str, name: str, *, made_by: User) -> Group:
    """Create a group whose first maintainer is the user who makes it.

    Raises:
        BadGroup: the slug or the name cannot be one, or an account has the slug as its login.
        accounts.quotas.QuotaExceeded: the user maintains as many groups as one may.
    """
    name = _check_name(name)
    if not LOGIN.match(slug):
        raise BadGroup(f"slug: {BAD_LOGIN}")
    _check_person(made_by)
    GROUPS_MAINTAINED.check(made_by.pk)
    try:
        with transaction.atomic():
            account = User.objects.create(login=slug.lower(), is_group=True)
    except IntegrityError:
        raise BadGroup(f"slug: @{slug.lower()} is taken") from None
    group = Group.objects.create(account=account, name=name)
    Membership.objects.create(group=group, user=made_by, role=Role.MAINTAINER, added_by=made_by)
    record_group_act(made_by, group, f"created the group @{account.login}")
    return group


@transaction.atomic
def rename_group(group: Group, name: str, *, by: User) -> None:
    """Change the name that people see; the slug stays.

    Raises:
        BadGroup: the name cannot be one.
    """
    group.name = _check_name(name)
    group.save(update_fields=["name"])
    record_group_act(by, group, "renamed the group")


@transaction.atomic
def set_claim_value(group: Group, value: str, *, by: User | None) -> None:
    """Set the value of the claim at sign-in that makes users members; empty: none does (docs/adr/0211).

    Raises:
        BadGroup: another group has the value, or it is no text that a claim can have.
    """
    if len(value) > MAX_CLAIM_CHARS or not value.isprintable():
        raise BadGroup(f"claim: give at most {MAX_CLAIM_CHARS} printable characters")
    if value and Group.objects.filter(claim_value=value).exclude(pk=group.pk).exists():
        raise BadGroup(f"claim: another group has the value {value}")
    group.claim_value = value
    group.save(update_fields=["claim_value"])
    record_group_act(by, group, f"set the value of the claim that makes members: {value or 'none'}")


@transaction.atomic
def add_member(group: Group, user: User, role: str = Role.MEMBER, *, by: User | None) -> Membership:
    """Give a user a role in the group; for a member the role changes. `by` None: by the hub itself.

    Raises:
        BadGroup: the account is a group or a program, or is suspended.
        LastMaintainer: the only maintainer would get another role.
        NoMaintainer: `by` is neither a maintainer now nor of the staff.
        NotAgreed: a maintainer makes a maintainer of a user who has not joined by a link.
        accounts.quotas.QuotaExceeded: the group has as many members, or the user maintains as many groups, as one
        may.
    """
    _check_person(user)
    if by is None or by.is_staff:
        lock_owner(group.pk)
    else:
        lock_maintained(group, by)
    found = Membership.objects.filter(group=group, user=user).first()
    if found is not None:
        Membership.objects.filter(pk=found.pk, by_hand=False).update(by_hand=True)
        return _change_role(found, Role(role), by)
    GROUP_MEMBERS.check(group.pk)
    if role == Role.MAINTAINER:
        _check_new_maintainer(user, by, agreed=False)
    added = Membership.objects.create(group=group, user=user, role=Role(role), added_by=by)
    record_group_act(by, group, f"added @{user.login} as {role}")
    return added


@transaction.atomic
def join(group: Group, user: User, role: str, *, invited_by: User) -> Membership:
    """Make a user a member on the user's own wish; a member keeps the role, and has agreed from now on.

    A member has agreed if `added_by` is the member.

    Raises:
        NoMaintainer: the user who invited does not maintain the group any more.
        BadGroup, accounts.quotas.QuotaExceeded: see `add_member`.
    """
    _check_person(user)
    lock_maintained(group, invited_by)
    held = Membership.objects.filter(group=group, user=user).select_related("group__account").first()
    if held is not None:
        Membership.objects.filter(pk=held.pk).update(added_by=user)
        return held
    GROUP_MEMBERS.check(group.pk)
    if role == Role.MAINTAINER:
        _check_new_maintainer(user, invited_by, agreed=True)
    joined = Membership.objects.create(group=group, user=user, role=Role(role), added_by=user)
    record_group_act(invited_by, group, f"added @{user.login} as {role}")
    return joined


@transaction.atomic
def mint_for_group(group: Group, by: User, mint: Callable[[User], Minted]) -> Minted:
    """Make a token of the group, which ends when its maker is no maintainer any more.

    Raises:
        NoMaintainer: the maker does not maintain the group any more; nothing was made.
        The errors of `mint`.
    """
    lock_maintained(group, by)
    group.account.acted_by = by
    minted = mint(group.account)
    record_group_act(by, group, f"made the token {minted.credential.shown_prefix}")
    return minted


def lock_maintained(group: Group, user: User) -> None:
    """Lock the account of the group, and check that the user maintains the group: a removal may have been first.

    Raises:
        NoMaintainer: the user does not.
    """
    lock_owner(group.pk)
    if not Membership.objects.maintaining().filter(group=group, user=user).exists():
        raise NoMaintainer(group.slug)


@transaction.atomic
def change_role(group: Group, user: User, role: str, *, by: User | None) -> Membership:
    """Change the role of a member. Tokens of the group that a former maintainer made end.

    Raises:
        NotAMember: the user has no role in the group.
        LastMaintainer: the only maintainer would get another role.
        NotAgreed, accounts.quotas.QuotaExceeded: see `add_member`.
    """
    return _change_role(_locked_membership(group, user), Role(role), by)


@transaction.atomic
def remove_member(group: Group, user: User, *, by: User | None) -> None:
    """Take a user out of the group. Tokens of the group that the user made end.

    Raises:
        NotAMember: the user has no role in the group.
        LastMaintainer: the user is the only maintainer.
    """
    membership = _locked_membership(group, user)
    if membership.role == Role.MAINTAINER:
        _check_other_maintainer(membership)
    membership.delete()
    end_acts_of(group, user)
    record_group_act(by, group, f"removed @{user.login}, {membership.role} before")


def is_last_maintainer(membership: Membership) -> bool:
    """True if the group would have no maintainer without this membership."""
    others = Membership.objects.filter(group=membership.group_id, role=Role.MAINTAINER).exclude(pk=membership.pk)
    return membership.role == Role.MAINTAINER and not others.filter(user__closed_at=None).exists()


def end_acts_of(group: Group, user: User) -> None:
    """Revoke the tokens of the group that the user made, and end the user's acting for it in browsers."""
    Credential.objects.filter(user=group.account_id, minted_by=user).revoke()
    Credential.objects.filter(user=user, acts_for=group.account_id).update(acts_for=None)


def last_maintained(user: User) -> list[Group]:
    """The groups of which the user is the only maintainer. Their accounts stay locked."""
    own = Membership.objects.filter(user=user, role=Role.MAINTAINER).values_list("group_id", flat=True)
    list(User.objects.select_for_update(no_key=True).filter(pk__in=list(own)).order_by("pk").values_list("pk"))
    others = Membership.objects.filter(role=Role.MAINTAINER, user__closed_at=None).exclude(user=user)
    kept = Membership.objects.filter(user=user, role=Role.MAINTAINER).exclude(group__in=others.values("group"))
    return list(Group.objects.filter(pk__in=kept.values("group")).select_related("account").order_by("pk"))


def _change_role(membership: Membership, role: Role, by: User | None) -> Membership:
    if membership.role == role:
        return membership
    if membership.role == Role.MAINTAINER:
        _check_other_maintainer(membership)
        end_acts_of(membership.group, membership.user)
    if role == Role.MAINTAINER:
        _check_new_maintainer(membership.user, by, agreed=membership.added_by_id == membership.user_id)
    before, membership.role = membership.role, role
    membership.save(update_fields=["role"])
    record_group_act(by, membership.group, f"made @{membership.user.login} {role}, before {before}")
    return membership


def _locked_membership(group: Group, user: User) -> Membership:
    lock_owner(group.pk)
    rows = Membership.objects.filter(group=group, user=user).select_related("group__account", "user")
    if (found := rows.first()) is None:
        raise NotAMember(user.login, group.slug)
    return found


def _check_other_maintainer(membership: Membership) -> None:
    """Refuse the change of the only maintainer. The account of the group is locked."""
    if is_last_maintainer(membership):
        raise LastMaintainer(membership.group.slug)


def _check_new_maintainer(user: User, by: User | None, *, agreed: bool) -> None:
    """Refuse a role with duties to a user who never agreed to be in the group; the staff may give it."""
    if not agreed and by is not None and not by.is_staff:
        raise NotAgreed(user.login)
    GROUPS_MAINTAINED.check(user.pk)


def _check_person(user: User) -> None:
    if user.is_group or user.is_service or not user.is_active:
        raise BadGroup(f"@{user.login} cannot be in a group: it is no active account of a person")


def _check_name(name: str) -> str:
    name = name.strip()
    if not 0 < len(name) <= MAX_NAME_CHARS or not name.isprintable():
        raise BadGroup(f"name: give 1 to {MAX_NAME_CHARS} printable characters")
    return name


def record_group_act(by: User | None, group: Group, what: str) -> None:
    """Record in the audit log what a user did to a group; nothing for the hub itself."""
    if by is not None:
        audit_log.record_act(by, Group, audit_log.name_rows([group]), what)


def find_maintained(user: User, slug: str) -> Group | None:
    """The group of this slug, if the user maintains it."""
    if not slug.isprintable():
        return None
    rows = Membership.objects.maintaining().filter(user=user, group__account__login__iexact=slug)
    found = rows.select_related("group__account").first()
    return found.group if found else None
