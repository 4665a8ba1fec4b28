"""Who a connection is signed in as, the sockets of users that are counted, and the end of their tokens."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

from accounts.authn import Identity
from accounts.open_requests import OpenRequests
from gateway.errors import ErrorCode, FrameRefused
from gateway.tokens import Token
from kit.durations import seconds
from kit.sockets import TRY_AGAIN_LATER

GRACE_S = seconds(30.0, at_least_s=3.0)
AHEAD_S = 1.5  # the watch of revoked tokens looks each second, and takes expired ones for revoked


class GatewayClients:
    """Counts the sockets of each user that have no seat, at most `per_user` in this process."""

    def __init__(self, per_user: int) -> None:
        self._per_user = per_user
        self._open: Counter[int] = Counter()

    def enter(self, user_id: int) -> None:
        """Count a socket.

        Raises:
            FrameRefused: its user holds as many as one may.
        """
        if self._open[user_id] >= self._per_user:
            text = "you hold too many sockets open here"
            raise FrameRefused(ErrorCode.CONNECTION_REFUSED, text, close_code=TRY_AGAIN_LATER)
        self._open[user_id] += 1

    def leave(self, user_id: int) -> None:
        """A socket is over, or took a seat."""
        self._open[user_id] -= 1
        if self._open[user_id] <= 0:
            del self._open[user_id]


class SignIn:
    """The sign-in of one connection. Without a seat it is counted, and ended when its token is revoked; with one
    the row of its connection is watched instead.

    `on_over`: called when the time to renew an expired token is over.
    """

    def __init__(self, clients: GatewayClients, callers: OpenRequests, on_over: Callable[[], None]) -> None:
        self.identity: Identity | None = None
        self._clients = clients
        self._callers = callers
        self._on_over = on_over
        self._has_seat = self._is_counted = False
        self._watched: asyncio.Task[Any] | None = None  # the task of the connection
        self._timers: list[asyncio.TimerHandle] = []

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
        """It is an agent now."""
        self._has_seat = True
        self._stop_counting()

    def end(self) -> None:
        """The connection is over."""
        self._stop_timers()
        self._stop_counting()

    def was_dismissed(self) -> bool:
        """Whether the task of the connection was cancelled because the token is no longer good."""
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
