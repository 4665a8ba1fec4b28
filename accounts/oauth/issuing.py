"""The credentials that sign-ins end with."""

from django.db import transaction

from accounts import quotas
from accounts.models import Credential, User
from accounts.quotas import QuotaExceeded
from accounts.tokens import NO_LIMITS, Limits, Minted, mint

MINTED_APPS = 20
BAD_GRANT = "the code is unknown, expired, used, or not for this client"

Kind = Credential.Kind
Source = Credential.Source


def replace(
    user: User, kind: Credential.Kind, source: Credential.Source, name: str, machine_id: str, user_agent: str
) -> Minted:
    """A new credential of a machine; the one it had goes.

    Raises:
        QuotaExceeded: it is an app's, and the user holds as many tokens as one may.
    """
    quotas.hold(user.pk)
    sources = [Source.CLI] if kind == Kind.SESSION else [Source.SPA, Source.DEVICE]
    if machine_id:
        user.credentials.filter(kind=kind, machine_id=machine_id, source__in=sources).revoke()
    if kind == Kind.APP:
        quotas.check_tokens(user)
    return mint(
        user,
        kind,
        name or "command-line sign-in",
        user_agent=user_agent,
        source=source,
        machine_id=machine_id,
        app_name=name,
    )


def revoke(issued: Credential | None) -> None:
    """Take back what a code gave before, if anything: somebody else has the code too."""
    if issued is not None:
        Credential.objects.filter(pk=issued.pk).revoke()


@transaction.atomic
def mint_app(user: User, name: str, *, user_agent: str, limits: Limits = NO_LIMITS) -> Minted:
    """An app token by its user's own hand.

    Raises:
        QuotaExceeded: the user holds MINTED_APPS live ones, or as many tokens as one may.
    """
    quotas.hold(user.pk)
    quotas.check_tokens(user)
    if user.credentials.live().filter(kind=Kind.APP, source=Source.MINT).count() >= MINTED_APPS:
        raise QuotaExceeded(f"you hold {MINTED_APPS} app tokens: revoke one first")
    app_name = name[:60]
    return mint(user, Kind.APP, name, user_agent=user_agent, source=Source.MINT, app_name=app_name, limits=limits)
