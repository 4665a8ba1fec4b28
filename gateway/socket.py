"""One socket of `a2a-v1`: a consumer that moves frames between the server, the protocol and the agents."""

import asyncio
import logging
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from django.db import DatabaseError

from accounts.authn import AGENT_KINDS, Identity, digest, presented
from accounts.open_requests import OpenRequests
from agents.core import presence
from agents.core.ask_starter import Asker
from agents.core.errors import NotDelivered, Unavailable
from agents.core.ledger import Ledger
from agents.core.ports import Clock
from agents.core.post import Evict, Hook, Prompt, Withdrawn
from agents.core.presence import MayNotConnect
from agents.links.channel.consumer import SEND_WITHIN_S, FrameSocket
from agents.links.channel.frames import BadFrame
from agents.links.channel.prompts import Prompts
from agents.links.channel.requests import ActingFor, find_acting_for
from agents.links.sockets import SocketLink, ToSocket
from agents.transcript.announcements import CloseAgent
from gateway import frames, registry
from gateway.envelope import Envelope, Json, is_agent_name
from gateway.errors import ErrorCode, FrameRefused, refuse_denied
from gateway.messages import LONGEST_WAIT_S, REFUSALS, MessageRouter, OpenMessages, Sender
from gateway.protocol import (
    NORMAL,
    UNAUTHORIZED,
    GatewayProtocol,
    Parameters,
    UpgradeRefused,
    read_parameters,
)
from gateway.seat import NameTaken, Seat, take_seat
from kit.asgi import Receive, Scope, Send, headers_of
from kit.async_db import db_call
from kit.durations import seconds
from kit.ids import unguessable
from kit.sockets import POLICY_VIOLATION, SERVICE_RESTART, TRY_AGAIN_LATER, refuse_upgrade

logger = logging.getLogger(__name__)

PATHS = frozenset({"/", "/a2a", "/gateway", "/ws"})
KINDS = ("channel", "session")
AUTH_WITHIN_S = seconds(30.0, at_least_s=5.0)
FORGETS_EVERY_S = 25.0
GOING_AWAY = 1001
NO_SESSION = 0
REVOKED = "this token was revoked, or its user is halted"


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


class GatewaySocket(FrameSocket):
    """A client of the gateway; with a seat it is an agent, and `agents.links.sockets.Socket` of its session."""

    may_be_direct = False

    def __init__(
        self,
        *,
        link: SocketLink,
        ledger: Ledger,
        router: MessageRouter,
        clients: GatewayClients,
        callers: OpenRequests,
        process_id: str,
        clock: Clock,
    ) -> None:
        super().__init__()
        self._link = link
        self._ledger = ledger
        self._clients = clients
        self._callers = callers
        self._process_id = process_id
        self._clock = clock
        self._client_id = unguessable("client-")
        self._router = router
        self._messages = OpenMessages(router, self._say_later)
        self._identity: Identity | None = None
        self._seat: Seat | None = None
        self._counted: asyncio.Task[Any] | None = None  # this task, while it is a client without a seat
        self._prompting = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._tended_at = clock()
        self._parameters: Parameters
        self._protocol: GatewayProtocol

    # From the server.

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve it to its end."""
        try:
            query = str(scope.get("query_string", b""), "latin-1")
            self._parameters = read_parameters(query, scope["subprotocols"])
        except UpgradeRefused as refused:
            await refuse_upgrade(receive, send, 400, "protocol_error", str(refused))
            return
        scope["query_string"] = b""  # the socket stays for long, and so would a token in it
        self._protocol = GatewayProtocol(self._clock, self._parameters.timeout_ms)
        try:
            await super().__call__(scope, receive, send)
        except asyncio.CancelledError:
            if self._counted is None or not self._callers.was_dismissed(self._counted):
                raise
            last = frames.error_frame(FrameRefused(ErrorCode.AUTH_FAILED, REVOKED, reason="token_revoked"))
            with suppress(OSError, RuntimeError):
                async with asyncio.timeout(SEND_WITHIN_S):
                    await send({"type": "websocket.send", "text": frames.encode(last).decode()})
                    await send({"type": "websocket.close", "code": UNAUTHORIZED})
        finally:
            self._stop_counting()

    async def connect(self) -> None:
        """Accept, then find out who it is."""
        await self.accept(self._parameters.subprotocol)
        within_s = min(AUTH_WITHIN_S, self._parameters.timeout_ms / 1000)
        self._timer = asyncio.get_running_loop().call_later(within_s, self._expire)
        headers = headers_of(self.scope)
        self.scope["headers"].clear()
        # A browser sends a cookie by itself: it does not count here.
        headers.pop("cookie", None)
        token = presented(headers)
        given = token.digest if token else digest(self._parameters.token) if self._parameters.token else ""
        await self._guard(self._begin(given))

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """One message of the client."""
        if not self._over:
            await self._guard(self._take(text_data))

    async def disconnect(self, code: int) -> None:
        """The socket is over, from whichever side."""
        self._closed = True
        self._messages.end()
        if self._timer is not None:
            self._timer.cancel()
        await self._lose()
        if self._seat is not None:
            # Shielded: if this task is cancelled and the row stays, the agent
            # looks connected until a heartbeat drops it.
            await asyncio.shield(self._leave_seat(self._seat.connection_id))

    # From the link.

    @property
    def session_id(self) -> int:
        """See `agents.links.sockets.Socket`."""
        assert self._seat is not None  # noqa: S101  for the type checker: the link holds seats
        return self._seat.session_id

    async def prompt(self, prompt: Prompt) -> None:
        """Send a message to the agent. See `agents.links.sockets.Socket`."""
        if self._over or self._seat is None or not self._protocol.may_push("message"):
            raise NotDelivered
        frame = self._seat.begin(prompt)
        try:
            async with self._prompting:  # in order, also while the agent takes nothing
                await self._send_encoded(frames.encode(frame))
        except asyncio.CancelledError:  # still waiting for room: nothing left, and nothing may leave later
            self._seat.withdraw(frame["id"], prompt.chat_id)
            raise
        except OSError:  # the server raises before it writes, so nothing left
            self._seat.withdraw(frame["id"], prompt.chat_id)
            await self._lose()
            self._link.start(self._finish(TRY_AGAIN_LATER, None), "lost")
            raise NotDelivered from None
        if prompt.tells:
            await self._seat.end_told(prompt)

    async def take(self, message: ToSocket) -> None:
        """Something from the hub. See `agents.links.sockets.Socket`."""
        match message:
            case Evict():
                await self._finish(NORMAL, frames.disconnect_frame("error", "a newer connection has this seat"))
            case CloseAgent():
                await self._finish(NORMAL, frames.disconnect_frame("error", message.reason))
            case Withdrawn() if self._seat is not None:
                self._seat.prompts.cancel(message.chat_id)
            case Hook(is_stop=True) if self._seat is not None:
                await self._seat.prompts.stopped()
            case Hook() if self._seat is not None:
                self._seat.prompts.hooked(begins=message.begins)
            case _:  # frames of `/channel`
                return

    # From the hub's clock.

    def is_idle(self, now: float) -> bool:
        """Whether no caller waits for its replies any more."""
        return self._seat is None or self._seat.prompts.is_idle(now)

    def is_due(self, now: float) -> bool:
        """Whether `tend` has something to do. The server sends the pings, see `hub.sockets`."""
        return now - self._tended_at >= FORGETS_EVERY_S

    async def tend(self, now: float) -> None:
        """Forget what was not answered."""
        self._tended_at = now
        if self._seat is not None:
            self._seat.forget_old(now)

    async def leave(self, code: int, *, bye: str = "", retry: bool = True) -> None:
        """End the connection from the hub's side."""
        if bye == "restart":
            await self._finish(GOING_AWAY, frames.disconnect_frame("shutdown", "the hub restarts"))
        else:
            await self._finish(code, frames.disconnect_frame("error", bye) if bye else None)

    async def refuse(self, code: str, message: str) -> None:
        """Reject the agent for good: it must not come back with this token."""
        refused = FrameRefused(ErrorCode.AUTH_FAILED, message, reason=code)
        await self._finish(UNAUTHORIZED, frames.error_frame(refused))

    # Frames in.

    async def _take(self, text: str | None) -> None:
        envelope = self._protocol.read(text)
        try:
            await self._serve(envelope)
        except FrameRefused as refused:
            refused.correlation_id, refused.frame_id = envelope.correlation_id, envelope.id
            raise

    async def _serve(self, envelope: Envelope) -> None:
        if envelope.sender and self._identity is not None:
            await self._check_sender(envelope.sender, self._identity)
        match envelope.type:
            case "ping":
                ping = envelope.extra | envelope.content
                await self._say_frame(frames.pong_frame(ping, envelope.correlation_id))
            case "auth":
                await self._authenticate(digest(envelope.content["token"]))
            case "handshake":
                await self._shake_hands(envelope)
            case "disconnect":
                await self._finish(NORMAL, None)
            case "discovery":
                await self._discover(envelope)
            case "status":
                await self._show_status(envelope)
            case "message" | "response" | "error":
                await self._take_message(envelope)

    async def _check_sender(self, sender: str, identity: Identity) -> None:
        """`from` is the name of the seat; the first one of a channel token takes the seat."""
        if self._seat is not None or identity.kind not in AGENT_KINDS:
            known = self._seat.name if self._seat is not None else identity.login
            if sender.lower() != known.lower():
                text = f"from: this connection is {known}"
                raise FrameRefused(ErrorCode.PERMISSION_DENIED, text, field="from")
        elif is_agent_name(sender):
            await self._take_seat(sender, identity)
        else:
            text = "from: want the name of an agent: lower-case letters, digits and hyphens"
            raise FrameRefused(ErrorCode.INVALID_CONTENT, text, field="from")

    async def _shake_hands(self, envelope: Envelope) -> None:
        if envelope.content["action"] != "advertise":
            text = "content.action: only the gateway acknowledges"
            raise FrameRefused(ErrorCode.INVALID_CONTENT, text, field="content.action")
        self._protocol.take_capabilities(envelope.content.get("capabilities", {}))
        behalf = self._find_behalf(envelope)
        names: list[str] = []
        if behalf and not behalf.isolated:
            names = await self._router.read(registry.load_names, behalf.asker.user_id)
        await self._say_frame(frames.acknowledge_frame(self._client_id, names))

    async def _discover(self, envelope: Envelope) -> None:
        user_id = self._get_behalf(envelope).asker.user_id
        match envelope.content["action"]:
            case "list":
                content: Json = {"agents": await self._router.read(registry.load_agents, user_id)}
            case "get" if "name" not in envelope.content:
                raise FrameRefused(ErrorCode.MISSING_FIELD, "content.name is missing", field="content.name")
            case "get":
                content = {"agents": [await self._get_agent(envelope.content["name"], user_id)]}
            case action:
                text = f"this hub does not serve discovery of {action} yet"
                raise FrameRefused(ErrorCode.UNKNOWN_TYPE, text, reason="not_supported")
        await self._reply(envelope, "discovery", content)

    async def _show_status(self, envelope: Envelope) -> None:
        if envelope.content:
            text = "this hub does not take the status of agents yet: it knows who is connected and who works"
            raise FrameRefused(ErrorCode.UNKNOWN_TYPE, text, reason="not_supported")
        agents = await self._router.read(registry.load_agents, self._get_behalf(envelope).asker.user_id)
        shown = [{"agent": one["name"], "status": one["status"]} for one in agents]
        await self._reply(envelope, "status", {"agent": frames.GATEWAY, "status": "online", "agents": shown})

    async def _take_message(self, envelope: Envelope) -> None:
        """A reply to an open message settles it; any other message is asked."""
        if self._seat is not None and (frame_id := self._seat.find_open(envelope)) is not None:
            try:
                await self._seat.take_reply(frame_id, envelope)
            except BadFrame as bad:
                raise FrameRefused(ErrorCode.INVALID_CONTENT, str(bad), reason=bad.error.code) from None
        elif envelope.type != "message" or (self._seat is not None and self._seat.is_late(envelope)):
            logger.info("gateway.late_response")
        else:
            behalf = self._get_behalf(envelope)
            key = self._messages.enter(envelope)
            wait_s = min(LONGEST_WAIT_S, envelope.metadata.get("ttl", self._protocol.timeout_ms / 1000))
            assert self._identity is not None  # noqa: S101  for the type checker: `_get_behalf` has one
            sender = Sender(self._identity.login, self._seat.name if self._seat is not None else "")
            self._link.start(self._messages.run(key, envelope, behalf, sender, wait_s), "message")

    async def _get_agent(self, name: str, user_id: int) -> Json:
        try:
            return await self._router.read(registry.get_agent, name, user_id)
        except REFUSALS as refusal:
            raise refuse_denied(refusal) from None

    def _find_behalf(self, envelope: Envelope) -> ActingFor | None:
        """On whose behalf it acts: an agent that works on a message for its sender, else for the token's user."""
        if self._identity is None:
            return None
        if self._seat is None:
            return ActingFor(Asker(user_id=self._identity.user_id, login=self._identity.login), NO_SESSION)
        return find_acting_for(self._seat.driver_of(envelope), self._identity, self._seat.session_id)

    def _get_behalf(self, envelope: Envelope) -> ActingFor:
        behalf = self._find_behalf(envelope)
        if behalf is None:
            raise FrameRefused(ErrorCode.AUTH_REQUIRED, "sign in first: send auth with a token")
        if behalf.isolated:
            text = "while this agent works for another caller it reaches no other agent"
            raise FrameRefused(ErrorCode.PERMISSION_DENIED, text, reason="isolated")
        return behalf

    # Signing in.

    async def _begin(self, token_digest: str) -> None:
        if token_digest:
            await self._authenticate(token_digest, at_upgrade=True)
        for flaw in self._parameters.flaws:
            if not self._over:
                await self._answer_refused(flaw)

    async def _authenticate(self, token_digest: str, *, at_upgrade: bool = False) -> None:
        found = (await self._ledger.look_up(token_digest, None)).identity
        if found is None or found.kind not in KINDS or found.is_limited or not self._is_same_token(found):
            await self._say_frame(frames.auth_frame("rejected"))
            refused = self._protocol.count_auth_failure()
            refused.close_code = UNAUTHORIZED if at_upgrade else refused.close_code
            raise refused
        if self._identity is None:
            await self._sign_in(found)
        role = "agent" if found.kind in AGENT_KINDS else "operator"
        name = {"agent": self._seat.name} if self._seat is not None else {}
        await self._say_frame(frames.auth_frame("authenticated", **name, role=role))

    def _is_same_token(self, found: Identity) -> bool:
        """A connection stays the one of its first token: it ends when that one is revoked."""
        return self._identity is None or self._identity.credential_id == found.credential_id

    async def _sign_in(self, identity: Identity) -> None:
        if self._over:
            return
        name = self._parameters.agent_id
        if name and identity.kind not in AGENT_KINDS:
            text = "agentId: only a channel token takes the seat of an agent"
            raise FrameRefused(ErrorCode.PERMISSION_DENIED, text, field="agentId", close_code=POLICY_VIOLATION)
        self._clients.enter(identity.user_id)
        self._counted = self._callers.enter(identity.credential_id)
        self._identity = identity
        self._protocol.is_authenticated = True
        if self._timer is not None:
            self._timer.cancel()
        if name:
            await self._take_seat(name, identity)

    async def _take_seat(self, name: str, identity: Identity) -> None:
        try:
            async with self._link.registering:
                arrival = await db_call(take_seat)(identity, name, self._process_id)
        except MayNotConnect as reason:
            code = ErrorCode.CONNECTION_REFUSED
            raise FrameRefused(code, str(reason), reason=reason.code, close_code=TRY_AGAIN_LATER) from None
        except NameTaken:
            text = f"another program of yours is connected as {name}"
            raise FrameRefused(
                ErrorCode.INVALID_CONTENT, text, reason="name_taken", close_code=POLICY_VIOLATION
            ) from None
        self._seat = Seat(arrival, identity.user_id, Prompts(self._link.report, self._clock), self._clock)
        self._stop_counting()
        # At once: the row is committed, so other processes address prompts to this connection already.
        if not self._over:
            self._link.attach(self._seat.connection_id, self)
        if (old := arrival.registered.evicted) is not None:
            await self._link.send(old.process_id, Evict(old.connection_id, old.same_program))

    async def _leave_seat(self, connection_id: int) -> None:
        # Bounded like registering: a thousand sockets that end at once must
        # leave the ledger its turn at the database.
        async with self._link.registering:
            await db_call(presence.remove_connection)(connection_id)

    def _stop_counting(self) -> None:
        if self._counted is not None and self._identity is not None:
            self._callers.leave(self._identity.credential_id, self._counted)
            self._clients.leave(self._identity.user_id)
            self._counted = None

    def _expire(self) -> None:
        text = "no token came in time"
        refused = FrameRefused(ErrorCode.CONNECTION_TIMEOUT, text)
        self._link.start(self._finish(UNAUTHORIZED, frames.error_frame(refused)), "auth timeout")

    # Frames out.

    async def _reply(self, envelope: Envelope, type_name: str, content: Json) -> None:
        about = {"correlationId": envelope.correlation_id, "parentId": envelope.id}
        metadata = {key: value for key, value in about.items() if value}
        await self._say_frame(frames.make_frame(type_name, content, metadata))

    async def _say_frame(self, frame: Json) -> None:
        await self._send_bytes(frames.encode(frame))

    async def _say_later(self, frame: Json) -> None:
        """Send the answer to a message, if the client is still there."""
        with suppress(OSError):
            await self._say_frame(frame)

    async def _answer_refused(self, refused: FrameRefused) -> None:
        if refused.is_silent:
            return
        ending = self._protocol.count_flaw(refused)
        if ending is None and not refused.close_code:
            await self._say_frame(frames.error_frame(refused))
            return
        if ending is not None:
            await self._say_frame(frames.error_frame(refused))
        last = ending or refused
        await self._finish(last.close_code, frames.error_frame(last))

    async def _finish(self, code: int, last: Json | None) -> None:
        """Fail what is open, send a last frame if the client takes it, and close either way."""
        await self._lose()
        with suppress(OSError):
            if last is not None and not self._closed:
                async with asyncio.timeout(SEND_WITHIN_S):
                    await self._send_encoded(frames.encode(last))
        with suppress(OSError):
            await self._end(code)

    async def _guard(self, work: Coroutine[Any, Any, None]) -> None:
        """Answer what is refused; end the connection when the client or the database is gone."""
        try:
            try:
                await work
            except FrameRefused as refused:
                await self._answer_refused(refused)
        except OSError:  # the other end is gone, or takes nothing
            await self._finish(TRY_AGAIN_LATER, None)
        except (DatabaseError, Unavailable):
            logger.exception("gateway.database_away")
            await self.leave(SERVICE_RESTART)

    async def _lose(self) -> None:
        """Nothing from this socket counts any more; what it owes fails at once."""
        # Set before the first await: a prompt that arrives meanwhile is
        # refused, not given to a socket that failed.
        self._over = True
        if self._seat is not None:
            self._link.detach(self._seat.connection_id)
            await self._seat.prompts.lost()
