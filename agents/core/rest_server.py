"""Serves REST requests outside of Django, which wait for agents or read tasks: caller, wait and response.

`accounts.rest` does the same for Django's views.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from accounts.authn import Identity, TokenScope, presented
from accounts.error_responses import INTERNAL, INTERNAL_TEXT, UNAVAILABLE_TEXT
from accounts.middleware import allowing
from accounts.open_requests import OpenRequests
from agents.core.errors import Unavailable
from agents.core.ledger import Ledger
from kit.asgi import RETRY_SOON, ClientLeft, Header, HttpRequest, RequestRefused, Send, slow_down
from kit.sql import DATABASE_UNAVAILABLE

JSON_TYPE = (b"content-type", b"application/json")
NO_STORE = (b"cache-control", b"no-store")

logger = logging.getLogger(__name__)
encode = msgspec.json.Encoder().encode
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class RestAnswer:
    """A whole response; `headers` with its content type."""

    status: int
    body: bytes
    headers: Sequence[Header] = (JSON_TYPE,)


def json_answer(value: object, status: int = 200) -> RestAnswer:
    """A response with a JSON body."""
    return RestAnswer(status, encode(value))


@dataclass(frozen=True, slots=True)
class RestServer:
    """Serves requests. Pages of `public_url` may use the cookie; those of `app_origins` may read the answers."""

    ledger: Ledger
    callers: OpenRequests
    public_url: str
    app_origins: Sequence[str]

    async def serve(
        self,
        request: HttpRequest,
        send: Send,
        work: Awaitable[RestAnswer],
        log_key: str,
        *,
        explain: Callable[[Exception], Exception] = lambda failure: failure,
        unavailable: str = UNAVAILABLE_TEXT,
    ) -> None:
        """Send the answer of `work`; no input of a client makes this method raise.

        `explain`: converts a failure of the surface into a refusal. Other arguments are those of `public_refusal`.
        """
        span = request.enter_trace()
        try:
            answer = await work
        except ClientLeft:
            return
        except Exception as failure:  # noqa: BLE001  each becomes the answer
            refused = public_refusal(explain(failure), log_key, request.path, unavailable=unavailable)
            answer = RestAnswer(refused.status, refused.body, (JSON_TYPE, *refused.headers))
        await slow_down(answer.status)
        cors = allowing(request.headers.get("origin"), self.app_origins)
        length = (b"content-length", b"%d" % len(answer.body))
        headers = [*answer.headers, length, NO_STORE, span, *cors]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": answer.body})

    async def get_caller(self, request: HttpRequest, scope: TokenScope) -> Identity:
        """The identity of a request's caller.

        Raises:
            RequestRefused: no live session or app token with that scope.
        """
        return await self.ledger.get_caller(presented(request.headers, request.method, self.public_url), scope)

    async def wait(self, request: HttpRequest, identity: Identity, answer: asyncio.Future[Result]) -> Result:
        """Wait for an answer, sending nothing, while the client is connected and its credential is valid.

        The body of the request must have been read. The future of the answer is never cancelled.

        Raises:
            ClientLeft, Unauthenticated: the client disconnected, or its credential is no longer valid.
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


def public_refusal(
    failure: Exception, log_key: str, path: str, *, unavailable: str = UNAVAILABLE_TEXT
) -> RequestRefused:
    """The refusal that the caller gets for a failure. An unexpected failure is logged, and the refusal gives no
    details.

    `unavailable`: the text if the hub cannot serve the request now.
    """
    if isinstance(failure, RequestRefused):
        return failure
    if isinstance(failure, (Unavailable, *DATABASE_UNAVAILABLE)):
        return RequestRefused(503, "unavailable", unavailable, RETRY_SOON)
    logger.error(log_key, exc_info=failure, extra={"path": path})
    return RequestRefused(500, INTERNAL, INTERNAL_TEXT)
