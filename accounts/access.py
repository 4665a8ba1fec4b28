"""Changes what an account may do: suspends and reinstates it, gives and takes staff rights, ends its credentials.

The admin, the staff's page of an account, REST, `manage.py account` and SCIM call it. Each change is logged.
"""

from collections.abc import Mapping

from django.db import transaction
from django.db.models import Q

from accounts import audit_log
from accounts.errors import SignInRefused
from accounts.models import ClientGrant, Credential, User

LAST_ADMINISTRATOR = "This is the last administrator of the hub: give another account staff rights first."
NOT_ONESELF = "You cannot suspend yourself: another administrator does that."
NO_PROGRAM = "A program or a group cannot be a member of the staff."
NOT_STAFF_NOW = "You have no staff rights any more, so nothing was changed."
ERASED = "This account was erased, so nothing was changed."
ACTS = {
    ("is_active", True): "reinstated",
    ("is_active", False): "suspended",
    ("is_staff", True): "gave staff rights",
    ("is_staff", False): "took staff rights away",
}


class AccessRefused(SignInRefused):
    """A change of an account's access is refused, and nothing was written. `field`: of the user, or empty."""

    status = 409
    code = "conflict"

    def __init__(self, text: str, field: str = "") -> None:
        super().__init__(text)
        self.field = field


def check_access(user_id: int, given: Mapping[str, bool], *, by: User | None) -> User:
    """Lock the administrators and the user, then check what would remain; call it in a transaction.

    `given`: the new `is_active` and `is_staff`, both or one. `by` None: by the hub's operator.

    Raises:
        AccessRefused: the account was erased, cannot have the rights, or is the last administrator.
    """
    administrators = User.objects.lock_administrators()
    user = User.objects.select_for_update(no_key=True).get(pk=user_id)
    if by is not None and by.pk not in administrators:
        raise AccessRefused(NOT_STAFF_NOW)
    if user.closed_at is not None:
        raise AccessRefused(ERASED)
    if given.get("is_staff") and (user.is_service or user.is_group):
        raise AccessRefused(NO_PROGRAM, "is_staff")
    lost = next((name for name in ("is_staff", "is_active") if not given.get(name, True)), None)
    if lost and administrators == {user.pk}:
        raise AccessRefused(LAST_ADMINISTRATOR, lost)
    if user == by and not given.get("is_active", True):
        raise AccessRefused(NOT_ONESELF, "is_active")
    return user


@transaction.atomic
def change_access(user: User, given: Mapping[str, bool], *, by: User | None) -> User:
    """Suspend or reinstate a user, and give or take staff rights; returns the user as stored.

    Raises:
        AccessRefused: nothing was written.
    """
    found = check_access(user.pk, given, by=by)
    changed = {name: value for name, value in given.items() if getattr(found, name) != value}
    if not changed:
        return found
    for name, value in changed.items():
        setattr(found, name, value)
    save_access(found)
    if by is not None:
        audit_log.record_act(by, User, audit_log.name_rows([found]), name_changes(changed))
    return found


def save_access(user: User) -> None:
    """Save only the access: other columns may have changed since the user was read."""
    user.is_superuser = user.is_staff
    user.save(update_fields=["is_active", "is_staff", "is_superuser"])


def name_changes(changed: Mapping[str, bool]) -> str:
    """The text for the audit log; it names the actions, each of which has one state before it."""
    return ", ".join(text for (name, value), text in ACTS.items() if changed.get(name) is value)


@transaction.atomic
def revoke_credentials(user: User, chosen: Q, *, by: User | None, keeps: int | None = None) -> int:
    """Revoke the credentials of a user that meet a condition, except one; returns how many were live."""
    rows = Credential.objects.filter(chosen, user=user)
    if keeps is not None:
        rows = rows.exclude(pk=keeps)
    live = list(rows.live().order_by("-pk"))
    if by is not None:
        for did, is_session in (("ended a sign-in", True), ("revoked a token", False)):
            ended = [one for one in live if (one.kind == Credential.Kind.SESSION) is is_session]
            if ended:
                audit_log.record_act(by, Credential, audit_log.name_rows(ended), f"{did} of @{user.login}")
    rows.revoke()
    return len(live)


@transaction.atomic
def end_clients(user: User, chosen: Q, *, by: User | None) -> int:
    """Sign out the programs of a user that refresh their tokens; returns how many there were."""
    rows = ClientGrant.objects.filter(chosen, user=user)
    live = list(rows.live().order_by("-pk"))
    if by is not None and live:
        audit_log.record_act(by, ClientGrant, audit_log.name_rows(live), f"signed out a program of @{user.login}")
    rows.revoke()
    return len(live)


@transaction.atomic
def revoke_tokens(user: User, *, by: User | None, keeps: int | None = None) -> int:
    """Revoke all tokens of a user, and sign out programs; returns how many of both ended."""
    clients = end_clients(user, Q(), by=by)
    return clients + revoke_credentials(user, ~Q(kind=Credential.Kind.SESSION), by=by, keeps=keeps)
