"""The tokens that sign in to the gateway, and how long they last."""

from typing import NamedTuple

from accounts.authn import Identity
from accounts.models import Credential
from agents.core.ledger import Ledger
from gateway.wire.errors import ErrorCode, FrameRefused
from gateway.wire.frames import Json
from gateway.wire.permissions import find_role
from kit.async_db import db_call
from kit.clock import db_now, unix_ms

WANTED = "want a live channel, session or app token that is for the gateway"


class Token(NamedTuple):
    """A live token. `expires_at_ms`: Unix milliseconds; `left_s`: until then. None: until it is revoked."""

    identity: Identity
    expires_at_ms: int | None
    left_s: float | None


async def get_token(ledger: Ledger, token_digest: str) -> Token:
    """The token with this digest, if it signs in to the gateway.

    Raises:
        FrameRefused: 5003 when it has expired, 5002 when it is not good for another reason.
    """
    identity = (await ledger.look_up(token_digest, None)).identity
    if identity is None and await db_call(_has_expired)(token_digest):
        raise FrameRefused(ErrorCode.TOKEN_EXPIRED, "this token has expired: send auth with a new one")
    if identity is None or find_role(identity) is None:
        raise FrameRefused(ErrorCode.AUTH_FAILED, WANTED)
    return await db_call(_measure)(identity)


def describe_token(token: Token, seat: str) -> Json:
    """A token and its seat as `auth-response` shows them."""
    about = {"agent": seat, "role": find_role(token.identity), "expiresAt": token.expires_at_ms}
    return {key: value for key, value in about.items() if value}


def is_refused(credential_id: int) -> bool:
    """Whether a token is of no use for another reason than its end: it was revoked, or its user is suspended."""
    return not Credential.objects.filter(pk=credential_id, revoked_at=None, user__is_active=True).exists()


def _has_expired(token_digest: str) -> bool:
    known = Credential.objects.filter(digest=token_digest, revoked_at=None, user__is_active=True)
    return known.filter(expires_at__lte=db_now()).exists()


def _measure(identity: Identity) -> Token:
    expires_at = Credential.objects.values_list("expires_at", flat=True).get(pk=identity.credential_id)
    if expires_at is None:
        return Token(identity, None, None)
    return Token(identity, unix_ms(expires_at), (expires_at - db_now()).total_seconds())
