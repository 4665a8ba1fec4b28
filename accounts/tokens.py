"""Makes and hashes tokens (docs/reference/tokens.md). A token's text exists only in the answer that mints it."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec
from django.db import IntegrityError, models, transaction

from accounts import settings
from accounts.authn import (
    IMPLIED_SCOPES,
    IMPLIED_SCOPES_OF_ONE_AGENT,
    RESERVED_SEATS,
    SEAT_NAME,
    TokenScope,
    digest,
)
from accounts.errors import SignInRefused
from accounts.limits import LIVE_TOKENS, MINTED_APP_TOKENS
from accounts.models import USERS_KINDS, ClientGrant, Credential, User
from accounts.quotas import lock_owner
from accounts.signing import VERIFIABLE_DAYS, sign
from kit.clock import db_now
from kit.ids import unguessable

Kind = Credential.Kind
Source = Credential.Source
PREFIXES = {
    Kind.SESSION: "cw_sess_",
    Kind.CHANNEL: "ck_live_",
    Kind.APP: "cw_app_",
    Kind.AGNT: "agnt_live_",
}
SESSION_LIFETIME = timedelta(days=30)
# The public key of a signing key is published for the same time.
MAX_JWT_LIFETIME = timedelta(days=VERIFIABLE_DAYS)
JWT_FORMAT = "jwt"  # a format of app tokens; the other one is `opaque`
JWT_TYP = "clawbridge-token+jwt"
SHOWN_CHARACTERS = 14
LOGIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,37}[A-Za-z0-9])?\Z")
BAD_LOGIN = "A login is 1 to 39 letters, digits or hyphens, with no hyphen at either end."


class BadLogin(ValueError):
    """The text cannot be a login, which has 1 to 39 letters, digits and inner hyphens, as at GitHub."""

    def __init__(self, login: str) -> None:
        super().__init__(f"{login!r} is no login: want 1 to 39 letters, digits or inner hyphens")


class NoSuchSeat(SignInRefused):
    """The token would be for another user's seat at the gateway; the text does not name that user."""

    code = "validation_failed"


class GroupAsks(SignInRefused):
    """The token would let a group ask; only members do, as persons (docs/adr/0192)."""

    code = "validation_failed"

    def __init__(self) -> None:
        super().__init__("scopes: a token of a group cannot have ask: members ask with tokens of their own")


@dataclass(frozen=True, slots=True)
class Minted:
    """A new credential and its text, which is not stored; for clients that may refresh, also the refresh token."""

    credential: Credential
    token: str
    refresh_token: str = ""


@dataclass(frozen=True, slots=True)
class TokenLimits:
    """The scopes, agent and lifetime of a new token. No scopes: all. `only_agent`: a handle, `owner/slug`.

    `is_jwt`: an app token that other servers can verify; it needs a lifetime, of MAX_JWT_LIFETIME at most.
    """

    scopes: tuple[str, ...] = ()
    only_agent: str = ""
    lifetime: timedelta | None = None
    is_jwt: bool = False

    def __post_init__(self) -> None:
        if self.is_jwt and not (self.lifetime and self.lifetime <= MAX_JWT_LIFETIME):
            raise ValueError(f"a JWT has a lifetime of at most {MAX_JWT_LIFETIME}")


NO_LIMITS = TokenLimits()


def mint(
    user: User,
    kind: Kind,
    name: str,
    *,
    user_agent: str = "",
    source: Source = Source.OPERATOR,
    machine_id: str = "",
    app_name: str = "",
    limits: TokenLimits | None = None,
    grant: ClientGrant | None = None,
    minted_by: User | None = None,
) -> Minted:
    """Make a credential for a user. A sign-in session lasts 30 days, other tokens as limited or until revoked.

    `minted_by`: of a token of a group, the maintainer, with whose role the token ends.

    Raises:
        NoSuchSeat: the token would connect an agent that cannot be this user's; nothing was stored.
        GroupAsks: the user is a group, and the scopes name `ask`; nothing was stored.
        accounts.signing.NoKey: the hub cannot sign a JWT now; nothing was stored.
    """
    limits = limits or NO_LIMITS
    check_seat(user.login, limits)
    if user.is_group and TokenScope.ASK in limits.scopes:
        raise GroupAsks
    token = unguessable(PREFIXES[kind])
    now = db_now()
    lifetime = SESSION_LIFETIME if kind == Kind.SESSION else limits.lifetime
    expires_at = now + lifetime if lifetime else None
    credential = Credential(
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
        scopes=" ".join(limits.scopes),
        only_agent=limits.only_agent.lower(),
        is_jwt=limits.is_jwt,
        grant=grant,
        minted_by=minted_by or user.acted_by,
    )
    if limits.is_jwt and expires_at:
        return _save_as_jwt(credential, expires_at)
    credential.save()
    return Minted(credential, token)


def check_seat(login: str, limits: TokenLimits) -> None:
    """Refuse a token for another user's seat. The user's own seat need not exist: it is made when its agent
    connects.

    Raises:
        NoSuchSeat: the same text for each agent that is not this user's, whether or not the agent exists.
    """
    if TokenScope.CONNECT not in limits.scopes:
        return
    owner, _, name = limits.only_agent.lower().partition("/")
    if owner != login.lower() or not SEAT_NAME.fullmatch(name) or name in RESERVED_SEATS:
        reserved = " and ".join(sorted(RESERVED_SEATS))
        wanted = f"want connect:{login.lower()}/name; a name begins with a letter, {reserved} are none"
        raise NoSuchSeat(f"scopes: connect is for an agent of its user: {wanted}")


@transaction.atomic
def _save_as_jwt(credential: Credential, expires_at: datetime) -> Minted:
    """Store a credential whose text is a JWT: its claim `jti` is the number of the row."""
    credential.save()
    token = sign(msgspec.json.encode(_claims(credential, expires_at)), {"typ": JWT_TYP})
    credential.prefix, credential.digest = f"JWT {credential.pk}", digest(token)
    credential.save(update_fields=["prefix", "digest"])
    return Minted(credential, token)


def _claims(credential: Credential, expires_at: datetime) -> dict[str, str | int]:
    """The claims of a JWT about its credential (docs/reference/tokens.md)."""
    public_url, user = settings.PUBLIC_URL, credential.user
    return {
        "iss": public_url,
        "aud": public_url,
        "sub": str(user.pk),
        "login": user.login,
        "scope": " ".join(_scope_names(credential)),
        "iat": int(credential.created_at.timestamp()),
        "exp": int(expires_at.timestamp()),
        "jti": str(credential.pk),
    }


def _scope_names(credential: Credential) -> list[str]:
    """The scopes of a credential, each with the agent if the credential is for one agent."""
    user, agent = credential.user, credential.only_agent
    has_not = {TokenScope.ASK} if user.is_group else set()
    if not user.is_staff and not agent:
        has_not.add(TokenScope.ADMIN)
    implied = IMPLIED_SCOPES_OF_ONE_AGENT if agent else IMPLIED_SCOPES
    scopes = [scope for scope in credential.scopes.split() or implied if scope not in has_not]
    return [f"{scope}:{agent}" if agent else str(scope) for scope in scopes]


@transaction.atomic
def mint_channel(user: User, name: str, *, user_agent: str, limits: TokenLimits = NO_LIMITS) -> Minted:
    """Create a channel token on its user's request.

    Raises:
        accounts.quotas.QuotaExceeded: the user holds as many tokens as one may.
    """
    LIVE_TOKENS.check(user.pk)
    source = Source.MINT
    return mint(user, Kind.CHANNEL, name, user_agent=user_agent, source=source, limits=limits)


def find_replaceable(user: User, credential_id: int) -> Credential | None:
    """Find a token of the user that `rotate` can replace: a valid token that no client refreshes."""
    own = user.credentials.live().filter(kind__in=USERS_KINDS, grant=None)
    found: Credential | None = own.select_related("user").filter(pk=credential_id).first()
    return found


@transaction.atomic
def rotate(old: Credential, *, overlap: timedelta, user_agent: str) -> Minted:
    """Replace a token by a new one with the same limits; the old one stays valid for a while.

    Raises:
        accounts.quotas.QuotaExceeded: the user holds as many tokens as one may.
        NoSuchSeat: the user's login has changed since the token was made for its seat.
        accounts.signing.NoKey: the hub cannot sign a JWT now.
    """
    LIVE_TOKENS.check(old.user_id)
    lifetime = old.expires_at - old.created_at if old.expires_at else None
    limits = TokenLimits(tuple(old.scopes.split()), old.only_agent, lifetime, old.is_jwt)
    minted = mint(
        old.user,
        Kind(old.kind),
        old.name,
        user_agent=user_agent,
        source=Source(old.source),
        machine_id=old.machine_id,
        app_name=old.app_name,
        limits=limits,
        minted_by=old.minted_by,
    )
    ends_at = minted.credential.created_at + overlap
    still = Credential.objects.filter(pk=old.pk)
    still.filter(models.Q(expires_at=None) | models.Q(expires_at__gt=ends_at)).update(expires_at=ends_at)
    return minted


def get_or_create_local_user(login: str) -> User:
    """The holder of a login, or a new local account of that name.

    Raises:
        BadLogin: the text cannot be a login.
    """
    if not LOGIN.match(login):
        raise BadLogin(login)
    if user := User.objects.named(login):
        return user
    try:
        with transaction.atomic():
            return User.objects.create(login=login)
    except IntegrityError:  # another process has created the user meanwhile
        return User.objects.get_by_natural_key(login)


def replace_credential(
    user: User,
    kind: Kind,
    source: Source,
    name: str,
    machine_id: str,
    user_agent: str,
    *,
    limits: TokenLimits = NO_LIMITS,
) -> Minted:
    """Make a credential for a machine, and revoke the machine's earlier one.

    Raises:
        accounts.quotas.QuotaExceeded: the credential is an app token, and the user holds as many tokens as one
        may.
    """
    lock_owner(user.pk)
    sources = [Source.CLI] if kind == Kind.SESSION else [Source.SPA, Source.DEVICE]
    if machine_id:
        user.credentials.filter(kind=kind, machine_id=machine_id, source__in=sources).revoke()
    if kind == Kind.APP:
        LIVE_TOKENS.check(user.pk)
    return mint(
        user,
        kind,
        name or "command-line sign-in",
        user_agent=user_agent,
        source=source,
        machine_id=machine_id,
        app_name=name,
        limits=limits,
    )


def revoke_issued(issued: Credential | None) -> None:
    """Revoke the credential, if any, for which a code was exchanged: the code was used twice."""
    if issued is not None:
        Credential.objects.filter(pk=issued.pk).revoke()


@transaction.atomic
def mint_app(user: User, name: str, *, user_agent: str, limits: TokenLimits = NO_LIMITS) -> Minted:
    """Create an app token on its user's request.

    Raises:
        accounts.quotas.QuotaExceeded: the user holds as many app tokens, or as many tokens, as one may.
        NoSuchSeat: the token would connect an agent that cannot be this user's.
        accounts.signing.NoKey: the hub cannot sign a JWT now.
    """
    LIVE_TOKENS.check(user.pk)
    MINTED_APP_TOKENS.check(user.pk)
    app_name = name[:60]
    return mint(user, Kind.APP, name, user_agent=user_agent, source=Source.MINT, app_name=app_name, limits=limits)
