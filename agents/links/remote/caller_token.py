"""Tells a remote server who asks, when its owner switched that on: by a short-lived JWT for each request."""

from collections.abc import Awaitable, Callable

import msgspec

from accounts.signing import NoKey, sign
from agents.core.types import Ask
from agents.links.remote.failures import NotSigned
from agents.settings import get_settings
from kit.async_db import db_call
from kit.clock import near_now
from kit.ids import unguessable

CALLER_HEADER = "Clawbridge-Caller"
CALLER_JWT_TYP = "clawbridge-caller+jwt"
VALID_S = 60
_encode = msgspec.json.Encoder().encode

SignCaller = Callable[[], Awaitable[str]]


def caller_signer(ask: Ask, server_url: str) -> SignCaller:
    """What signs a fresh JWT about an ask for one server, for each request (docs/howto/publish-a-remote-agent.md).

    Raises, when it is called:
        NotSigned: the hub's key cannot be read; nothing was sent.
    """

    def sign_caller() -> str:
        now = int(near_now().timestamp())
        claims = {
            "iss": get_settings().public_url,
            "sub": str(ask.caller_id),
            "aud": server_url,
            "iat": now,
            "exp": now + VALID_S,
            "jti": unguessable(),
            "login": ask.caller_login,
            "agent": ask.target.handle,
        }
        try:
            return sign(_encode(claims), {"typ": CALLER_JWT_TYP})
        except NoKey:
            raise NotSigned("the hub cannot sign who asks: its signing key cannot be read") from None

    return db_call(sign_caller)
