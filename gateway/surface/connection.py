"""A connection of `a2a-v1`: the upgrade, the sign-in, the seat, and frames to the client."""

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

from django.db import DatabaseError

from accounts.authn import Identity, digest, presented
from accounts.open_requests import OpenRequests, UnsignedSockets
from accounts.quotas import QuotaExceeded
from agents.core.errors import Unavailable
from agents.core.ledger import Ledger
from agents.core.ports import Clock
from agents.core.post import Evict
from agents.core.registration import MayNotConnect
from agents.links.channel.arrivals import Arrivals
from agents.links.channel.prompts import Prompts
from agents.links.frame_socket import SEND_WITHIN_S, FrameSocket
from agents.models.choices import TurnFailure
from gateway.service.client import Gateway, TeamClient
from gateway.service.frame_log import FrameNote
from gateway.service.messages import FrameSender
from gateway.service.open_messages import OpenMessages
from gateway.service.seat import NO_SESSION, Seat, SeatNameTaken, renew_seat, seat_registration
from gateway.surface.sign_in import Token, TokenSignIn, describe_token, get_token, get_wanted_seat
from gateway.wire import frames
from gateway.wire.errors import FrameRefused, GatewayErrorCode, bad_content
from gateway.wire.frames import Json
from gateway.wire.permissions import may_subscribe
from gateway.wire.protocol import (
    UNAUTHORIZED,
    GatewayProtocol,
    Parameters,
    UpgradeRefused,
    read_parameters,
)
from kit.asgi import Receive, Scope, Send, headers_of
from kit.async_db import db_call
from kit.concurrency import ConcurrencyLimit
from kit.durations import seconds
from kit.frame_queue import FrameQueue
from kit.ids import unguessable
from kit.sockets import (
    POLICY_VIOLATION,
    SERVICE_RESTART,
    TRY_AGAIN_LATER,
    find_set_heartbeat,
    refuse_upgrade,
)

logger = logging.getLogger(__name__)

AUTH_WITHIN_S = seconds(30.0, at_least_s=5.0)
NEVER_SIGNED_IN = "no token came in time"
NOT_RENEWED = "the token has expired, and no new one came"
REVOKED = "this token was revoked, or its user is halted"


class ClientConnection(FrameSocket, TeamClient):
    """The connection of a client by a socket; `GatewaySocket` reads its frames."""

    def __init__(
        self,
        *,
        gateway: Gateway,
        ledger: Ledger,
        clients: ConcurrencyLimit,
        callers: OpenRequests,
        unsigned: UnsignedSockets,
        arrivals: Arrivals,
        clock: Clock,
    ) -> None:
        super().__init__(unsigned, gateway.link, gateway.paces)
        self.gateway = gateway
        self.client_id = unguessable("client-")
        self.messages = OpenMessages(gateway.router, gateway.recent, self._answer_later, self._follow_receipts)
        self.seat: Seat | None = None
        self.protocol: GatewayProtocol
        self.note: FrameNote
        self._ledger = ledger
        expire = partial(self._end_unauthorized, GatewayErrorCode.TOKEN_EXPIRED, NOT_RENEWED)
        self._sign_in = TokenSignIn(clients, callers, expire)
        self._arrivals = arrivals
        self._clock = clock
        self._pushes = FrameQueue()
        self._prompts = 0  # that are being sent
        self._checked_at = clock()
        self._parameters: Parameters

    # For handlers.

    @property
    def signed_in(self) -> Identity | None:
        """See `gateway.service.client.TeamClient`."""
        return self._sign_in.identity

    @property
    def sender(self) -> FrameSender:
        """See `gateway.service.client.TeamClient`."""
        # Rows hold the channel of the receipts (`Letter.tells`): it stays that of the seat over later connections.
        session_id = self.seat.session_id if self.seat is not None else NO_SESSION
        return FrameSender.of(self.identity, self.seat_name, f"letters of {session_id or self.client_id}")

    # From the server.

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the socket until it ends."""
        try:
            query = str(scope.get("query_string", b""), "latin-1")
            self._parameters = read_parameters(query, scope["subprotocols"])
        except UpgradeRefused as refused:
            await refuse_upgrade(receive, send, 400, "protocol_error", str(refused))
            return
        scope["query_string"] = b""  # a token would stay in memory as long as the socket
        set_heartbeat = find_set_heartbeat(send)
        if set_heartbeat is not None:
            set_heartbeat(self._parameters.heartbeat_s)
        self.protocol = GatewayProtocol(self._clock, self._parameters.timeout_ms, set_heartbeat)
        try:
            await super().__call__(scope, receive, send)
        except asyncio.CancelledError:
            if not self._sign_in.was_dismissed():
                raise
            last = frames.error_frame(FrameRefused(GatewayErrorCode.AUTH_FAILED, REVOKED, reason="token_revoked"))
            with suppress(OSError, RuntimeError):
                async with asyncio.timeout(SEND_WITHIN_S):
                    await send({"type": "websocket.send", "text": frames.encode(last).decode()})
                    await send({"type": "websocket.close", "code": UNAUTHORIZED})
        finally:
            self._sign_in.end()

    async def connect(self) -> None:
        """Accept the upgrade, then sign the client in."""
        headers = headers_of(self.scope)
        self.scope["headers"].clear()
        # A browser sends a cookie by itself: it does not count here.
        headers.pop("cookie", None)
        token = presented(headers)
        given = token.digest if token else digest(self._parameters.token) if self._parameters.token else ""
        if not given and not await self._admit_unsigned():
            return
        await self.accept(self._parameters.subprotocol)
        within_s = min(AUTH_WITHIN_S, self._parameters.timeout_ms / 1000)
        expire = partial(self._end_unauthorized, GatewayErrorCode.CONNECTION_TIMEOUT, NEVER_SIGNED_IN)
        self._timer = asyncio.get_running_loop().call_later(within_s, expire)
        await self._guard(self._begin(given))
        # The hub answers an expired token, and waits for another token.
        is_waiting = self._sign_in.identity is None and not self._over
        if is_waiting and not self._unsigned.enter(self, self.scope):
            await self._finish(TRY_AGAIN_LATER, None)

    async def disconnect(self, code: int) -> None:
        """Clean up after the socket, whichever side closed it."""
        self._closed = True
        self._unsigned.leave(self)
        self.messages.end()
        self._stop_timer()
        await self._fail_open_prompts()
        if self.seat is not None:
            self.gateway.triad.leave(self.seat.connection_id)
        await asyncio.shield(self.gateway.channels.leave(self))
        if self.seat is not None:
            # Shielded: if this task is cancelled and the row stays, the agent looks connected for a while.
            await asyncio.shield(self._leave_seat(self.seat))

    # Signing in.

    async def _begin(self, token_digest: str) -> None:
        if token_digest:
            await self._authenticate(token_digest, at_upgrade=True)
        for flaw in self._parameters.flaws:
            if not self._over:
                await self._answer_refused(flaw)

    async def _authenticate(self, token_digest: str, *, at_upgrade: bool = False) -> None:
        """Sign in, or continue with another token of the same user, and of the same seat if the client has one.

        Raises:
            FrameRefused: 5002, 5003; the connection stays as it was, but for the third wrong token.
        """
        try:
            token = await get_token(self._ledger, token_digest)
            self._sign_in.check_same_client(token.identity, self.seat_name)
        except FrameRefused as refused:
            await self.send_frame(frames.auth_frame("rejected"))
            is_wrong = refused.code is GatewayErrorCode.AUTH_FAILED
            refused.close_code = UNAUTHORIZED if at_upgrade and is_wrong else self.protocol.count_auth_failure()
            raise
        if self._over:
            return
        wanted = self._parameters.agent_id if self._sign_in.identity is None else ""
        name = get_wanted_seat(token.identity, wanted)
        self._sign_in.take(token)
        self.pace = self._paces.of(token.identity.user_id)
        self._unsigned.leave(self)
        self.protocol.sign_in(token.left_s)
        self._stop_timer()
        if self.seat is not None:
            await db_call(renew_seat)(self.seat, token.identity.credential_id)
        elif name:
            await self._take_seat(name, token.identity, confirms=token)  # without subscriptions so far
            return
        await self.gateway.channels.restrict(self, partial(may_subscribe, token.identity, self.seat_name))
        await self._confirm(token)

    async def _confirm(self, token: Token) -> None:
        """Answer a sign-in."""
        await self.send_frame(frames.auth_frame("authenticated", **describe_token(token, self.seat_name)))

    async def _take_seat(self, name: str, identity: Identity, *, confirms: Token | None = None) -> None:
        """Take a seat. `confirms`: the token of the sign-in that names the seat, which is answered."""
        try:
            arrival = await self._arrivals.register(seat_registration(identity, name), lambda: self.is_gone)
        except (MayNotConnect, QuotaExceeded) as reason:
            code = GatewayErrorCode.CONNECTION_REFUSED
            raise FrameRefused(code, str(reason), reason=reason.code, close_code=TRY_AGAIN_LATER) from None
        except SeatNameTaken:
            text = f"another program of yours is connected as {name}"
            raise bad_content(text, reason="name_taken", close_code=POLICY_VIOLATION) from None
        if arrival is None:
            return
        registered = arrival.registered
        self.seat = Seat(arrival, Prompts(self._link.report, self._clock), self._clock)
        self._sign_in.take_seat()
        # At once: the row is committed, so other processes address prompts to this connection already.
        if not self._over:
            self._link.attach(self.seat.connection_id, self)
            self.gateway.seats.enter(identity.user_id, self.seat, self)
            self.gateway.triad.enter(self, self.seat.connection_id, identity.user_id, name)
        if confirms is not None:
            await self._confirm(confirms)  # before the first message
        if (old := registered.evicted) is not None:
            await self._link.send(old.process_id, Evict(old.connection_id, old.same_program))
        queue = self.gateway.router.queue
        greeting = queue.greet(registered.session_id, self._follow_receipts, is_new=registered.is_new)
        self.start(greeting, "stored messages")
        self._link.start(
            self.gateway.statuses.seat_taken(identity.user_id, name, was_connected=old is not None), "seat taken"
        )

    async def _leave_seat(self, seat: Seat) -> None:
        await self._remove_connection(seat.connection_id)
        statuses = self.gateway.statuses
        self._link.start(statuses.seat_left(self.identity.user_id, seat.name, seat.session_id), "seat left")

    async def _follow_receipts(self) -> None:
        """Have the receipts of its stored messages pushed."""
        if not self._over:  # without a signed-in client no code would end the subscription
            await self.gateway.channels.subscribe(self.identity.user_id, self.sender.tells, self)

    def _end_unauthorized(self, code: GatewayErrorCode, text: str) -> None:
        self._link.start(self._finish(UNAUTHORIZED, frames.error_frame(FrameRefused(code, text))), "unauthorized")

    # Frames out.

    async def send_frame(self, frame: Json) -> None:
        """Send a frame."""
        await self._send_bytes(frames.encode(frame))

    def push(self, type_name: str, frame: bytes) -> bool:
        """Send a frame, or queue it behind others. See `gateway.service.pushes.Subscriber`."""
        if self._over or self.protocol.has_expired or not self.protocol.may_push(type_name):
            return False
        if not self._pushes and not self._prompts and self.send_now is not None and self.send_now(frame):
            return True
        if not self._pushes.put(frame):
            self._over = True
            self._link.start(self._finish(TRY_AGAIN_LATER, None), "does not read")
            return False
        if len(self._pushes) == 1:
            self._link.start(self._guard(self._pushes.send_all(self._send_bytes)), "push")
        return True

    @property
    def has_room(self) -> bool:
        """See `gateway.service.pushes.SeatClient`."""
        return self._over or self._pushes.has_room

    async def wait_for_room(self, within_s: float) -> None:
        """See `gateway.service.pushes.SeatClient`."""
        await self._pushes.wait_for_room(within_s)

    def start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Go on with something while further frames are read."""
        self._link.start(self._guard(work), name)

    async def _answer_later(self, frame: Json) -> None:
        """Send the answer to a message, if the client is still there."""
        with suppress(OSError):
            await self.send_frame(frame)

    async def _answer_refused(self, refused: FrameRefused) -> None:
        if refused.is_silent:
            return
        ending = self.protocol.count_flaw(refused)
        if ending is not None or not refused.close_code:
            await self.send_frame(frames.error_frame(refused))
        if (last := ending or refused).close_code:
            await self._finish(last.close_code, frames.error_frame(last))

    async def _finish(self, code: int, last: Json | None, reason: TurnFailure = TurnFailure.CHANNEL_LOST) -> None:
        """Fail what is open, send a last frame if the client takes it, and close either way."""
        await self._fail_open_prompts(reason)
        await self._close_with(code, None if last is None else frames.encode(last))

    async def _guard(self, work: Coroutine[Any, Any, None]) -> None:
        """Answer refused frames; end the connection when the client or the database is gone."""
        try:
            try:
                await work
            except FrameRefused as refused:
                await self._answer_refused(refused)
        except OSError:  # the client is gone, or does not read
            await self._finish(TRY_AGAIN_LATER, None)
        except (DatabaseError, Unavailable):
            logger.exception("gateway.database_away")
            await self.close_from_hub(SERVICE_RESTART)

    async def _fail_open_prompts(self, reason: TurnFailure = TurnFailure.CHANNEL_LOST) -> None:
        """Take nothing more from this socket, and fail its open prompts at once."""
        # Before the first await: a prompt that arrives meanwhile is refused, not given to a socket that failed.
        self._over = True
        self._pushes.close()
        if self.seat is not None:
            self._link.detach(self.seat.connection_id)
            self.gateway.seats.leave(self.identity.user_id, self.seat)
            self.gateway.router.queue.expect(self.seat.session_id)
            await self.seat.prompts.lost(reason)
