"""The base of the gateway's HTTP endpoints: the caller of a request, the wait for an agent, the errors.

Errors have the form of REST, `{"error", "message"}`.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from accounts.authn import Identity, TokenScope, presented
from accounts.middleware import allowing
from accounts.open_requests import OpenRequests
from agents.core.ledger import Ledger
from agents.core.rest_errors import public_refusal
from gateway.wire.errors import FrameRefused, GatewayErrorCode
from kit.asgi import RETRY_SOON, ClientLeft, Header, HttpRequest, RequestRefused, Send

JSON_TYPE = (b"content-type", b"application/json")
NO_STORE = (b"cache-control", b"no-store")
_DENIED_STATUS = {
    GatewayErrorCode.RATE_LIMITED: 429,
    GatewayErrorCode.AGENT_NOT_FOUND: 409,
    GatewayErrorCode.AGENT_OFFLINE: 409,
    GatewayErrorCode.AGENT_BUSY: 409,
    GatewayErrorCode.INVALID_CONTENT: 422,
    GatewayErrorCode.PERMISSION_DENIED: 403,
}
OUT_OF_BUDGET = 429  # of a limit that has no code in the protocol


encode = msgspec.json.Encoder().encode
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class GatewayAnswer:
    """A whole response; `headers` with its content type."""

    status: int
    body: bytes
    headers: Sequence[Header] = (JSON_TYPE,)


def json_answer(value: object, status: int = 200) -> GatewayAnswer:
    """A response with a JSON body."""
    return GatewayAnswer(status, encode(value))


def request_error(refused: FrameRefused) -> RequestRefused:
    """The error for what the hub refused; nothing was sent to the agent."""
    if refused.reason == "unavailable":
        return RequestRefused(503, "unavailable", str(refused), RETRY_SOON)
    status = _DENIED_STATUS.get(refused.code, OUT_OF_BUDGET)
    return RequestRefused(status, refused.name, str(refused), *refused.retry_headers)


def reply_error(refused: FrameRefused) -> RequestRefused:
    """The error for what was sent, or may have been, and got no reply."""
    return RequestRefused(504 if refused.reason == "response_timeout" else 502, refused.name, str(refused))


@dataclass(frozen=True, slots=True)
class GatewayHttp:
    """Serves requests. `public_url`: whose pages may use the cookie; `app_origins`: whose may read answers."""

    ledger: Ledger
    callers: OpenRequests
    public_url: str
    app_origins: Sequence[str]

    async def serve(self, request: HttpRequest, send: Send, work: Awaitable[GatewayAnswer]) -> None:
        """Send what the work answers; nothing a client sends makes this raise."""
        span = request.enter_trace()
        try:
            answer = await work
        except ClientLeft:
            return
        except Exception as failure:  # noqa: BLE001  each becomes the answer
            known = request_error(failure) if isinstance(failure, FrameRefused) else failure
            refused = public_refusal(known, "gateway.http_failed", request.path)
            answer = GatewayAnswer(refused.status, refused.body, (JSON_TYPE, *refused.headers))
        cors = allowing(request.headers.get("origin"), self.app_origins)
        length = (b"content-length", b"%d" % len(answer.body))
        headers = [*answer.headers, length, NO_STORE, span, *cors]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": answer.body})

    async def get_caller(self, request: HttpRequest, scope: TokenScope) -> Identity:
        """The user of a request.

        Raises:
            RequestRefused: no live session or app token with that scope.
        """
        return await self.ledger.get_caller(presented(request.headers, request.method, self.public_url), scope)

    async def wait(self, request: HttpRequest, identity: Identity, answer: asyncio.Future[Result]) -> Result:
        """Wait for an answer, silently, for as long as the client is there and its credential is good.

        The body of the request was read. The answer itself is never cancelled.

        Raises:
            ClientLeft, Unauthenticated: nothing waits any more.
        """
        left = asyncio.ensure_future(request.receive())
        waited: list[asyncio.Future[Any]] = [answer, left]
        try:
            with self.callers.hold(identity.credential_id):
                await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        finally:
            left.cancel()
        if not answer.done():
            raise ClientLeft
        return answer.result()
