"""Making and hashing tokens (docs/reference/tokens.md). A token's text exists only in the answer that mints it."""

import hashlib
import re
from dataclasses import dataclass
from datetime import timedelta

from django.db import IntegrityError, transaction

from accounts.models import Credential, User
from accounts.quotas import check_tokens
from kit.clock import db_now
from kit.ids import unguessable

PREFIXES = {
    Credential.Kind.SESSION: "cw_sess_",
    Credential.Kind.CHANNEL: "ck_live_",
    Credential.Kind.APP: "cw_app_",
}
SESSION_LIFETIME = timedelta(days=30)
SHOWN_CHARACTERS = 14
LOGIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,37}[A-Za-z0-9])?\Z")


class BadLogin(ValueError):
    """Not a login: 1 to 39 letters, digits and inner hyphens, as GitHub has them."""


@dataclass(frozen=True, slots=True)
class Minted:
    """A new credential and, for the only time, its text."""

    credential: Credential
    token: str


def digest(token: str) -> str:
    """What is stored of a token: SHA-256 in hex. 128 random bits need no salt and no slow hash."""
    return hashlib.sha256(token.encode()).hexdigest()


def mint(
    user: User,
    kind: Credential.Kind,
    name: str,
    *,
    user_agent: str = "",
    source: Credential.Source = Credential.Source.OPERATOR,
    machine_id: str = "",
    app_name: str = "",
) -> Minted:
    """Make a credential for a user; a sign-in session lasts 30 days, the other kinds until revoked."""
    token = unguessable(PREFIXES[kind])
    now = db_now()
    expires_at = now + SESSION_LIFETIME if kind == Credential.Kind.SESSION else None
    credential = Credential.objects.create(
        user=user,
        kind=kind,
        name=name[:100],
        prefix=token[:SHOWN_CHARACTERS],
        digest=digest(token),
        created_at=now,
        expires_at=expires_at,
        user_agent=user_agent.replace("\0", "")[:300],
        source=source,
        machine_id=machine_id,
        app_name=app_name,
    )
    return Minted(credential, token)


@transaction.atomic
def mint_channel(user: User, name: str, *, user_agent: str) -> Minted:
    """A channel token by its user's own hand.

    Raises:
        accounts.quotas.QuotaExceeded: the user holds as many tokens as one may.
    """
    check_tokens(user)
    return mint(user, Credential.Kind.CHANNEL, name, user_agent=user_agent, source=Credential.Source.MINT)


def get_or_create_local_user(login: str) -> User:
    """The holder of a login, or a new local account of that name.

    Raises:
        BadLogin: it cannot be anybody's login.
    """
    if not LOGIN.match(login):
        raise BadLogin(f"{login!r} is no login: want 1 to 39 letters, digits or inner hyphens")
    if user := User.objects.named(login):
        return user
    try:
        with transaction.atomic():
            return User.objects.create(login=login)
    except IntegrityError:  # somebody else made it in this moment
        return User.objects.get_by_natural_key(login)
