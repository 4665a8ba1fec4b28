"""Refresh tokens of registered clients: each is good once, and a used one that comes again ends its family.

Why so, and why a repeated use within seconds is none: docs/adr/0187.
"""

import hashlib
import hmac
import logging
import re
from datetime import datetime, timedelta

from django.db import transaction

from accounts import quotas as account_limits
from accounts.authn import digest
from accounts.errors import InvalidGrant, InvalidScope, Refused
from accounts.models import ClientGrant, User
from accounts.oauth.clients import RegisteredClient
from accounts.quotas import lock_owner
from accounts.tokens import Kind, Minted, Source, TokenLimits, mint
from kit.clock import db_now
from kit.ids import random_hex

logger = logging.getLogger(__name__)

PREFIX = "cw_ref_"
PART_CHARS = 32  # the family and the secret of a token: 128 random bits each, in hex
TOKEN = re.compile(rf"{PREFIX}([0-9a-f]{{{PART_CHARS}}})[0-9a-f]{{{PART_CHARS}}}")
ACCESS_LIFETIME = timedelta(hours=1)
TOLD_LESS = timedelta(minutes=5)  # so that clients refresh before an ask that waits would be cut off
TOLD_LIFETIME = ACCESS_LIFETIME - TOLD_LESS
REFRESH_LIFETIME = timedelta(days=90)
REPEATABLE = timedelta(seconds=30)
BAD_GRANT = "the refresh token is unknown, expired, used, revoked, or not for this client: sign in again"


def begin(user: User, client: RegisteredClient, scopes: str, *, user_agent: str) -> Minted:
    """The first tokens of a client, inside the transaction that spends its code; what the client had here ends.

    Raises:
        QuotaExceeded: the user holds as many tokens as one may.
    """
    lock_owner(user.pk)
    user.client_grants.filter(client_digest=client.digest).revoke()
    account_limits.LIVE_TOKENS.check(user.pk)
    family, now = random_hex(PART_CHARS // 2), db_now()
    token = _join(family, random_hex(PART_CHARS // 2))
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
    return _mint(grant, client, scopes, token, user_agent)


def refresh(token: str, client: RegisteredClient, scope: str, *, user_agent: str) -> Minted:
    """An access token and the next refresh token, for the valid refresh token of a client.

    The same token within REPEATABLE gets the same next refresh token. Later it ends the grant. `scope`: what the
    access token is limited to; empty: what the user allowed.

    Raises:
        InvalidGrant, InvalidScope: no token was issued.
    """
    outcome = _refresh(token, client, scope, user_agent)  # raise after its commit: a grant that ended stays so
    if isinstance(outcome, Refused):
        raise outcome
    return outcome


@transaction.atomic
def _refresh(token: str, client: RegisteredClient, scope: str, user_agent: str) -> Minted | Refused:
    parts = TOKEN.fullmatch(token)
    if parts is None:
        return InvalidGrant(BAD_GRANT)
    family, now = parts[1], db_now()
    theirs = ClientGrant.objects.filter(family_digest=digest(family), client_digest=client.digest, revoked_at=None)
    grant = theirs.select_related("user").select_for_update(no_key=True, of=("self",)).first()
    if grant is None or grant.expires_at <= now or not grant.user.is_active:
        return InvalidGrant(BAD_GRANT)
    presented = digest(token)
    was_just_used = grant.refreshed_at is not None and grant.refreshed_at + REPEATABLE > now
    is_repeated = presented == grant.previous_digest and was_just_used
    if presented != grant.digest and not is_repeated:
        return _end_family(grant, now)
    allowed = grant.scopes.split()
    wanted = scope.split() or allowed
    if not set(wanted) <= set(allowed):
        return InvalidScope(f"scope: the user allowed {grant.scopes}")
    if is_repeated:
        successor = _successor(family, token, grant.successor_secret)
    else:
        grant.successor_secret = random_hex(PART_CHARS // 2)
        successor = _successor(family, token, grant.successor_secret)
        grant.previous_digest, grant.digest = presented, digest(successor)
        grant.refreshed_at, grant.expires_at = now, now + REFRESH_LIFETIME
        grant.save(update_fields=["successor_secret", "previous_digest", "digest", "refreshed_at", "expires_at"])
    scopes = " ".join(one for one in allowed if one in wanted)
    return _mint(grant, client, scopes, successor, user_agent)


def _end_family(grant: ClientGrant, now: datetime) -> InvalidGrant:
    """A used token came again: the client or a thief has a copy, and the hub cannot tell which one asks."""
    ClientGrant.objects.filter(pk=grant.pk).update(reused_at=now)
    ClientGrant.objects.filter(pk=grant.pk).revoke()
    logger.warning("signin.refresh_token_reused", extra={"user_id": grant.user_id, "grant_id": grant.pk})
    return InvalidGrant(BAD_GRANT)


def _mint(grant: ClientGrant, client: RegisteredClient, scopes: str, token: str, user_agent: str) -> Minted:
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
    return Minted(minted.credential, minted.token, token)


def _join(family: str, secret: str) -> str:
    return f"{PREFIX}{family}{secret}"


def _successor(family: str, token: str, salt: str) -> str:
    """The refresh token after one: who has only the database cannot make it, because the text of the one before is
    the key.
    """
    return _join(family, hmac.new(token.encode(), salt.encode(), hashlib.sha256).hexdigest()[:PART_CHARS])
