"""`POST /api/v1/gateway/fipa`: an ACL message is sent as the frame that it stands for, and answered by another.

The frame is handled like one of a socket, by a client that lives as long as the request (docs/adr/0133).
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from accounts.authn import Identity, TokenScope
from agents.core.rest_server import RestAnswer, RestServer, json_answer
from gateway.service.client import Gateway, TeamClient
from gateway.service.frame_log import begin_note
from gateway.service.messages import FrameSender
from gateway.service.open_messages import OpenMessages
from gateway.service.seat import Seat
from gateway.service.team_rules import check_signature
from gateway.surface.handlers import get_handler
from gateway.surface.handlers.messages import send as send_to_agent
from gateway.wire import frames, permissions
from gateway.wire.errors import FrameRefused, bad_content, forbidden, missing, request_error
from gateway.wire.fipa import REPLIES, as_information, from_acl, to_acl
from gateway.wire.frames import Envelope, Json, check_frame, name_frame, read_type
from gateway.wire.permissions import Action, check_action
from gateway.wire.protocol import DEFAULT_MS, GatewayProtocol
from kit import strict_json
from kit.account_pace import AccountPace
from kit.asgi import HttpRequest, RequestRefused, Send
from kit.ids import unguessable
from kit.tasks import start_apart

PATH = "/api/v1/gateway/fipa"
SENT = frozenset({"message", "request", "proposal", "broadcast"})
NO_CONTENT = RestAnswer(204, b"", ())


class RequestClient(TeamClient):
    """The user of one request. The client has no seat, and takes no pushes."""

    def __init__(self, gateway: Gateway, identity: Identity) -> None:
        self.gateway = gateway
        self.client_id = unguessable("client-")
        self.protocol = GatewayProtocol(time.monotonic, DEFAULT_MS)
        self.protocol.is_authenticated = True
        self.messages = OpenMessages(gateway.router, gateway.recent, self.send_frame)
        self.seat: Seat | None = None
        self.pace = AccountPace(0)
        self.note = begin_note(gateway.frame_log, time.monotonic, 0)
        self.note.owner_id, self.note.source = identity.user_id, identity.login
        self._identity = identity
        self._said: list[Json] = []
        self._started: list[asyncio.Task[None]] = []

    @property
    def signed_in(self) -> Identity:
        """The user and token of the request."""
        return self._identity

    @property
    def is_over(self) -> bool:
        """False: the client lives as long as its request."""
        return False

    @property
    def sender(self) -> FrameSender:
        """The sender of its messages."""
        return FrameSender.of(self._identity)

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
            raise forbidden(f"from: this token is of {self._identity.login}", field="from")
        handle = handle or get_handler(type_.name)
        await check_signature(self.gateway.rules, self._identity.user_id, envelope)
        permissions.check_frame(self._identity, "", envelope)
        await handle(self, envelope)

    async def send_frame(self, frame: Json) -> None:
        """Note an answer."""
        self._said.append(frame)

    def push(self, type_name: str, frame: bytes) -> bool:
        """Drop the frame: a request gets no pushes."""
        return False

    def start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Go on with something; `exchange` waits for it."""
        self._started.append(asyncio.get_running_loop().create_task(work, name=name))


@dataclass(frozen=True, slots=True)
class FipaEndpoint:
    """Serves `PATH`. A message with `reply-with` waits for its answer, one without is delivered (204)."""

    http: RestServer
    gateway: Gateway

    async def __call__(self, request: HttpRequest, send: Send) -> None:
        """Answer one request; nothing a client sends makes this raise."""
        await self.http.serve(request, send, self._answer(request), "gateway.http_failed", explain=request_error)

    async def _answer(self, request: HttpRequest) -> RestAnswer:
        body = await request.read_checked(("POST",))
        identity = await self.http.get_caller(request, TokenScope.ASK)
        try:
            acl = strict_json.read(body)
        except strict_json.UnreadableText as flaw:
            raise RequestRefused(400, "validation_failed", str(flaw)) from None
        if not isinstance(acl, dict):
            raise RequestRefused(400, "validation_failed", "an ACL message is an object")
        answer = await self._send(request, identity, acl)
        if answer is None:
            return NO_CONTENT
        return json_answer(to_acl({"agent": identity.login} | answer))

    async def _send(self, request: HttpRequest, identity: Identity, acl: Json) -> Json | None:
        try:
            frame = _read_frame(acl)
        except FrameRefused as refused:
            refused.correlation_id = str(acl.get("reply-with", ""))
            return frames.error_frame(refused)
        client = RequestClient(self.gateway, identity)
        exchange = client.exchange(frame, _deliver if frame["type"] in REPLIES else None)
        answer = start_apart(self.gateway.link.start, exchange, "ACL message")
        try:
            return await self.http.wait(request, identity, answer)
        finally:
            client.messages.end()


def _read_frame(acl: Json) -> Json:
    """The frame that an ACL message represents.

    Raises:
        FrameRefused: the message is not in order, or stands for no frame that clients may send over HTTP.
    """
    frame = from_acl(acl, frames.now_ms())
    if frame["type"] in REPLIES:
        if "agent" not in frame:
            raise missing("receiver: want one agent", field="receiver")
        return frame
    if frame["type"] not in SENT:
        raise bad_content(f"{acl['performative']}: over HTTP nothing is pushed", field="performative")
    return frame


async def _deliver(client: TeamClient, envelope: Envelope) -> None:
    """Send an agent of the caller's team a reply or a decision as a frame of that type; any other agent a message.

    Such a decision decides no proposal. An agent takes each `error` for an error of the gateway, and may end its
    connection.
    """
    check_action(client.identity, Action.SEND, own="", agent="")
    found = await client.gateway.router.find_addressee(envelope.agent, client.identity.user_id)
    is_told = envelope.type == "error" or not found.is_own
    send_to_agent(client, as_information(envelope) if is_told else envelope)
