"""Which account SCIM has provided for a person who signs in at the provider of SCIM (docs/adr/0210).

The provider vouches for both, so its keys and user names count here, and nowhere else.
"""

from django.db import transaction
from django.db.models.functions import Lower

from accounts import audit_log
from accounts.models import Credential, Membership, ProviderIdentity, ScimUser, User
from accounts.oauth.identity_providers import OidcProfile
from accounts.provided_memberships import Giver, change_provided
from accounts.scim_tokens import find_live_token, issuers_of
from kit.clock import db_now


@transaction.atomic
def link_provided(person: OidcProfile) -> User | None:
    """The account that SCIM has provided for a person without an account, who signs in to it from now on.

    None: SCIM has provided none, or another person of this provider signs in to it.
    """
    row = _find_provided(person)
    if row is None or row.user.provider_identities.filter(issuer=person.issuer).exists():
        return None
    if row.user.is_active:
        ProviderIdentity.objects.create(
            user=row.user, issuer=person.issuer, subject=person.subject, last_used_at=db_now()
        )
    return row.user


@transaction.atomic
def move_provided(person: OidcProfile, user: User) -> None:
    """Let SCIM govern the account that a person has, instead of an unused one that SCIM has made for the person.

    An unused account has no sign-in and no token; it stays, suspended. `user` is suspended, too, if the provider
    says so, except a member of the staff.
    """
    if ScimUser.objects.filter(user=user).exists():
        return
    row = _find_provided(person)
    if row is None or not _is_unused(row.user):
        return
    unused, row.user = row.user, user
    row.save(update_fields=["user"])
    if not row.is_active:
        User.objects.filter(pk=user.pk, is_staff=False).update(is_active=False)
        user.refresh_from_db(fields=["is_active"])
    for one in (
        Membership.objects.filter(user=unused, by_scim=True).select_related("group__account").order_by("group")
    ):
        change_provided(one.group, Giver.SCIM, added=[user], removed=[unused], by=user)
    User.objects.filter(pk=unused.pk).update(is_active=False)
    what = f"SCIM governs it from now on, instead of the unused @{unused.login}"
    audit_log.record_act(user, User, [(str(user.pk), user.login)], what)


def _find_provided(person: OidcProfile) -> ScimUser | None:
    """The user of SCIM that is this person: by the key at the provider, else by the user name or mail address."""
    token = find_live_token()
    if token is None or person.issuer not in issuers_of(token):
        return None
    rows = ScimUser.objects.provided().filter(user__closed_at=None)
    keys = {person.subject, person.object_id} - {""}
    names = {person.preferred_username, person.email} - {""}
    by_key = list(rows.filter(external_id__in=keys)[:2])
    by_name = rows.alias(lower=Lower("user_name")).filter(lower__in=[one.lower() for one in names])
    found = by_key or list(by_name[:2])
    if len(found) != 1:
        return None
    locked = ScimUser.objects.select_for_update(of=("self",)).select_related("user")
    user: ScimUser = locked.get(pk=found[0].pk)
    return user


def _is_unused(user: User) -> bool:
    """True if the account has never had a sign-in or a token."""
    signs_in = user.github_id is not None or user.provider_identities.exists() or user.passkeys.exists()
    has_password = bool(user.password) and user.has_usable_password()
    return not (signs_in or has_password or user.is_staff or Credential.objects.filter(user=user).exists())
