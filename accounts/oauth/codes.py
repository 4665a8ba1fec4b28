"""Codes that a sign-in sends an application back with: each is good once, for five minutes."""

import base64
import hashlib
import hmac
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction

from accounts.authn import digest
from accounts.errors import InvalidGrant, Refused
from accounts.models import LoginCode, User
from accounts.oauth import refreshing
from accounts.oauth.authorization_requests import VERIFIER, AuthorizationRequest
from accounts.oauth.clients import RegisteredClient
from accounts.quotas import QuotaExceeded
from accounts.tokens import Kind, Minted, Source, TokenLimits, replace_credential, revoke_issued
from kit.clock import db_now
from kit.ids import unguessable

LIFETIME = timedelta(minutes=5)
CLIENT_TOKEN_LIFETIME = timedelta(days=30)  # as long as a session of the user's browser
BAD_GRANT = "the code is unknown, expired, used, or not for this client"

Purpose = LoginCode.Purpose


def issue(user: User, purpose: Purpose, asked: AuthorizationRequest) -> str:
    """A code for the client that knows the verifier of its challenge."""
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
        expires_at=db_now() + LIFETIME,
    )
    return code


@dataclass(frozen=True, slots=True)
class CodeHolder:
    """The registered client that presents a code, and the redirect address that the client got the code at."""

    client: RegisteredClient
    redirect_uri: str


def exchange(
    code: str, verifier: str, purpose: Purpose, *, user_agent: str, holder: CodeHolder | None = None
) -> Minted:
    """The session or app token that a code stands for. `holder`: of the code of a registered client.

    The first attempt uses the code up; a second one revokes the token that it gave.

    Raises:
        InvalidGrant, QuotaExceeded: no token was issued.
    """
    outcome = _exchange(code, verifier, purpose, user_agent, holder)
    # raise after its commit: what was spent stays spent
    if isinstance(outcome, Refused):
        raise outcome
    return outcome


@transaction.atomic
def _exchange(
    code: str, verifier: str, purpose: Purpose, user_agent: str, holder: CodeHolder | None
) -> Minted | Refused:
    row = LoginCode.objects.select_for_update().filter(digest=digest(code)).first()
    if row is None:
        return InvalidGrant(BAD_GRANT)
    now = db_now()
    if row.used_at is not None:
        revoke_issued(row.credential)
        return InvalidGrant(BAD_GRANT)
    row.used_at = now
    client_digest = holder.client.digest_for(holder.redirect_uri) if holder else ""
    is_its_own = row.purpose == purpose and row.client_digest == client_digest
    fits = is_its_own and row.expires_at > now and _fits(verifier, row.code_challenge)
    outcome: Minted | Refused = InvalidGrant(BAD_GRANT)
    if fits and row.user.is_active:
        outcome = _issue(row, user_agent, holder.client if holder else None)
        row.credential = outcome.credential if isinstance(outcome, Minted) else None
    row.save(update_fields=["used_at", "credential"])
    return outcome


def _issue(row: LoginCode, user_agent: str, client: RegisteredClient | None) -> Minted | Refused:
    source, kind = (Source.CLI, Kind.SESSION) if row.purpose == Purpose.CLI else (Source.SPA, Kind.APP)
    try:
        with transaction.atomic():
            if client is not None and client.may_refresh:
                return refreshing.begin(row.user, client, row.scopes, user_agent=user_agent)
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
    hashed = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    return hmac.compare_digest(hashed, challenge)
