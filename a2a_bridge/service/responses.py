"""The responses of calls: at once, after a wait, or as a stream.

Clients give up after 5 s of silence, so a waiting answer is padded with a space, and a waiting stream with a
comment, every 3 s.
"""

import logging
import time
from collections.abc import Callable, Coroutine, Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, Protocol

import msgspec

from a2a_bridge.service.calls import (
    AwaitedAnswer,
    StreamedAnswer,
    Wire,
)
from a2a_bridge.service.exchange_notes import ExchangeNote
from a2a_bridge.service.streams import KEEPALIVE_S
from a2a_bridge.wire import errors
from agents.core.errors import FileGone, NotPublished, Unavailable
from kit import sql, sse
from kit.asgi import RETRY_SOON, ClientLeft, Exchange, Header, Message, Receive, Send, slow_down, watch_client
from kit.durations import seconds
from kit.jsonrpc import INTERNAL_ERROR, RpcError
from kit.tasks import wait_within

SEND_WITHIN_S = seconds(30.0, at_least_s=10.0)
CORS = [
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", b"A2A-Version, A2A-Extensions, X-A2A-Extensions, traceparent"),
]
EXTRA_HEADERS = {
    401: [(b"www-authenticate", b"Bearer")],
    503: [RETRY_SOON],
}

Sending = Coroutine[Any, Any, None]

logger = logging.getLogger(__name__)
encode = msgspec.json.Encoder().encode


def public_error(failure: Exception) -> RpcError:
    """The error that a caller gets for a failure; a failure of the hub itself is logged."""
    if isinstance(failure, RpcError):
        return failure
    if isinstance(failure, NotPublished):
        return errors.agent_not_found()
    if isinstance(failure, FileGone):
        return errors.file_gone()
    # Reads that do not go through the ledger raise the errors of the database.
    if isinstance(failure, (Unavailable, *sql.DATABASE_UNAVAILABLE)):
        return errors.unavailable()
    logger.error("bridge.failed", exc_info=failure)
    return RpcError(INTERNAL_ERROR, "internal error", status=500)


class ResponseWriter(Protocol):
    """The writer of the outcome of a call: into the HTTP response of A2A, or the result of a tool of MCP.

    `leaving_cancels`: a client that leaves cancels its request.
    """

    wire: Wire

    @property
    def leaving_cancels(self) -> bool: ...

    def at_once(self, result: object) -> Sending:
        """Write a result that is known."""

    async def wait(self, waiting: AwaitedAnswer) -> None:
        """Wait for a result, and write it."""

    async def stream(self, answer: StreamedAnswer, max_age_s: float) -> None:
        """Write frames as they come, until that age."""

    async def refuse(self, error: RpcError) -> None:
        """Write an error instead of a result, or after what was written."""

    def end(self) -> Sending:
        """End a stream before its last frame."""


class CallAnswer:
    """The HTTP response to one request. See `ResponseWriter`.

    The answer knows whether its headers were sent, and gives up on a client that does not read. `note`: keeps the
    response for the page of the ask. `exchange`: writes a whole response at once. `has_waited`: the client has
    waited for KEEPALIVE_S already.
    """

    __slots__ = (
        "_extra",
        "_has_begun",
        "_is_stream",
        "_receive",
        "_send",
        "exchange",
        "has_waited",
        "note",
        "wire",
    )
    leaving_cancels = False

    def __init__(
        self,
        receive: Receive,
        send: Send,
        wire: Wire,
        extra: Iterable[Header] = (),
        note: ExchangeNote | None = None,
        exchange: Exchange | None = None,
    ) -> None:
        self._receive = receive
        self._send = send
        self.wire = wire
        self.note = note
        self.exchange = exchange
        self._extra = [*CORS, *extra]
        self._has_begun = self._is_stream = self.has_waited = False

    def at_once(self, result: object) -> Sending:
        """Send a result that is known."""
        return self._respond(self.wire.result(result))

    async def wait(self, waiting: AwaitedAnswer) -> None:
        """Wait for a result; spaces before its JSON keep a client with a read timeout connected."""
        if await waiting.run.answered(0 if self.has_waited else KEEPALIVE_S):
            await self._respond(self.wire.result(waiting.result))
            return
        await self._send_head([(b"content-type", self.wire.media_type)])
        with self._watch_client() as check_client:
            while True:
                check_client()
                await self._send_body(b" ")
                if await waiting.run.answered(KEEPALIVE_S):
                    break
        await self._send_body(self.wire.result(waiting.result), is_last=True)

    async def stream(self, answer: StreamedAnswer, max_age_s: float) -> None:
        """Send frames as they come, with comments between them."""
        self._is_stream = True
        ends_at = time.monotonic() + max_age_s
        await self._send_head(sse.HEADERS)
        with self._watch_client() as check_client:
            async for frame in answer.frames:
                check_client()
                await self._send_body(sse.event(self.wire.frame(frame[1]), frame[0]) if frame else sse.KEEPALIVE)
                if time.monotonic() > ends_at:
                    break
        await self.end()

    async def refuse(self, error: RpcError) -> None:
        """End with an error, before or after the response has begun."""
        body, status = self.wire.error(error), self.wire.status(error)
        if self._has_begun:
            await self._send_body(sse.event(body) if self._is_stream else body, is_last=True)
        elif self.wire.streams_errors and status == 200:
            await self._send_head(sse.HEADERS)
            await self._send_body(sse.event(body), is_last=True)
        else:
            allow = [(b"allow", self.wire.allow)] if status == 405 else []
            await self._respond(body, status, [*EXTRA_HEADERS.get(status, ()), *allow])

    async def fail(self, failure: Exception) -> None:
        """End with the public error of a failure."""
        if isinstance(failure, ClientLeft):
            return
        error = public_error(failure)
        await slow_down(error.status)
        with suppress(ClientLeft):
            await self.refuse(error)

    def end(self) -> Sending:
        """End the body of a response that has begun."""
        return self._send_body(b"", is_last=True)

    async def _respond(self, body: bytes, status: int = 200, more: Iterable[Header] = ()) -> None:
        headers = self._begin_whole(body, status, more)
        if self.exchange is not None:
            self.exchange.respond(status, headers, body)
            return
        start = {"type": "http.response.start", "status": status, "headers": headers}
        await self._send_messages(start, {"type": "http.response.body", "body": body})

    def respond_now(self, exchange: Exchange, waiting: AwaitedAnswer) -> bool:
        """Send the result of a turn that has ended, at once; False: `wait` has to be used.

        Raises:
            RpcError: there is no result.
        """
        body = self.body_now(waiting)
        if body is None:
            return False
        exchange.respond(200, self._begin_whole(body, 200, ()), body)
        return True

    def body_now(self, waiting: AwaitedAnswer) -> bytes | None:
        """The body of the response after the end of a turn; None if it is not a plain result."""
        return self.wire.result(waiting.result)

    def _begin_whole(self, body: bytes, status: int, more: Iterable[Header]) -> list[Header]:
        """The headers of a whole response, which the note keeps."""
        self._has_begun = True
        headers = [
            (b"content-type", self.wire.media_type),
            (b"content-length", b"%d" % len(body)),
            *self.wire.headers,
            *self._extra,
            *more,
        ]
        if (note := self.note) is not None:  # set, not called: this is in the way of every plain ask
            note.status, note.response_headers, note.response_body = status, headers, body
        return headers

    async def _send_head(self, headers: Iterable[Header]) -> None:
        self._has_begun = True
        sent = [*headers, *self.wire.headers, *self._extra]
        if self.note is not None:
            self.note.begin(200, sent)
        if self.exchange is None or not self.exchange.begin_now(200, sent):
            await self._send_messages({"type": "http.response.start", "status": 200, "headers": sent})

    async def _send_body(self, body: bytes, *, is_last: bool = False) -> None:
        if self.note is not None:
            self.note.add(body, is_frame=self._is_stream)
        if self.exchange is None or not self.exchange.write_now(body, is_last=is_last):
            await self._send_messages({"type": "http.response.body", "body": body, "more_body": not is_last})

    def _watch_client(self) -> AbstractContextManager[Callable[[], None]]:
        """See `kit.asgi.watch_client`; an exchange knows by itself whether its client has left."""
        return watch_client(self._receive) if self.exchange is None else nullcontext(self.exchange.check_client)

    async def _send_messages(self, *messages: Message) -> None:
        """Send to the client; a client that does not read in time is disconnected."""
        try:
            for message in messages:
                await wait_within(self._send(message), SEND_WITHIN_S)
        except OSError:  # TimeoutError is one
            raise ClientLeft from None
