"""Users of SCIM: an identity provider creates, changes, suspends and deletes the accounts of persons.

Each function runs in the transaction of its request, and its acts are in the audit log.
"""

import json

from django.db import IntegrityError, transaction
from django.db.models import Q
from scim2_models import ConflictException, InvalidValueException, Meta, UniquenessException

from accounts import audit_log, settings
from accounts.access import AccessRefused, change_access
from accounts.groups import LastMaintainer
from accounts.models import ClientGrant, Credential, Membership, ProviderIdentity, ScimToken, ScimUser, User
from accounts.oauth.provider_accounts import free_logins
from accounts.provided_memberships import Giver, change_provided
from accounts.scim.resources import DirectoryUser, check_text
from accounts.scim_tokens import issuers_of
from kit.clock import db_now

MAX_PROFILE_CHARS = 8_000
PROFILE = {"name", "display_name", "emails"}


def show_user(row: ScimUser, *, as_said: bool = False) -> DirectoryUser:
    """The resource of a row. `active`: false also while the staff has suspended the account; with `as_said` as the
    provider said last, which a patch changes.
    """
    location = f"{settings.PUBLIC_URL}/scim/v2/Users/{row.pk}"
    meta = Meta(resource_type="User", created=row.created_at, last_modified=row.changed_at, location=location)
    core = {"id": str(row.pk), "externalId": row.external_id or None, "userName": row.user_name}
    is_active = row.is_active if as_said else row.user.is_active
    return DirectoryUser.model_validate({**core, **row.profile, "active": is_active, "meta": meta})


def create_user(given: DirectoryUser, token: ScimToken) -> ScimUser:
    """Provide the account of a person: a new one, or the one that the person has.

    Raises:
        SCIMException: a value cannot be stored, another user has the name, or the last administrator would be
            suspended.
    """
    row = _find_former(given, token) or ScimUser(user=_find_account(given, token) or _make_account(given))
    row.removed_at = None
    _store(row, given, token, "provided the account")
    return row


def change_user(row: ScimUser, given: DirectoryUser, token: ScimToken) -> None:
    """Write the new state of a user. The login stays, because handles are stored whole.

    Raises:
        SCIMException: as for `create_user`.
    """
    _store(row, given, token, "changed the account")


def delete_user(row: ScimUser, token: ScimToken) -> None:
    """Suspend the account, end its tokens and what SCIM gave it, and forget the user. Staff may erase the account.

    Raises:
        ConflictException: the user is the last administrator.
    """
    _set_active(row.user, is_active=False)
    ClientGrant.objects.filter(user=row.user).revoke()
    Credential.objects.filter(Q(user=row.user) | Q(minted_by=row.user)).revoke()
    given = (
        Membership.objects.filter(user=row.user, by_scim=True).select_related("group__account").order_by("group")
    )
    for membership in given:
        try:
            change_provided(membership.group, Giver.SCIM, removed=[row.user], by=token.account)
        except LastMaintainer:  # the group keeps its maintainer, who is suspended; the staff names another one
            continue
    row.is_active, row.removed_at, row.profile = False, db_now(), {}
    row.save()
    _record(row, token, "deleted: suspended the account, and ended its tokens")


def _store(row: ScimUser, given: DirectoryUser, token: ScimToken, what: str) -> None:
    row.user_name = check_text("userName", given.user_name)
    row.external_id = check_text("externalId", given.external_id, needed=False)
    row.profile = given.model_dump(include=PROFILE, exclude_none=True, by_alias=True, mode="json", scim_ctx=None)
    if len(json.dumps(row.profile)) > MAX_PROFILE_CHARS:
        raise InvalidValueException(detail=f"name and emails: more than {MAX_PROFILE_CHARS} characters")
    is_active = bool(given.active)
    if not is_active and row.user.is_active:
        _set_active(row.user, is_active=False)
        what += ", suspended it"
    elif is_active and not row.is_active and not row.user.is_active:  # a suspension by the staff stays
        _set_active(row.user, is_active=True)
        what += ", reinstated it"
    row.is_active, row.changed_at = is_active, db_now()
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:
        raise UniquenessException(detail=f"another user has the userName {row.user_name}") from None
    _record(row, token, what)


def _set_active(user: User, *, is_active: bool) -> None:
    """Suspend or reinstate a user; sockets and streams of the suspended close within a second (docs/adr/0060).

    Raises:
        ConflictException: the user is the last administrator.
    """
    try:
        user.is_active = change_access(user, {"is_active": is_active}, by=None).is_active
    except AccessRefused as refused:
        raise ConflictException(detail=f"@{user.login}: {refused}") from None


def _find_former(given: DirectoryUser, token: ScimToken) -> ScimUser | None:
    """The user that the provider deleted, and creates again under the same key."""
    if not given.external_id:
        return None
    former = ScimUser.objects.exclude(removed_at=None).filter(external_id=given.external_id)
    return former.filter(user__closed_at=None).select_related("user").order_by("-removed_at").first()


def _find_account(given: DirectoryUser, token: ScimToken) -> User | None:
    """The account with which this person signs in at the provider already, unless SCIM provides it."""
    here = ProviderIdentity.objects.filter(
        issuer__in=issuers_of(token), user__scim_user=None, user__closed_at=None
    )
    is_person = Q(username__iexact=given.user_name or "")
    if given.external_id:
        is_person |= Q(subject=given.external_id)
    found = list(here.filter(is_person).exclude(username="", subject="").select_related("user")[:2])
    return found[0].user if len(found) == 1 else None


def _make_account(given: DirectoryUser) -> User:
    username = check_text("userName", given.user_name).partition("@")[0]
    for login in free_logins(username):
        try:
            with transaction.atomic():
                return User.objects.create(login=login)
        except IntegrityError:  # another request took the login
            continue
    raise ConflictException(detail="no login is free for this user: try again")


def _record(row: ScimUser, token: ScimToken, what: str) -> None:
    named = [(str(row.user.pk), row.user.login)]
    audit_log.record_act(token.account, User, named, f"SCIM {what} ({row.user_name})"[:1000])
