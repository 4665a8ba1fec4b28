"""The token of a connection: its user, its seat and its expiry."""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

from accounts.authn import Identity
from accounts.models import Credential
from accounts.open_requests import OpenRequests
from agents.core.ledger import Ledger
from gateway.wire.errors import FrameRefused, GatewayErrorCode, forbidden
from gateway.wire.frames import Json
from gateway.wire.permissions import find_role, find_seat, may_take_seat
from kit.async_db import db_call
from kit.clock import db_now, unix_ms
from kit.concurrency import ConcurrencyLimit
from kit.durations import seconds
from kit.sockets import POLICY_VIOLATION, TRY_AGAIN_LATER

WANTED = "want a live channel, session or app token that is for the gateway"
GRACE_S = seconds(30.0, at_least_s=3.0)
AHEAD_S = 1.5  # revoked tokens are looked for each second, and expired ones are among them


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
        raise FrameRefused(GatewayErrorCode.TOKEN_EXPIRED, "this token has expired: send auth with a new one")
    if identity is None or find_role(identity) is None:
        raise FrameRefused(GatewayErrorCode.AUTH_FAILED, WANTED)
    return await db_call(_measure)(identity)


def describe_token(token: Token, seat: str) -> Json:
    """A token and its seat as `auth-response` shows them."""
    about = {"agent": seat, "role": find_role(token.identity), "expiresAt": token.expires_at_ms}
    return {key: value for key, value in about.items() if value}


def is_refused(credential_id: int) -> bool:
    """True if a token is of no use for another reason than its end: it was revoked, or its user is suspended."""
    return not Credential.objects.filter(pk=credential_id, revoked_at=None, user__is_active=True).exists()


def _has_expired(token_digest: str) -> bool:
    known = Credential.objects.filter(digest=token_digest, revoked_at=None, user__is_active=True)
    return known.filter(expires_at__lte=db_now()).exists()


def _measure(identity: Identity) -> Token:
    expires_at = Credential.objects.values_list("expires_at", flat=True).get(pk=identity.credential_id)
    if expires_at is None:
        return Token(identity, None, None)
    return Token(identity, unix_ms(expires_at), (expires_at - db_now()).total_seconds())


def too_many_sockets(most: int) -> FrameRefused:
    """The user holds `most` sockets without a seat."""
    text = "you hold too many sockets open here"
    return FrameRefused(GatewayErrorCode.CONNECTION_REFUSED, text, close_code=TRY_AGAIN_LATER)


class TokenSignIn:
    """The sign-in of one connection.

    A client without a seat is counted, and ended when its token is revoked; for a client with a seat the row of
    its connection is watched instead.

    `on_over`: called when the time to renew an expired token is over.
    """

    def __init__(self, clients: ConcurrencyLimit, callers: OpenRequests, on_over: Callable[[], None]) -> None:
        self.identity: Identity | None = None
        self._clients = clients
        self._callers = callers
        self._on_over = on_over
        self._has_seat = self._is_counted = False
        self._watched: asyncio.Task[Any] | None = None  # the task of the connection
        self._timers: list[asyncio.TimerHandle] = []

    def check_same_client(self, identity: Identity, seat: str) -> None:
        """Check that a token goes on with the connection: it stays that of its first user, and of its seat.

        Raises:
            FrameRefused: 5002.
        """
        if self.identity is None:
            return
        if self.identity.user_id != identity.user_id or (seat and not may_take_seat(identity, seat)):
            raise FrameRefused(GatewayErrorCode.AUTH_FAILED, "this token is of another user or agent")

    def take(self, token: Token) -> None:
        """Sign in, or go on with a renewed token; call it in the task of the connection.

        Raises:
            FrameRefused: the user holds as many sockets as one may.
        """
        if self.identity is None:
            self._clients.enter(token.identity.user_id)
            self._is_counted = True
        self._stop_watching()
        self._stop_timers()
        self.identity = token.identity
        if not self._has_seat:
            self._watched = self._callers.enter(token.identity.credential_id)
        if token.left_s is not None:
            loop = asyncio.get_running_loop()
            self._timers = [
                loop.call_later(max(0.0, token.left_s - AHEAD_S), self._stop_watching),
                loop.call_later(token.left_s + GRACE_S, self._on_over),
            ]

    def take_seat(self) -> None:
        """Let the connection take the seat of its agent."""
        self._has_seat = True
        self._stop_counting()

    def end(self) -> None:
        """End the sign-in of a connection that has ended."""
        self._stop_timers()
        self._stop_counting()

    def was_dismissed(self) -> bool:
        """True if the task of the connection was cancelled because the token is no longer good."""
        return self._watched is not None and self._callers.was_dismissed(self._watched)

    def _stop_counting(self) -> None:
        self._stop_watching()
        if self._is_counted and self.identity is not None:
            self._clients.leave(self.identity.user_id)
            self._is_counted = False

    def _stop_watching(self) -> None:
        if self._watched is not None and self.identity is not None:
            self._callers.leave(self.identity.credential_id, self._watched)
            self._watched = None

    def _stop_timers(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers = []


def get_wanted_seat(identity: Identity, agent_id: str) -> str:
    """The seat that the address or the token names; empty: none.

    Raises:
        FrameRefused: 5004, the token is not for it.
    """
    name = agent_id or find_seat(identity)
    if name and not may_take_seat(identity, name):
        text = "agentId: only a channel token, or one to connect as this agent, takes its seat"
        raise forbidden(text, field="agentId", close_code=POLICY_VIOLATION)
    return name
