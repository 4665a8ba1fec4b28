"""The connection of an agent over `/channel`: its token, its registration, pings, and the end."""

import asyncio
from contextlib import suppress

from accounts.authn import Identity, presented
from accounts.models import Credential
from accounts.open_requests import UnsignedSockets
from accounts.quotas import QuotaExceeded
from agents.core.errors import Unavailable
from agents.core.ledger import Ledger
from agents.core.ports import Clock, FollowUpTaker
from agents.core.post import Evict
from agents.core.registration import AgentRegistration, MayNotConnect, Registered
from agents.links.channel import frames
from agents.links.channel.arrivals import Arrivals
from agents.links.channel.driving import ActingFor, RegisteredAgent
from agents.links.channel.frames import AgentChannelFrame, BadChannelFrame, Error, Register
from agents.links.channel.prompts import Prompts
from agents.links.channel.requests import ConnectionRequests, Requests
from agents.links.frame_socket import GOING_AWAY, FrameSocket
from agents.links.sockets import SocketLink
from agents.models.choices import TurnFailure
from agents.transcript import permissions
from agents.transcript.announcements import Resolution
from agents.transcript.storage import StorageMeter
from kit.asgi import headers_of
from kit.async_db import db_call
from kit.durations import seconds
from kit.sockets import POLICY_VIOLATION, SERVICE_RESTART, TRY_AGAIN_LATER

REGISTER_WITHIN_S = seconds(10.0, at_least_s=2.5)
PING_EVERY_S = seconds(25.0)
SILENT_AFTER_S = seconds(60.0, at_least_s=12.0)
FEATURES = ["cancel", "direct_message", "task_artifact", "task_status"]


class AgentConnection(FrameSocket):
    """The connection of an agent; `AgentSocket` reads its frames (docs/reference/frames.md)."""

    def __init__(
        self,
        *,
        link: SocketLink,
        ledger: Ledger,
        requests: Requests,
        follow_ups: FollowUpTaker,
        meter: StorageMeter,
        unsigned: UnsignedSockets,
        arrivals: Arrivals,
        process_id: str,
        clock: Clock,
    ) -> None:
        super().__init__(unsigned, link, arrivals.paces)
        self._ledger = ledger
        self._follow_ups = follow_ups
        self._meter = meter
        self._arrivals = arrivals
        self._process_id = process_id
        self._clock = clock
        self._prompts = Prompts(link.report, clock)
        self._requests = ConnectionRequests(requests=requests, start=link.start, send_frame=self._send_if_open)
        self._identity: Identity | None = None
        self._registered: Registered | None = None
        self._owner: ActingFor
        self._deletes_session = False
        self._hears_cancel = False
        self.may_be_direct = False
        self._last_heard = self._last_pinged = clock()

    # Called by the server.

    async def connect(self) -> None:
        """Accept the socket before the token is checked: a refused upgrade would make clients retry for ever."""
        headers = headers_of(self.scope)
        self.scope["headers"].clear()  # the scope lives as long as the socket, and would keep the token in memory
        # The token comes as Bearer, or in the register frame: `presented` would take a cookie for the token.
        headers.pop("cookie", None)
        token = presented(headers)
        if token is None and not await self._admit_unsigned():
            return
        await self.accept()
        self._timer = asyncio.get_running_loop().call_later(REGISTER_WITHIN_S, self._expire)
        if token is not None:
            await self._authenticate(token.digest)

    async def disconnect(self, code: int) -> None:
        """Clean up after the socket was closed by either side."""
        self._closed = True
        self._unsigned.leave(self)
        self._requests.end()
        self._stop_timer()
        await self._fail_open_prompts()
        if self._registered is not None:
            # Shielded: if this task is cancelled and the row stays, the session
            # looks connected until a heartbeat drops it.
            connection_id = self._registered.connection_id
            await asyncio.shield(self._remove_connection(connection_id, delete_session=self._deletes_session))

    # Called by the link, and by the hub's timer.

    @property
    def session_id(self) -> int:
        """See `agents.links.sockets.ServedSocket`."""
        assert self._registered is not None  # noqa: S101  for the type checker: the link holds registered ones
        return self._registered.session_id

    def is_idle(self, now: float) -> bool:
        """True if no caller waits for replies of this agent any more."""
        return self._prompts.is_idle(now)

    async def check_alive(self, now: float) -> None:
        """Send a ping when it is due; close the socket of an agent that was silent for too long."""
        self._prompts.forget_old(now)
        if now - self._last_heard >= SILENT_AFTER_S:
            await self.close_from_hub(GOING_AWAY)
        elif now - self._last_pinged >= PING_EVERY_S:
            self._last_pinged = now
            try:
                await self._send(frames.Ping(ts=frames.now()))
            except OSError:
                await self.close_from_hub(GOING_AWAY)

    def is_due(self, now: float) -> bool:
        """True if `check_alive` has something to do."""
        return now - self._last_pinged >= PING_EVERY_S or now - self._last_heard >= SILENT_AFTER_S

    async def close_from_hub(
        self, code: int, *, bye: str = "", retry: bool = True, reason: TurnFailure = TurnFailure.CHANNEL_LOST
    ) -> None:
        """Close the socket from the hub's side. See `agents.links.sockets.ServedSocket`."""
        await self._fail_open_prompts(reason)
        await self._close_with(code, frames.encode(frames.Bye(reason=bye, retry=retry)) if bye else None)

    async def refuse(self, code: str, message: str) -> None:
        """Reject the agent for good: it must not reconnect with this token."""
        await self._fail_open_prompts()
        await self._close_with(POLICY_VIOLATION, frames.encode(Error(code=code, message=message)))

    # Inside.

    async def _send(self, frame: AgentChannelFrame) -> None:
        await self._send_bytes(frames.encode(frame))

    async def _send_if_open(self, frame: AgentChannelFrame) -> None:
        """Send a frame, unless the agent has closed the socket."""
        with suppress(OSError):
            await self._send(frame)

    async def _authenticate(self, digest: str) -> bool:
        try:
            found = await self._ledger.look_up(digest, None)
        except Unavailable:
            await self._close_with(SERVICE_RESTART, None)
            return False
        if found.identity is None or found.identity.kind != Credential.Kind.CHANNEL:
            await self.refuse("auth_failed", "no live channel token: mint one and connect with it")
            return False
        self._identity = found.identity
        self._unsigned.leave(self)
        return True

    async def _register(self, frame: Register) -> None:
        if self._registered is not None:
            raise BadChannelFrame("already_registered", "this connection is registered")
        if self._identity is None and not await self._authenticate(_digest_in(frame)):
            return
        # The socket may have closed while the token was looked up: its row would then have no socket.
        if self._over:
            return
        assert self._identity is not None  # noqa: S101  for the type checker
        # From here on the agent waits for the hub, so the agent's time limit no longer applies.
        self._stop_timer()
        try:
            arrival = await self._arrivals.register(_registration_of(frame, self._identity), lambda: self.is_gone)
        except (MayNotConnect, QuotaExceeded) as reason:
            await self._send(Error(code=reason.code, message=str(reason)))
            await self.close_from_hub(TRY_AGAIN_LATER, bye=reason.code)
            return
        if arrival is None:
            return
        self._registered = arrival.registered
        self.pace = self._paces.of(self._identity.user_id)
        self._owner = ActingFor.owner(self._identity.user_id, self._identity.login, self.session_id)
        self._deletes_session = frame.delete_on_disconnect
        self._hears_cancel = "cancel" in (frame.features or ())
        self.may_be_direct = "direct_message" in (frame.features or ())
        if not self._over:  # if the socket was closed meanwhile, `disconnect` deletes the row
            await self._welcome(arrival, self._identity.credential_name)

    async def _welcome(self, arrival: RegisteredAgent, token_name: str) -> None:
        registered = arrival.registered
        for prompt in arrival.unfinished:
            self._prompts.resume(prompt)
        # At once: the row is committed, so other processes address prompts to this connection already.
        self._link.attach(registered.connection_id, self)
        await self._send(  # before the first prompt
            frames.Welcome(
                session_id=registered.public_id,
                routing_name=f"@{registered.routing_name}",
                channel_token_name=token_name,
                features=FEATURES,
            )
        )
        if (old := registered.evicted) is not None:
            # If the message is lost, the heartbeat of that process finds the superseded connection and closes it.
            await self._link.send(old.process_id, Evict(old.connection_id, old.same_program))
        if registered.is_new:
            return
        # Decisions that were made while the agent was disconnected. Later decisions find the attached socket.
        async with self._link.registering:
            resolutions = await db_call(permissions.take_unsent_decisions)(registered.session_id)
        for resolution in resolutions:
            await self._send(response_of(resolution))

    async def _fail_open_prompts(self, reason: TurnFailure = TurnFailure.CHANNEL_LOST) -> None:
        """Ignore further frames of this socket, and fail its open prompts at once."""
        # Set before the first await: a prompt that arrives meanwhile must be refused, not sent to this socket.
        self._over = True
        if self._registered is not None:
            self._link.detach(self._registered.connection_id)
        await self._prompts.lost(reason)

    def _expire(self) -> None:
        self._link.start(self.close_from_hub(POLICY_VIOLATION, bye="register_timeout"), "register timeout")


def response_of(resolution: Resolution) -> frames.PermissionResponse:
    """The frame that tells an agent how its permission request ended."""
    return frames.PermissionResponse(
        request_id=resolution.request_id, decision=resolution.decision, message=resolution.message
    )


def _digest_in(frame: Register) -> str:
    """The digest of the token in a register frame, the header's fallback."""
    token = presented({"authorization": f"Bearer {frame.token or ''}"})
    return token.digest if token else ""


def _registration_of(frame: Register, identity: Identity) -> AgentRegistration:
    """The registration of an agent, with texts that a database can store."""

    def clean(text: str | None) -> str:
        return (text or "").replace("\0", "")

    return AgentRegistration(
        user_id=identity.user_id,
        credential_id=identity.credential_id,
        session_id=frame.session_id,
        routing_name=frame.routing_name,
        host=clean(frame.host),
        cwd=clean(frame.cwd),
        os_user=clean(frame.os_user),
        pid=frame.pid,
        channel_version=clean(frame.channel_version),
    )
