"""`POST /api/v1/gateway/fipa`: an ACL message is sent as the frame that it stands for, and answered by another."""

from dataclasses import dataclass

from accounts.authn import Identity, TokenScope
from gateway.adapters.fipa import as_information, from_acl, to_acl
from gateway.connections.client import Gateway
from gateway.connections.request_client import RequestClient
from gateway.http import GatewayHttp, HttpAnswer, json_answer, start_apart
from gateway.wire import frames
from gateway.wire.envelope import Json
from gateway.wire.errors import ErrorCode, FrameRefused
from kit import strict_json
from kit.asgi import HttpRequest, RequestRefused, Send

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
            frame = from_acl(acl, frames.now_ms())
            if frame["type"] == "decision":
                frame = as_information(frame)
            if frame["type"] not in SENT:
                text = f"{acl['performative']}: over HTTP no answer of yours is waited for, and nothing is pushed"
                raise FrameRefused(ErrorCode.INVALID_CONTENT, text, field="performative")
        except FrameRefused as refused:
            refused.correlation_id = str(acl.get("reply-with", ""))
            return frames.error_frame(refused)
        client = RequestClient(self.gateway, identity)
        answer = start_apart(self.gateway.link.start, client.exchange(frame), "ACL message")
        try:
            return await self.http.wait(request, identity, answer)
        finally:
            client.messages.end()
