"""Maintainers act for a group: on pages that show what an owner has, in one browser session (docs/adr/0192)."""

from django.http import HttpRequest

from accounts import audit_log
from accounts.authn import Caller
from accounts.models import Credential, Group, Membership, User

SHOWN_PATH_CHARS = 150


def find_acted_for(caller: Caller) -> User | None:
    """The account of the group for which the caller's browser acts, if the caller maintains the group now."""
    if caller.acts_for is None:
        return None
    maintained = Membership.objects.maintaining().filter(user=caller.user, group=caller.acts_for)
    found = maintained.select_related("group__account").first()
    if found is None:
        return None
    account: User = found.group.account
    account.acted_by = caller.user
    return account


def act_for(caller: Caller, group: Group | None) -> bool:
    """Make the caller's browser session act for a group, or for the caller again; True if the caller may."""
    if group is not None and not Membership.objects.maintaining().filter(user=caller.user, group=group).exists():
        return False
    session = Credential.objects.filter(pk=caller.identity.credential_id, kind=Credential.Kind.SESSION)
    return bool(session.update(acts_for=group.account_id if group else None))


def name_maker(account: User, credential_id: int) -> None:
    """Set `acted_by` of a group's account to the maintainer who made the token of a request."""
    makers = Credential.objects.filter(pk=credential_id).values("minted_by")
    account.acted_by = User.objects.filter(pk__in=makers).first()


def record_act_for_group(request: HttpRequest, account: User) -> None:
    """Record a change that a maintainer made for a group, on a page or by a token of the group, by its address."""
    if account.acted_by is not None:
        named = [(str(account.pk), account.login)]
        did = f"{request.method} {request.path_info[:SHOWN_PATH_CHARS]} for @{account.login}"
        audit_log.record_act(account.acted_by, Group, named, did)
