"""`POST /api/v1/gateway/fipa`: an ACL message is sent as the frame that it stands for, and answered by another."""

from dataclasses import dataclass

from accounts.authn import Identity, TokenScope
from agents.core.ask_starter import NOT_ASKED
from gateway.service.client import Client, Gateway
from gateway.service.messages.addressing import find_addressee
from gateway.surface.connections.request_client import RequestClient
from gateway.surface.handlers.messages import send as send_to_agent
from gateway.surface.http import GatewayHttp, HttpAnswer, json_answer
from gateway.wire import frames
from gateway.wire.errors import ErrorCode, FrameRefused, refuse_denied
from gateway.wire.fipa import REPLIES, as_information, from_acl, to_acl
from gateway.wire.frames import Envelope, Json
from gateway.wire.permissions import Action, check_action
from kit import strict_json
from kit.asgi import HttpRequest, RequestRefused, Send
from kit.tasks import start_apart

PATH = "/api/v1/gateway/fipa"
SENT = frozenset({"message", "request", "proposal", "broadcast"})
NO_CONTENT = HttpAnswer(204, b"", ())


@dataclass(frozen=True, slots=True)
class FipaEndpoint:
    """Serves `PATH`. A message with `reply-with` waits for its answer, one without is delivered (204)."""

    http: GatewayHttp
    gateway: Gateway

    async def __call__(self, request: HttpRequest, send: Send) -> None:
        """Answer one request; nothing a client sends makes this raise."""
        await self.http.serve(request, send, self._answer(request))

    async def _answer(self, request: HttpRequest) -> HttpAnswer:
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
    """The frame that an ACL message stands for.

    Raises:
        FrameRefused: the message is not in order, or stands for no frame that clients may send over HTTP.
    """
    frame = from_acl(acl, frames.now_ms())
    if frame["type"] in REPLIES:
        if "agent" not in frame:
            raise FrameRefused(ErrorCode.MISSING_FIELD, "receiver: want one agent", field="receiver")
        return frame
    if frame["type"] not in SENT:
        text = f"{acl['performative']}: over HTTP nothing is pushed"
        raise FrameRefused(ErrorCode.INVALID_CONTENT, text, field="performative")
    return frame


async def _deliver(client: Client, envelope: Envelope) -> None:
    """Send an agent of the caller's team a reply or a decision as a frame of that type; any other agent a message.

    Such a decision decides no proposal. An agent takes each `error` for an error of the gateway, and may end its
    connection.
    """
    check_action(client.identity, Action.SEND, own="", agent="")
    try:
        found = await client.gateway.router.read(find_addressee, envelope.agent, client.identity.user_id)
    except NOT_ASKED as refusal:
        raise refuse_denied(refusal) from None
    is_told = envelope.type == "error" or not found.is_own
    send_to_agent(client, as_information(envelope) if is_told else envelope)
