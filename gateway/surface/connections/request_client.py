"""A client of the gateway for the length of one HTTP request: its frame is handled like one of a socket."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from accounts.authn import Identity
from agents.core.ask_starter import Asker
from agents.links.channel.requests import ActingFor
from gateway.service.client import Gateway
from gateway.service.frame_log import begin_note
from gateway.service.messages.addressing import Sender
from gateway.service.messages.open_messages import OpenMessages
from gateway.service.seats.seat import NO_SESSION, Seat
from gateway.service.team.team_rules import check_signature
from gateway.surface.handlers.table import get_handler
from gateway.wire import frames, permissions
from gateway.wire.errors import ErrorCode, FrameRefused
from gateway.wire.frames import Envelope, Json, check_frame, name_frame, read_type
from gateway.wire.protocol import DEFAULT_MS, GatewayProtocol
from kit.ids import unguessable


class RequestClient:
    """The user of one request, as `gateway.service.client.Client`. It has no seat, and takes no pushes."""

    def __init__(self, gateway: Gateway, identity: Identity) -> None:
        self.gateway = gateway
        self.client_id = unguessable("client-")
        self.protocol = GatewayProtocol(time.monotonic, DEFAULT_MS)
        self.protocol.is_authenticated = True
        self.messages = OpenMessages(gateway.router, self.say)
        self.seat: Seat | None = None
        self.note = begin_note(gateway.frame_log, time.monotonic, 0)
        self.note.owner_id, self.note.source = identity.user_id, identity.login
        self._identity = identity
        self._said: list[Json] = []
        self._started: list[asyncio.Task[None]] = []

    @property
    def identity(self) -> Identity:
        """The signed-in user and token."""
        return self._identity

    @property
    def is_over(self) -> bool:
        """Never: it lives as long as its request."""
        return False

    @property
    def sender(self) -> Sender:
        """The sender of its messages."""
        return Sender.of(self._identity)

    async def exchange(
        self, frame: Json, handle: "Callable[[RequestClient, Envelope], Awaitable[None]] | None" = None
    ) -> Json | None:
        """Handle a frame; the frame that answers it, or None. A refusal is an `error` frame.

        An `event` with the state of a message is the answer only if no other frame comes. `handle`: handles the
        frame instead of the handler of its type.
        """
        self.note.bytes = len(frames.encode(frame))
        try:
            await self._handle(frame, handle)
        except FrameRefused as refused:
            self.note.finish(refused)
            return frames.error_frame(name_frame(refused, frame))
        await asyncio.gather(*self._started)
        if not self.note.is_deferred:
            self.note.finish()
        answers = [one for one in self._said if one["type"] != "event"] or self._said
        decisions = [one for one in answers if one["type"] == "decision"]  # of a proposal that was decided already
        return next(iter(decisions or answers), None)

    async def _handle(
        self, frame: Json, handle: "Callable[[RequestClient, Envelope], Awaitable[None]] | None"
    ) -> None:
        type_ = read_type(frame)
        envelope = check_frame(frame, type_)
        self.note.read(envelope)
        if envelope.sender and envelope.sender.lower() != self._identity.login.lower():
            text = f"from: this token is of {self._identity.login}"
            raise FrameRefused(ErrorCode.PERMISSION_DENIED, text, field="from")
        handle = handle or get_handler(type_.name)
        await check_signature(self.gateway.rules, self._identity.user_id, envelope)
        permissions.check_frame(self._identity, "", envelope)
        await handle(self, envelope)

    def find_behalf(self, envelope: Envelope) -> ActingFor | None:
        """Its user."""
        return self.get_behalf(envelope)

    def get_behalf(self, envelope: Envelope) -> ActingFor:
        """Its user."""
        return ActingFor(Asker(user_id=self._identity.user_id, login=self._identity.login), NO_SESSION)

    async def reply(self, envelope: Envelope, type_name: str, content: Json) -> None:
        """Answer a frame."""
        await self.say(frames.answer_frame(envelope, type_name, content))

    async def say(self, frame: Json) -> None:
        """Note an answer."""
        self._said.append(frame)

    def push(self, type_name: str, frame: bytes) -> bool:
        """Take nothing: a request has one answer."""
        return False

    def start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Go on with something; `exchange` waits for it."""
        self._started.append(asyncio.get_running_loop().create_task(work, name=name))
