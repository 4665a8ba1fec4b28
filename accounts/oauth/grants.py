"""The grants that an application exchanges for a token: a code, a device code, a refresh token; each valid once.

A code, with which a sign-in sends an application back, lasts five minutes. A device code (RFC 8628) lasts ten: a
device shows a code, its user types it elsewhere, and the device polls. A used refresh token of a registered client
that comes again ends its family; why so, and why a repeated use within seconds is none: docs/adr/0187.
"""

import hashlib
import hmac
import logging
import re
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import wraps
from typing import ParamSpec

from authlib.oauth2.rfc7636 import create_s256_code_challenge
from django.db import transaction

from accounts.authn import digest
from accounts.errors import (
    AccessDenied,
    AuthorizationPending,
    ExpiredToken,
    InvalidGrant,
    InvalidScope,
    SignInRefused,
    SlowDown,
)
from accounts.limits import LIVE_TOKENS
from accounts.models import ClientGrant, DeviceGrant, LoginCode, User
from accounts.oauth.clients import VERIFIER, AuthorizationRequest, RegisteredClient
from accounts.quotas import QuotaExceeded, lock_owner
from accounts.tokens import Kind, Minted, Source, TokenLimits, mint, replace_credential, revoke_issued
from kit.clock import db_now
from kit.ids import random_hex, unguessable

logger = logging.getLogger(__name__)

P = ParamSpec("P")
Purpose = LoginCode.Purpose
Status = DeviceGrant.Status

CODE_LIFETIME = timedelta(minutes=5)
CLIENT_TOKEN_LIFETIME = timedelta(days=30)  # as long as a session of the user's browser
BAD_CODE = "the code is unknown, expired, used, or not for this client"

DEVICE_LIFETIME = timedelta(minutes=10)
POLL_EVERY_S = 5
SLOWER_BY_S = 5
USER_CODE_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"  # without vowels, so that codes are not words
USER_CODE_LENGTH = 8

REFRESH_PREFIX = "cw_ref_"
PART_CHARS = 32  # the family and the secret of a refresh token: 128 random bits each, in hex
REFRESH_TOKEN = re.compile(rf"{REFRESH_PREFIX}([0-9a-f]{{{PART_CHARS}}})[0-9a-f]{{{PART_CHARS}}}")
ACCESS_LIFETIME = timedelta(hours=1)
# The response names a shorter lifetime, so that clients refresh before a waiting ask would be cut off.
SHOWN_ACCESS_LIFETIME = ACCESS_LIFETIME - timedelta(minutes=5)
REFRESH_LIFETIME = timedelta(days=90)
REPEATABLE = timedelta(seconds=30)
BAD_REFRESH = "the refresh token is unknown, expired, used, revoked, or not for this client: sign in again"


def raised_after_commit(exchange: Callable[P, Minted | SignInRefused]) -> Callable[P, Minted]:
    """Run an exchange in one transaction, and raise the refusal that it returns after the commit.

    So the refusal does not undo that a code was used or a grant ended. An exception that the exchange raises
    undoes all.
    """

    @wraps(exchange)
    def run(*args: P.args, **kwargs: P.kwargs) -> Minted:
        with transaction.atomic():
            outcome = exchange(*args, **kwargs)
        if isinstance(outcome, SignInRefused):
            raise outcome
        return outcome

    return run


def issue_code(user: User, purpose: Purpose, asked: AuthorizationRequest) -> str:
    """Make a code for the client that has the verifier of the request's challenge."""
    code = unguessable("cw_code_")
    LoginCode.objects.create(
        digest=digest(code),
        purpose=purpose,
        user=user,
        code_challenge=asked.code_challenge,
        machine_id=asked.machine_id,
        app_name=asked.app_name,
        client_digest=asked.client_digest,
        scopes=" ".join(asked.scopes),
        expires_at=db_now() + CODE_LIFETIME,
    )
    return code


@raised_after_commit
def exchange_code(
    code: str,
    verifier: str,
    purpose: Purpose,
    *,
    user_agent: str,
    client: RegisteredClient | None = None,
    redirect_uri: str = "",
) -> Minted | SignInRefused:
    """Exchange a code for a session or an app token.

    `client`: the registered client that presents the code, which was sent to `redirect_uri`. The first attempt
    uses up the code; a second attempt revokes the token that the first one got.

    Raises:
        InvalidGrant, QuotaExceeded: no token was issued.
    """
    row = LoginCode.objects.select_for_update().filter(digest=digest(code)).first()
    if row is None:
        return InvalidGrant(BAD_CODE)
    now = db_now()
    if row.used_at is not None:
        revoke_issued(row.credential)
        return InvalidGrant(BAD_CODE)
    row.used_at = now
    client_digest = client.digest_for(redirect_uri) if client else ""
    is_its_own = row.purpose == purpose and row.client_digest == client_digest
    fits = is_its_own and row.expires_at > now and _fits(verifier, row.code_challenge)
    outcome: Minted | SignInRefused = InvalidGrant(BAD_CODE)
    if fits and row.user.is_active:
        outcome = _redeem_code(row, user_agent, client)
        row.credential = outcome.credential if isinstance(outcome, Minted) else None
    row.save(update_fields=["used_at", "credential"])
    return outcome


def _redeem_code(row: LoginCode, user_agent: str, client: RegisteredClient | None) -> Minted | SignInRefused:
    source, kind = (Source.CLI, Kind.SESSION) if row.purpose == Purpose.CLI else (Source.SPA, Kind.APP)
    try:
        with transaction.atomic():
            if client is not None and client.may_refresh:
                return grant_refreshing(row.user, client, row.scopes, user_agent=user_agent)
            lifetime = CLIENT_TOKEN_LIFETIME if row.purpose == Purpose.CLIENT else None
            limits = TokenLimits(tuple(row.scopes.split()), lifetime=lifetime)
            return replace_credential(
                row.user, kind, source, row.app_name, row.machine_id, user_agent, limits=limits
            )
    except QuotaExceeded as over:
        return over


def _fits(verifier: str, challenge: str) -> bool:
    if not VERIFIER.match(verifier):
        return False
    return hmac.compare_digest(create_s256_code_challenge(verifier), challenge)


def begin_device_grant(app_name: str, machine_id: str) -> tuple[str, str]:
    """Store a device grant; returns its device code, and the code that the user types."""
    letters = "".join(secrets.choice(USER_CODE_LETTERS) for _ in range(USER_CODE_LENGTH))
    device_code, user_code = unguessable("cw_dev_"), f"{letters[:4]}-{letters[4:]}"
    DeviceGrant.objects.create(
        device_digest=digest(device_code),
        user_digest=digest(user_code),
        app_name=app_name,
        machine_id=machine_id,
        interval_s=POLL_EVERY_S,
        expires_at=db_now() + DEVICE_LIFETIME,
    )
    return device_code, user_code


def find_device_grant(typed: str) -> DeviceGrant | None:
    """Find the pending grant by the code that a user typed, in any case, with or without the hyphen."""
    letters = "".join(letter for letter in typed.upper() if letter in USER_CODE_LETTERS)
    code = f"{letters[:4]}-{letters[4:]}"
    pending = DeviceGrant.objects.filter(status=Status.PENDING, expires_at__gt=db_now())
    return pending.filter(user_digest=digest(code)).first() if len(letters) == USER_CODE_LENGTH else None


def decide_device_grant(grant: DeviceGrant, user: User, *, allow: bool) -> bool:
    """Store the user's decision on a grant; False when the grant was decided or ran out meanwhile."""
    pending = DeviceGrant.objects.filter(pk=grant.pk, status=Status.PENDING, expires_at__gt=db_now())
    return bool(pending.update(status=Status.ALLOWED if allow else Status.DENIED, user=user))


@raised_after_commit
def poll_device_grant(device_code: str, *, user_agent: str) -> Minted | SignInRefused:
    """Mint the app token of an allowed grant; only once.

    Raises:
        AuthorizationPending, SlowDown, ExpiredToken, AccessDenied, InvalidGrant, QuotaExceeded: nothing was
            issued.
    """
    grant = DeviceGrant.objects.select_for_update().filter(device_digest=digest(device_code)).first()
    if grant is None:
        return InvalidGrant(BAD_CODE)
    now = db_now()
    if grant.status == Status.USED:
        revoke_issued(grant.credential)
        return InvalidGrant(BAD_CODE)
    if grant.expires_at <= now:
        return ExpiredToken("the code ran out: begin again")
    if grant.status == Status.DENIED:
        return AccessDenied("the user said no")
    if grant.status == Status.PENDING:
        return _note_poll(grant, now)
    if grant.user is None or not grant.user.is_active:
        return InvalidGrant(BAD_CODE)
    minted = replace_credential(grant.user, Kind.APP, Source.DEVICE, grant.app_name, grant.machine_id, user_agent)
    grant.status, grant.credential = Status.USED, minted.credential
    grant.save(update_fields=["status", "credential"])
    return minted


def _note_poll(grant: DeviceGrant, now: datetime) -> SignInRefused:
    is_early = grant.polled_at is not None and now - grant.polled_at < timedelta(seconds=grant.interval_s - 0.5)
    grant.polled_at = now
    grant.interval_s += SLOWER_BY_S if is_early else 0
    grant.save(update_fields=["polled_at", "interval_s"])
    if is_early:
        return SlowDown(f"poll every {grant.interval_s} s")
    return AuthorizationPending("the user has not decided yet")


def grant_refreshing(user: User, client: RegisteredClient, scopes: str, *, user_agent: str) -> Minted:
    """Make a client's grant and first tokens, in the transaction that uses up its code; ends the client's earlier
    grant.

    Raises:
        QuotaExceeded: the user holds as many tokens as one may.
    """
    lock_owner(user.pk)
    user.client_grants.filter(client_digest=client.digest).revoke()
    LIVE_TOKENS.check(user.pk)
    family, now = random_hex(PART_CHARS // 2), db_now()
    token = f"{REFRESH_PREFIX}{family}{random_hex(PART_CHARS // 2)}"
    grant = ClientGrant.objects.create(
        user=user,
        client_digest=client.digest,
        app_name=client.name,
        scopes=scopes,
        user_agent=user_agent.replace("\0", "")[:300],
        family_digest=digest(family),
        digest=digest(token),
        created_at=now,
        expires_at=now + REFRESH_LIFETIME,
    )
    return _mint_access(grant, client, scopes, token, user_agent)


@raised_after_commit
def refresh(token: str, client: RegisteredClient, scope: str, *, user_agent: str) -> Minted | SignInRefused:
    """Exchange the valid refresh token of a client for an access token and the next refresh token.

    The previous refresh token, repeated within REPEATABLE, gets the same next refresh token; later it ends the
    grant. `scope`: the scopes of the access token; empty: all that the user allowed.

    Raises:
        InvalidGrant, InvalidScope: no token was issued.
    """
    parts = REFRESH_TOKEN.fullmatch(token)
    if parts is None:
        return InvalidGrant(BAD_REFRESH)
    family, now = parts[1], db_now()
    theirs = ClientGrant.objects.filter(family_digest=digest(family), client_digest=client.digest, revoked_at=None)
    grant = theirs.select_related("user").select_for_update(no_key=True, of=("self",)).first()
    if grant is None or grant.expires_at <= now or not grant.user.is_active:
        return InvalidGrant(BAD_REFRESH)
    presented = digest(token)
    was_just_used = grant.refreshed_at is not None and grant.refreshed_at + REPEATABLE > now
    is_repeated = presented == grant.previous_digest and was_just_used
    if presented != grant.digest and not is_repeated:
        # The token was copied, and the hub cannot know whether the client or an attacker presents it now.
        ClientGrant.objects.filter(pk=grant.pk).update(reused_at=now)
        ClientGrant.objects.filter(pk=grant.pk).revoke()
        logger.warning("signin.refresh_token_reused", extra={"user_id": grant.user_id, "grant_id": grant.pk})
        return InvalidGrant(BAD_REFRESH)
    allowed = grant.scopes.split()
    wanted = scope.split() or allowed
    if not set(wanted) <= set(allowed):
        return InvalidScope(f"scope: the user allowed {grant.scopes}")
    if not is_repeated:
        grant.successor_secret = random_hex(PART_CHARS // 2)
    # The text of the previous token is the key, so the next token cannot be made from the database alone.
    secret = hmac.new(token.encode(), grant.successor_secret.encode(), hashlib.sha256).hexdigest()[:PART_CHARS]
    successor = f"{REFRESH_PREFIX}{family}{secret}"
    if not is_repeated:
        grant.previous_digest, grant.digest = presented, digest(successor)
        grant.refreshed_at, grant.expires_at = now, now + REFRESH_LIFETIME
        grant.save(update_fields=["successor_secret", "previous_digest", "digest", "refreshed_at", "expires_at"])
    scopes = " ".join(one for one in allowed if one in wanted)
    return _mint_access(grant, client, scopes, successor, user_agent)


def _mint_access(
    grant: ClientGrant, client: RegisteredClient, scopes: str, refresh_token: str, user_agent: str
) -> Minted:
    minted = mint(
        grant.user,
        Kind.APP,
        grant.app_name,
        user_agent=user_agent,
        source=Source.SPA,
        machine_id=client.machine_id,
        app_name=grant.app_name,
        limits=TokenLimits(tuple(scopes.split()), lifetime=ACCESS_LIFETIME),
        grant=grant,
    )
    return Minted(minted.credential, minted.token, refresh_token)
