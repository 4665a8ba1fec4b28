"""The token with which an identity provider calls SCIM, and the provider at which its users sign in.

Without a live token the hub has no SCIM. This module loads no library of SCIM (docs/adr/0163).
"""

from dataclasses import dataclass
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from accounts import audit_log, settings
from accounts.authn import digest
from accounts.errors import SignInRefused
from accounts.models import ScimToken, User
from kit.clock import approximate_now
from kit.ids import unguessable

PREFIX = "scim_live_"
SHOWN_CHARACTERS = 14
ACCOUNT = "scim"
ACCOUNTS_TRIED = 20
TOUCH_EVERY = timedelta(seconds=60)


class CannotMakeToken(SignInRefused):
    """The token was not made; the text says why."""

    code = "validation_failed"


@dataclass(frozen=True, slots=True)
class NewScimToken:
    """A new token and its text, which is not stored."""

    row: ScimToken
    token: str


@transaction.atomic
def make_scim_token(issuer: str = "", *, by: User | None = None) -> NewScimToken:
    """Make the hub's SCIM token; an earlier one ends. `issuer`: a provider of OIDC_ISSUER; empty: the only one.

    Raises:
        CannotMakeToken: the hub has no such provider, or several and none is named.
    """
    issuers = [one.issuer for one in settings.OIDC_PROVIDERS]
    issuer = issuer.rstrip("/")
    if issuer and issuer not in issuers:
        raise CannotMakeToken(f"{issuer} is no provider of OIDC_ISSUER")
    if not issuer and len(issuers) > 1:
        raise CannotMakeToken(f"name the provider at which these users sign in: {' or '.join(issuers)}")
    account = _find_account()
    User.objects.select_for_update(no_key=True).get(pk=account.pk)
    ScimToken.objects.filter(revoked_at=None).update(revoked_at=Now())
    token = unguessable(PREFIX)
    row = ScimToken.objects.create(
        digest=digest(token), prefix=token[:SHOWN_CHARACTERS], issuer=issuer, account=account, made_by=by
    )
    audit_log.record_act(by or account, ScimToken, audit_log.name_rows([row]), "made the SCIM token")
    return NewScimToken(row, token)


@transaction.atomic
def end_scim_token(*, by: User | None = None) -> bool:
    """End the hub's SCIM token, and SCIM with it; False if there was none. Users and groups stay as they are."""
    row = ScimToken.objects.filter(revoked_at=None).select_related("account").first()
    if row is None:
        return False
    ScimToken.objects.filter(revoked_at=None).update(revoked_at=Now())
    audit_log.record_act(by or row.account, ScimToken, audit_log.name_rows([row]), "ended the SCIM token")
    return True


def find_live_token() -> ScimToken | None:
    """The hub's SCIM token, if it has one."""
    return ScimToken.objects.filter(revoked_at=None).select_related("account").order_by("-pk").first()


def touch(row: ScimToken) -> None:
    """Record that the token was just used, once a minute."""
    if row.last_used_at is None or row.last_used_at < approximate_now() - TOUCH_EVERY:
        ScimToken.objects.filter(pk=row.pk).update(last_used_at=Now())


def issuers_of(row: ScimToken) -> list[str]:
    """The names of the provider at which users of SCIM sign in: as set, and with the slash of some providers."""
    providers = settings.OIDC_PROVIDERS
    issuer = row.issuer or (providers[0].issuer if len(providers) == 1 else "")
    return [issuer, f"{issuer}/"] if issuer else []


def _find_account() -> User:
    """The service user under which the audit log records what the identity provider does."""
    if (earlier := ScimToken.objects.select_related("account").order_by("-pk").first()) is not None:
        return earlier.account
    for number in range(1, ACCOUNTS_TRIED):
        login = ACCOUNT if number == 1 else f"{ACCOUNT}-{number}"
        try:
            with transaction.atomic():
                return User.objects.create(login=login, is_service=True)
        except IntegrityError:  # a user has this login
            continue
    raise CannotMakeToken(f"the logins {ACCOUNT}, {ACCOUNT}-2, … are taken")
