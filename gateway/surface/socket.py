"""One socket of `a2a-v1`: moves frames between the server, the protocol, the handlers and the link of agents."""

from functools import partial

from accounts.authn import Identity, digest
from agents.core.errors import NotDelivered
from agents.core.post import Evict, Hook, PostedPrompt, Withdrawn
from agents.links.frame_socket import GOING_AWAY
from agents.links.sockets import ToSocket
from agents.models.choices import TurnFailure
from agents.transcript.announcements import CloseAgent
from agents.transcript.pieces import size_of
from gateway.service.frame_log import FrameNote, begin_note
from gateway.service.status_feed import publish_delivered
from gateway.service.team_rules import check_signature
from gateway.surface.connection import ClientConnection
from gateway.surface.handlers import ROUTED_TYPES, get_handler
from gateway.surface.sign_in import is_refused
from gateway.wire import frames
from gateway.wire.errors import FrameRefused, GatewayErrorCode, bad_content, forbidden
from gateway.wire.frame_types import is_agent_name
from gateway.wire.frames import Envelope
from gateway.wire.permissions import TeamRole, check_frame, find_role, may_take_seat
from gateway.wire.protocol import NORMAL, UNAUTHORIZED
from kit.account_pace import ROUTED
from kit.async_db import db_call
from kit.sockets import TRY_AGAIN_LATER

PATHS = frozenset({"/", "/a2a", "/gateway", "/ws"})
FORGETS_EVERY_S = 25.0


class GatewaySocket(ClientConnection):
    """A client of the gateway; with a seat it is an agent, and the `ServedSocket` of its session."""

    may_be_direct = False

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Handle one message of the client."""
        if self._over:
            return
        if self.gateway.frame_log.is_full:
            await self.gateway.frame_log.wait_for_room()
        size = size_of(text_data) if text_data is not None else len(bytes_data or b"")
        self.note = begin_note(self.gateway.frame_log, self._clock, size)
        await self._guard(self._take(text_data))

    # From the link.

    @property
    def session_id(self) -> int:
        """See `agents.links.sockets.ServedSocket`."""
        assert self.seat is not None  # noqa: S101  for the type checker: the link holds seats
        return self.seat.session_id

    async def prompt(self, prompt: PostedPrompt) -> None:
        """Send a message to the agent. See `agents.links.sockets.ServedSocket`."""
        if self._over or self.seat is None or self.protocol.has_expired or not self.protocol.may_push("message"):
            raise NotDelivered
        frame = self.seat.begin(prompt)
        self._prompts += 1
        try:
            withdraw = partial(self.seat.withdraw, frame["id"], prompt.chat_id)
            await self._send_prompt(frames.encode(frame), withdraw)
        except NotDelivered:
            self._link.start(self._finish(TRY_AGAIN_LATER, None), "lost")
            raise
        finally:
            self._prompts -= 1
        if prompt.tells:
            await self.seat.prompts.end_told(prompt.chat_id)
        owner_id, channels = self.identity.user_id, self.gateway.channels
        if channels.may_reach(owner_id):
            self._link.start(publish_delivered(channels, owner_id, self.seat.name, frame), "delivered")

    async def take(self, message: ToSocket) -> None:
        """Something from the hub. See `agents.links.sockets.ServedSocket`."""
        match message:
            case Evict():
                await self._finish(
                    NORMAL, frames.disconnect_frame("error", "a newer connection has this seat", code="superseded")
                )
            case CloseAgent():
                await self._finish(NORMAL, frames.disconnect_frame("error", message.reason, code="dismissed"))
            case Withdrawn() if self.seat is not None:
                self.seat.prompts.cancel(message.chat_id)
            case Hook(is_stop=True) if self.seat is not None:
                await self.seat.prompts.stopped()
            case Hook() if self.seat is not None:
                self.seat.prompts.hooked(begins=message.begins)
            case _:  # frames of `/channel`
                return

    # From the hub's clock.

    def is_idle(self, now: float) -> bool:
        """True if no caller waits for its replies any more."""
        return self.seat is None or self.seat.prompts.is_idle(now)

    def is_due(self, now: float) -> bool:
        """True if `check_alive` has something to do. The server sends the pings, see `hub.socket_protocol`."""
        return now - self._checked_at >= FORGETS_EVERY_S

    async def check_alive(self, now: float) -> None:
        """Forget messages that were not answered in time."""
        self._checked_at = now
        if self.seat is not None:
            self.seat.forget_old(now)

    async def close_from_hub(
        self, code: int, *, bye: str = "", retry: bool = True, reason: TurnFailure = TurnFailure.CHANNEL_LOST
    ) -> None:
        """Close the socket from the hub's side. See `agents.links.sockets.ServedSocket`."""
        if bye == "restart":
            await self._finish(GOING_AWAY, frames.disconnect_frame("shutdown", "the hub restarts"), reason)
        else:
            await self._finish(code, frames.disconnect_frame("error", bye) if bye else None, reason)

    async def refuse(self, code: str, message: str) -> None:
        """Reject the agent for good: it must not come back with this token.

        An expired token is not revoked: a new one may come for some time, see `sign_in`.
        """
        if code == "token_revoked" and not await db_call(is_refused)(self.identity.credential_id):
            return
        refused = FrameRefused(GatewayErrorCode.AUTH_FAILED, message, reason=code)
        await self._finish(UNAUTHORIZED, frames.error_frame(refused))

    # Frames in.

    async def _take(self, text: str | None) -> None:
        """Serve a frame, and note it in the audit."""
        note, envelope = self.note, None
        self._name_client(note)
        try:
            envelope = self.protocol.read(text)
            note.read(envelope)
            await self._handle(envelope)
        except FrameRefused as refused:
            if envelope is not None:
                refused.about(envelope.correlation_id, envelope.id)
            self._name_client(note)
            note.finish(refused)
            raise
        except Exception:
            note.finish(has_failed=True)
            raise
        self._name_client(note)  # the frame may have signed the client in, and given it a seat
        if not note.is_deferred:
            note.finish()

    def _name_client(self, note: FrameNote) -> None:
        if (identity := self.signed_in) is not None:
            note.owner_id, note.source = identity.user_id, self.seat_name or identity.login

    async def _handle(self, envelope: Envelope) -> None:
        if (identity := self.signed_in) is not None:
            if envelope.sender:
                await self._check_sender(envelope.sender, identity)
            await check_signature(self.gateway.rules, identity.user_id, envelope)
            check_frame(identity, self.seat_name, envelope)
        match envelope.type:
            case "ping":
                ping = envelope.extra | envelope.content
                await self.send_frame(frames.pong_frame(ping, envelope.correlation_id))
            case "pong":
                return
            case "auth":
                await self._authenticate(digest(envelope.content["token"]))
            case "disconnect":
                await self._finish(NORMAL, None)
            case name:
                handle = get_handler(name)
                if name in ROUTED_TYPES:
                    await self.pace.keep(ROUTED)
                await handle(self, envelope)

    async def _check_sender(self, sender: str, identity: Identity) -> None:
        """`from` is the name of the seat; the first one of a channel token takes the seat."""
        if self.seat is not None or find_role(identity) is not TeamRole.AGENT:
            known = self.seat.name if self.seat is not None else identity.login
            if sender.lower() != known.lower():
                raise forbidden(f"from: this connection is {known}", field="from")
        elif not may_take_seat(identity, sender) and is_agent_name(sender):
            raise forbidden("from: this token is for the seat of another agent", field="from")
        elif is_agent_name(sender):
            await self._take_seat(sender, identity)
        else:
            text = "from: want the name of an agent: lower-case letters, digits and hyphens"
            raise bad_content(text, field="from")
