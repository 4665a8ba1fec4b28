"""One agent's socket: a Channels consumer that moves frames between the server and the protocol."""

import asyncio
import logging
from contextlib import suppress

from django.db import DatabaseError
from msgspec import Raw

from accounts.authn import Identity, presented
from accounts.models import Credential
from agents import presence
from agents.errors import NotDelivered, Unavailable
from agents.ledger import Ledger
from agents.links.channel import frames
from agents.links.channel.driving import Driving
from agents.links.channel.expected import TooLarge
from agents.links.channel.frame import Frame
from agents.links.channel.frame_socket import FrameSocket
from agents.links.channel.frames import BadFrame, ChatEvent, Error, Register, Saying, TailEvent
from agents.links.channel.link import ChannelLink, ToSocket
from agents.links.channel.onward import Onward
from agents.links.channel.protocol import ChannelProtocol
from agents.links.channel.registering import arrive, digest_in, registration_of
from agents.links.channel.request_frames import (
    AgentsRequest,
    DispatchRequest,
    PeersRequest,
    PermissionRequest,
    ProbeRequest,
    Request,
    RouteRequest,
)
from agents.links.channel.requests import Requests, on_behalf
from agents.links.channel.task_frames import TaskArtifact, TaskStatus, kept_of
from agents.ports import Clock
from agents.post import Dismiss, Evict, Final, Hook, Prompt, Tell, Withdrawn
from agents.presence import MayNotConnect, Registered
from agents.transcript import permissions
from agents.transcript.permissions import NoSuchRequest, TooManyPending
from agents.transcript.recording import MAX_TYPE_CHARS, BadPayload, NewEvent, clean
from agents.transcript.storage import NO_ROOM, StorageMeter
from kit.async_db import db_call

logger = logging.getLogger(__name__)

REGISTER_WITHIN_S = 10.0
PING_EVERY_S = 25.0
SILENT_AFTER_S = 60.0
LATE_REPLY_S = 60.0
FEATURES = ["cancel", "task_artifact", "task_status"]

POLICY_VIOLATION = 1008
SERVICE_RESTART = 1012
TRY_AGAIN_LATER = 1013
NORMAL = 1000
GOING_AWAY = 1001
SUPERSEDED = frames.Bye(reason="superseded", retry=False)


class AgentSocket(FrameSocket):
    """`/channel`, frame for frame (docs/reference/frames.md)."""

    def __init__(
        self,
        *,
        link: ChannelLink,
        ledger: Ledger,
        requests: Requests,
        meter: StorageMeter,
        process_id: str,
        clock: Clock,
    ) -> None:
        super().__init__()
        self._link = link
        self._ledger = ledger
        self._meter = meter
        self._process_id = process_id
        self._clock = clock
        self._protocol = ChannelProtocol()
        self._driving = Driving()
        self._onward = Onward(requests=requests, start=link.start, say=self._say)
        self._identity: Identity | None = None
        self._registered: Registered | None = None
        self._deletes_session = False
        self._hears_cancel = False
        self._timer: asyncio.TimerHandle | None = None
        self._last_heard = self._last_pinged = clock()

    # From the server.

    async def connect(self) -> None:
        """Accept first: a refused upgrade would make clients retry for ever."""
        await self.accept()
        self._timer = asyncio.get_running_loop().call_later(REGISTER_WITHIN_S, self._expire)
        headers = {str(name, "latin-1"): str(value, "latin-1") for name, value in self.scope["headers"]}
        headers.pop("cookie", None)
        if token := presented(headers):
            await self._authenticate(token.digest)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """One message of the agent."""
        self._last_heard = self._clock()
        if self._over:
            return
        try:
            await self._take(text_data)
        except OSError:  # the other end is gone, or takes nothing
            await self._lose()
        except (DatabaseError, Unavailable):
            logger.exception("socket.database_away")
            await self.leave(SERVICE_RESTART)

    async def disconnect(self, code: int) -> None:
        """The socket is over, from whichever side."""
        self._closed = True
        self._onward.end()
        if self._timer is not None:
            self._timer.cancel()
        await self._lose()
        if self._registered is not None:
            await asyncio.shield(self._leave(self._registered.connection_id))

    # From the link.

    @property
    def session_id(self) -> int:
        """See `agents.links.channel.link.Socket`."""
        assert self._registered is not None  # noqa: S101  for the type checker: the link holds registered ones
        return self._registered.session_id

    async def prompt(self, prompt: Prompt) -> None:
        """Send a question. See `agents.links.channel.link.Socket`."""
        if self._over:
            raise NotDelivered
        now = self._clock()
        self._protocol.expect(prompt.chat_id, prompt.home, until=now + prompt.wait_s, tells=prompt.tells)
        self._driving.begin(prompt, now)
        try:
            await self._send_text(prompt_frame(prompt))
        except asyncio.CancelledError:  # still waiting for room: nothing left, and nothing may leave later
            self._withdraw(prompt.chat_id)
            raise
        except OSError:  # the server raises before it writes, so nothing left
            self._withdraw(prompt.chat_id)
            await self._lose()
            raise NotDelivered from None

    async def take(self, message: ToSocket) -> None:
        """Something from the hub. See `agents.links.channel.link.Socket`."""
        match message:
            case Evict():  # a newer connection has the session: fail what is open here, then leave
                await self._lose()
                await self._part(NORMAL, None if message.same_program else SUPERSEDED)
            case Dismiss():
                await self._lose()
                await self._part(NORMAL, frames.Bye(reason=message.reason, retry=False))
            case Tell():
                with suppress(OSError):
                    await self._send_bytes(bytes(message.frame))
            case Withdrawn():
                await self._cancel(message.chat_id)
            case Hook(is_stop=True):
                await self._stopped()
            case Hook():
                self._driving.hooked(begins=message.begins)

    # From the hub's clock.

    def is_idle(self, now: float) -> bool:
        """Whether nobody waits for it any more."""
        return self._protocol.is_idle(now)

    async def tend(self, now: float) -> None:
        """Ping when it is time; leave an agent that was silent for too long."""
        self._protocol.forget_before(now - LATE_REPLY_S)
        if now - self._last_heard >= SILENT_AFTER_S:
            await self.leave(GOING_AWAY)
        elif now - self._last_pinged >= PING_EVERY_S:
            self._last_pinged = now
            try:
                await self._send(frames.Ping(ts=frames.now()))
            except OSError:
                await self.leave(GOING_AWAY)

    def is_due(self, now: float) -> bool:
        """Whether `tend` has something to do."""
        return now - self._last_pinged >= PING_EVERY_S or now - self._last_heard >= SILENT_AFTER_S

    async def leave(self, code: int, *, bye: str = "", retry: bool = True) -> None:
        """End the connection from the hub's side."""
        await self._lose()
        await self._part(code, frames.Bye(reason=bye, retry=retry) if bye else None)

    async def refuse(self, code: str, message: str) -> None:
        """Reject the agent for good: it must not come back with this token."""
        await self._lose()
        await self._part(POLICY_VIOLATION, Error(code=code, message=message))

    # Inside.

    async def _take(self, text: str | None) -> None:
        try:
            if text is None:
                raise BadFrame("bad_frame", "want JSON text")
            await self._handle(frames.decode(text))
        except TooLarge as large:
            await self._link.report(self._protocol.too_large(large))
            await self._send(large.error)
        except BadFrame as bad:
            await self._send(bad.error)

    async def _handle(self, frame: Frame) -> None:
        if isinstance(frame, Register):
            await self._register(frame)
        elif self._registered is None:
            raise BadFrame("not_registered", "the first frame must be register")
        else:
            await self._act(frame, self._registered.session_id)

    async def _act(self, frame: Frame, session_id: int) -> None:
        match frame:
            case ChatEvent():
                await self._hear(frame, session_id)
            case TailEvent():
                await self._record("tail", frame.event_type, frame.payload, session_id)
                if frame.event_type == "Stop":
                    await self._stopped()
                    await self._ledger.release_session(session_id)
                elif frame.event_type == "UserPromptSubmit":
                    self._driving.hooked(begins=True)
            case PermissionRequest():
                await self._ask_leave(frame, session_id)
            case AgentsRequest() | PeersRequest() | RouteRequest() | DispatchRequest() | ProbeRequest():
                await self._begin(frame, session_id)

    async def _hear(self, event: ChatEvent, session_id: int) -> None:
        """Pass what is of a reply on to who waits; keep what else is said."""
        saying = frames.saying_of(event)
        if saying is None:
            await self._record("chat", event.event_type, event.payload, session_id)
            return
        is_news = await self._reply(saying)
        kept = kept_of(saying) if isinstance(saying, TaskStatus | TaskArtifact) else None
        if is_news and kept is not None:
            await self._record("chat", event.event_type, Raw(kept.encode()), session_id)

    async def _reply(self, saying: Saying) -> bool:
        """Pass it on; False when it is of a reply that was too large already."""
        reports = self._protocol.hear(saying)
        for report in reports:
            if isinstance(report.message, Final):
                self._driving.answered(report.message.chat_id, self._clock())
        await self._link.report(reports)
        return bool(reports)

    async def _cancel(self, chat_id: str) -> None:
        """Nobody wants that answer any more; an agent that knows the word is told."""
        if not self._protocol.cancel(chat_id):
            return
        self._driving.unwanted(chat_id, self._clock())
        if self._hears_cancel:
            await self._say(frames.Cancel(chat_id=chat_id))

    async def _record(self, kind: str, type_: str, payload: Raw, session_id: int) -> None:
        """Keep an event. One that cannot be kept now is lost, not the connection and what its agent is asked."""
        assert self._identity is not None  # noqa: S101  for the type checker
        if not await self._meter.takes(self._identity.user_id, len(bytes(payload))):
            await self._send(Error(code="quota_exceeded", message=NO_ROOM))
            return
        try:
            await self._ledger.record(NewEvent(session_id, kind, type_[:MAX_TYPE_CHARS], clean(bytes(payload))))
        except BadPayload as bad:
            raise BadFrame("bad_frame", str(bad)) from None
        except Unavailable:
            await self._send(Error(code="unavailable", message="the hub cannot keep events now"))

    async def _begin(self, request: Request, session_id: int) -> None:
        """Serve what the agent asks for in a task of its own: on whose behalf is decided now."""
        assert self._identity is not None  # noqa: S101  for the type checker
        behalf = on_behalf(self._driving.find(self._clock()), self._identity, session_id)
        for refusal in self._onward.take(request, behalf):
            await self._send(refusal)

    async def _ask_leave(self, frame: PermissionRequest, session_id: int) -> None:
        if not frame.request_id.isprintable():
            raise BadFrame("bad_frame", "requestId: want printable text")
        try:
            await db_call(permissions.request)(
                session_id, frame.request_id, tool=frame.tool, input_preview=frame.input_preview
            )
        except TooManyPending:
            raise BadFrame("too_many_requests", "too many requests for leave wait already") from None
        except NoSuchRequest:  # the session was deleted: the socket is about to hear it
            return

    async def _stopped(self) -> None:
        """The agent's program is at the end of a turn: what nobody waits for ends with it."""
        now = self._clock()
        await self._link.report(self._protocol.stop(self._driving.stopped(now), now))

    def _withdraw(self, chat_id: str) -> None:
        self._protocol.withdraw(chat_id)
        self._driving.withdraw(chat_id)

    async def _authenticate(self, digest: str) -> bool:
        try:
            found = await self._ledger.look_up(digest, None)
        except Unavailable:
            await self._part(SERVICE_RESTART, None)
            return False
        if found.identity is None or found.identity.kind != Credential.Kind.CHANNEL:
            await self.refuse("auth_failed", "no live channel token: mint one and connect with it")
            return False
        self._identity = found.identity
        return True

    async def _register(self, frame: Register) -> None:
        if self._registered is not None:
            raise BadFrame("already_registered", "this connection is registered")
        if self._identity is None and not await self._authenticate(digest_in(frame)):
            return
        if self._over:
            return
        assert self._identity is not None  # noqa: S101  for the type checker
        if self._timer is not None:
            self._timer.cancel()
        try:
            async with self._link.registering:
                register = registration_of(frame, self._identity)
                arrival = await db_call(arrive)(register, process_id=self._process_id)
        except MayNotConnect as reason:
            await self._send(Error(code=reason.code, message=str(reason)))
            await self.leave(TRY_AGAIN_LATER, bye=reason.code)
            return
        self._registered = registered = arrival.registered
        self._deletes_session = frame.delete_on_disconnect
        self._hears_cancel = "cancel" in (frame.features or ())
        if self._over:  # it was told to leave meanwhile; `disconnect` takes the row away
            return
        for one in arrival.unfinished:
            self._driving.resume(one.prompt, one.for_s, self._clock())
        self._link.attach(registered.connection_id, self)
        if (old := registered.evicted) is not None:
            await self._link.send(old.process_id, Evict(old.connection_id, old.same_program))
        await self._send(
            frames.Welcome(
                session_id=registered.public_id,
                routing_name=f"@{registered.routing_name}",
                channel_token_name=self._identity.credential_name,
                features=FEATURES,
            )
        )
        if not registered.is_new:
            await self._tell_decisions(registered.session_id)

    async def _tell_decisions(self, session_id: int) -> None:
        """What was decided while it was away. It is attached: a later decision finds it."""
        async with self._link.registering:
            decisions = await db_call(permissions.take_untold)(session_id)
        for decision in decisions:
            await self._send_bytes(decision)

    async def _leave(self, connection_id: int) -> None:
        async with self._link.registering:
            await db_call(presence.leave)(connection_id, delete_session=self._deletes_session)

    async def _lose(self) -> None:
        """Nothing from this socket counts any more; what it owes fails at once."""
        self._over = True
        if self._registered is not None:
            self._link.detach(self._registered.connection_id)
        await self._link.report(self._protocol.lost())

    def _expire(self) -> None:
        self._link.start(self.leave(POLICY_VIOLATION, bye="register_timeout"), "register timeout")


def prompt_frame(prompt: Prompt) -> frames.Prompt:
    """A question as its agent gets it."""
    return frames.Prompt(
        chat_id=prompt.chat_id,
        text=prompt.text,
        asker_user=prompt.asker,
        task_id=prompt.task_id,
        context_id=prompt.context_id,
        parts=list(prompt.parts),
        traceparent=prompt.traceparent,
    )
