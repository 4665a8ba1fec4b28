"""The socket of an agent: a Channels consumer that moves frames between the server and the protocol."""

import asyncio
import logging
from contextlib import suppress

from django.db import DatabaseError

from accounts.authn import Identity, presented
from accounts.models import Credential
from accounts.open_requests import UnsignedSockets
from accounts.quotas import QuotaExceeded
from agents.core import presence
from agents.core.errors import NotDelivered, Unavailable
from agents.core.ledger import Ledger
from agents.core.ports import Clock, FollowUpTaker
from agents.core.post import Evict, Hook, PostedPrompt, Withdrawn
from agents.core.presence import MayNotConnect, Registered
from agents.links.channel import frames
from agents.links.channel.agent_frames import (
    AgentFrameHandler,
    RegisteredAgent,
    digest_in,
    register_agent,
    registration_of,
)
from agents.links.channel.frame_socket import SEND_WITHIN_S, FrameSocket
from agents.links.channel.frames import AgentChannelFrame, BadChannelFrame, Error, Register
from agents.links.channel.prompts import Prompts, TooLarge, prompt_frame
from agents.links.channel.requests import ConnectionRequests, Requests
from agents.links.sockets import SocketLink, ToSocket
from agents.models.choices import TurnFailure
from agents.transcript import permissions
from agents.transcript.announcements import AgentFrame, CloseAgent, PermissionOutcome, Resolution
from agents.transcript.storage import StorageMeter
from kit.asgi import headers_of
from kit.async_db import db_call
from kit.durations import seconds
from kit.sockets import POLICY_VIOLATION, SERVICE_RESTART, TRY_AGAIN_LATER

logger = logging.getLogger(__name__)

REGISTER_WITHIN_S = seconds(10.0, at_least_s=2.5)
PING_EVERY_S = seconds(25.0)
SILENT_AFTER_S = seconds(60.0, at_least_s=12.0)
FEATURES = ["cancel", "direct_message", "task_artifact", "task_status"]

NORMAL = 1000
GOING_AWAY = 1001
SUPERSEDED = "superseded"


class AgentSocket(FrameSocket):
    """`/channel`, frame for frame (docs/reference/frames.md)."""

    def __init__(
        self,
        *,
        link: SocketLink,
        ledger: Ledger,
        requests: Requests,
        follow_ups: FollowUpTaker,
        meter: StorageMeter,
        unsigned: UnsignedSockets,
        process_id: str,
        clock: Clock,
    ) -> None:
        super().__init__(unsigned)
        self._link = link
        self._ledger = ledger
        self._meter = meter
        self._process_id = process_id
        self._clock = clock
        self._prompts = Prompts(link.report, clock)
        self._requests = ConnectionRequests(requests=requests, start=link.start, send_frame=self._send_if_open)
        self._follow_ups = follow_ups
        self._identity: Identity | None = None
        self._registered: Registered | None = None
        self._frame_handler: AgentFrameHandler | None = None
        self._deletes_session = False
        self._hears_cancel = False
        self.may_be_direct = False
        self._prompting = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._last_heard = self._last_pinged = clock()

    # From the server.

    async def connect(self) -> None:
        """Accept first: a refused upgrade would make clients retry for ever."""
        headers = headers_of(self.scope)
        self.scope["headers"].clear()  # the socket stays for long, and so would the token
        # The token comes as Bearer, or in the register frame: a cookie would be taken for it, and refused.
        headers.pop("cookie", None)
        token = presented(headers)
        if token is None and not await self._admit_unsigned():
            return
        await self.accept()
        self._timer = asyncio.get_running_loop().call_later(REGISTER_WITHIN_S, self._expire)
        if token is not None:
            await self._authenticate(token.digest)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Handle one message of the agent."""
        self._last_heard = self._clock()
        if self._over:
            return
        try:
            await self._take(text_data)
        except OSError:  # the other end is gone, or takes nothing
            await self._fail_open_prompts()
        except (DatabaseError, Unavailable):
            logger.exception("socket.database_away")
            await self.close_from_hub(SERVICE_RESTART)

    async def disconnect(self, code: int) -> None:
        """The socket is over, from whichever side."""
        self._closed = True
        self._unsigned.leave(self)
        self._requests.end()
        if self._timer is not None:
            self._timer.cancel()
        await self._fail_open_prompts()
        if self._registered is not None:
            # Shielded: if this task is cancelled and the row stays, the session
            # looks connected until a heartbeat drops it.
            await asyncio.shield(self._remove_connection(self._registered.connection_id))

    # From the link.

    @property
    def session_id(self) -> int:
        """See `agents.links.sockets.ServedSocket`."""
        assert self._registered is not None  # noqa: S101  for the type checker: the link holds registered ones
        return self._registered.session_id

    async def prompt(self, prompt: PostedPrompt) -> None:
        """Send a question. See `agents.links.sockets.ServedSocket`."""
        if self._over:
            raise NotDelivered
        # Before it is sent: the agent's answer may be read before `_send_encoded` returns.
        self._prompts.begin(prompt)
        try:
            async with self._prompting:  # in order, also while the agent takes nothing
                await self._send_encoded(frames.encode(prompt_frame(prompt)))
        except asyncio.CancelledError:  # still waiting for room: nothing left, and nothing may leave later
            self._prompts.withdraw(prompt.chat_id)
            raise
        except OSError:  # the server raises before it writes, so nothing left
            self._prompts.withdraw(prompt.chat_id)
            await self._fail_open_prompts()
            raise NotDelivered from None

    async def take(self, message: ToSocket) -> None:
        """Something from the hub. See `agents.links.sockets.ServedSocket`."""
        match message:
            case Evict():  # a newer connection has the session
                await self.close_from_hub(NORMAL, bye="" if message.same_program else SUPERSEDED, retry=False)
            case CloseAgent():
                await self.close_from_hub(NORMAL, bye=message.reason, retry=False)
            case AgentFrame():
                with suppress(OSError):
                    await self._send_bytes(bytes(message.frame))
            case PermissionOutcome():
                with suppress(OSError):
                    await self._send(_response(message.resolution))
                if message.piece is not None:
                    await self._prompts.tell_caller(message.chat_id, message.piece)
            case Withdrawn():
                await self._cancel(message.chat_id)
            case Hook(is_stop=True):
                await self._prompts.stopped()
            case Hook():
                self._prompts.hooked(begins=message.begins)

    # From the hub's clock.

    def is_idle(self, now: float) -> bool:
        """True if no caller waits for its replies any more."""
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
        """Reject the agent for good: it must not come back with this token."""
        await self._fail_open_prompts()
        await self._close_with(POLICY_VIOLATION, frames.encode(Error(code=code, message=message)))

    # Inside.

    async def _send_if_open(self, frame: AgentChannelFrame) -> None:
        """Answer a request, if the agent is still there."""
        if not self._over:
            with suppress(OSError):
                await self._send(frame)

    async def _send(self, frame: AgentChannelFrame) -> None:
        if not self._closed:
            async with asyncio.timeout(SEND_WITHIN_S):
                await self._send_encoded(frames.encode(frame))

    async def _take(self, text: str | None) -> None:
        try:
            if text is None:
                raise BadChannelFrame("bad_frame", "want JSON text")
            frame = frames.decode(text)
            if isinstance(frame, Register):
                await self._register(frame)
            elif self._frame_handler is None:
                raise BadChannelFrame("not_registered", "the first frame must be register")
            else:
                await self._frame_handler.take(frame)
        except TooLarge as large:
            await self._prompts.too_large(large)
            await self._send(large.error)
        except BadChannelFrame as bad:
            await self._send(bad.error)

    async def _cancel(self, chat_id: str) -> None:
        """The caller canceled; send a `cancel` frame to an agent that has the feature."""
        if self._prompts.cancel(chat_id) and self._hears_cancel:
            await self._send_if_open(frames.Cancel(chat_id=chat_id))

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
        if self._identity is None and not await self._authenticate(digest_in(frame)):
            return
        # Looking up the token took a while: the socket may have ended, and a row for it would have no socket.
        if self._over:
            return
        assert self._identity is not None  # noqa: S101  for the type checker
        # From here on the hub makes the agent wait, not the other way round.
        if self._timer is not None:
            self._timer.cancel()
        try:
            async with self._link.registering:
                register = registration_of(frame, self._identity)
                arrival = await db_call(register_agent)(register, process_id=self._process_id)
        except (MayNotConnect, QuotaExceeded) as reason:
            await self._send(Error(code=reason.code, message=str(reason)))
            await self.close_from_hub(TRY_AGAIN_LATER, bye=reason.code)
            return
        self._registered = arrival.registered
        self._deletes_session = frame.delete_on_disconnect
        self._hears_cancel = "cancel" in (frame.features or ())
        self.may_be_direct = "direct_message" in (frame.features or ())
        if not self._over:  # else it was told to leave meanwhile; `disconnect` takes the row away
            await self._welcome(arrival, self._identity)

    async def _welcome(self, arrival: RegisteredAgent, identity: Identity) -> None:
        registered = arrival.registered
        self._frame_handler = AgentFrameHandler(
            identity=identity,
            session_id=registered.session_id,
            prompts=self._prompts,
            requests=self._requests,
            follow_ups=self._follow_ups,
            ledger=self._ledger,
            meter=self._meter,
            send=self._send,
        )
        for one in arrival.unfinished:
            self._prompts.resume(one.prompt, one.for_s)
        # At once: the row is committed, so other processes address prompts to this connection already.
        self._link.attach(registered.connection_id, self)
        if (old := registered.evicted) is not None:
            # If it is lost, the heartbeat of that process finds the connection superseded and evicts it.
            await self._link.send(old.process_id, Evict(old.connection_id, old.same_program))
        await self._send(
            frames.Welcome(
                session_id=registered.public_id,
                routing_name=f"@{registered.routing_name}",
                channel_token_name=identity.credential_name,
                features=FEATURES,
            )
        )
        if not registered.is_new:
            await self._send_decisions(registered.session_id)

    async def _send_decisions(self, session_id: int) -> None:
        """Send the decisions made while the agent was away. The session is attached: a later decision finds it."""
        async with self._link.registering:
            resolutions = await db_call(permissions.take_unsent_decisions)(session_id)
        for resolution in resolutions:
            await self._send(_response(resolution))

    async def _remove_connection(self, connection_id: int) -> None:
        # Bounded like registering: a thousand sockets that end at once must
        # leave the ledger its turn at the database.
        async with self._link.registering:
            await db_call(presence.remove_connection)(connection_id, delete_session=self._deletes_session)

    async def _fail_open_prompts(self, reason: TurnFailure = TurnFailure.CHANNEL_LOST) -> None:
        """Take nothing more from this socket, and fail its open prompts at once."""
        # Set before the first await: a prompt that arrives meanwhile is
        # refused, not given to a socket that failed.
        self._over = True
        if self._registered is not None:
            self._link.detach(self._registered.connection_id)
        await self._prompts.lost(reason)

    def _expire(self) -> None:
        self._link.start(self.close_from_hub(POLICY_VIOLATION, bye="register_timeout"), "register timeout")


def _response(resolution: Resolution) -> frames.PermissionResponse:
    return frames.PermissionResponse(
        request_id=resolution.request_id, decision=resolution.decision, message=resolution.message
    )
