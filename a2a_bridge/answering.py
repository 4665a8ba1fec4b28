"""Answers on their way out: at once, after a wait, or frame by frame.

Clients give up after 5 s of silence, so a waiting answer is padded with a space, and a waiting stream with a
comment, every 3 s (docs/adr/0010).
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Protocol

import msgspec

from a2a_bridge.calls import Done, Waiting
from a2a_bridge.quiet import KEEPALIVE_S
from a2a_bridge.streams import Frame
from agents.pieces import Json
from kit import sse
from kit.asgi import ClientLeft, Header, Receive, Send
from kit.durations import seconds
from kit.jsonrpc import RpcError
from kit.waits import within

SEND_WITHIN_S = seconds(30.0)
CORS = [
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", b"A2A-Extensions, X-A2A-Extensions, traceparent"),
]
EXTRA_HEADERS = {
    401: [(b"www-authenticate", b"Bearer")],
    503: [(b"retry-after", b"2")],
}

encode = msgspec.json.Encoder().encode


class Wire(Protocol):
    """How a binding wraps what a dialect says.

    `media_type`: of an answer that is no stream. `allow`: the HTTP methods its address takes.
    """

    media_type: bytes
    allow: bytes

    def result(self, result: object) -> bytes:
        """A whole answer."""

    def frame(self, shown: Json) -> bytes:
        """A frame of a stream."""

    def error(self, error: RpcError) -> bytes:
        """A refusal."""

    def status(self, error: RpcError) -> int:
        """The HTTP status a refusal travels on."""


class Answer:
    """A `send` that knows whether the answer has begun, and gives up on a client that takes nothing."""

    __slots__ = ("_extra", "_is_stream", "_receive", "_send", "_wire", "has_begun")

    def __init__(self, receive: Receive, send: Send, wire: Wire, extra: Iterable[Header] = ()) -> None:
        self._receive = receive
        self._send = send
        self._wire = wire
        self._extra = [*CORS, *extra]
        self.has_begun = self._is_stream = False

    async def at_once(self, done: Done) -> None:
        """A result that is there."""
        self.has_begun = True
        headers = [(b"content-type", self._wire.media_type), *self._extra]
        await self._respond(200, self._wire.result(done.result), headers)

    async def wait(self, waiting: Waiting) -> None:
        """A result that comes; spaces before its JSON keep an impatient client waiting."""
        if await waiting.run.answered(KEEPALIVE_S):
            await self.at_once(Done(waiting.result))
            return
        await self._begin([(b"content-type", self._wire.media_type)])
        left = asyncio.ensure_future(self._receive())  # the body was read: nothing else comes
        try:
            while True:
                if left.done():
                    raise ClientLeft
                await self._say(b" ")
                if await waiting.run.answered(KEEPALIVE_S):
                    break
        finally:
            left.cancel()
        await self._last(self._wire.result(waiting.result))

    async def stream(self, frames: AsyncIterator[Frame | None], max_age_s: float) -> None:
        """Frames as they come, comments between them. The server takes them even when the client has left."""
        self._is_stream = True
        ends_at = time.monotonic() + max_age_s
        await self._begin(sse.HEADERS)
        left = asyncio.ensure_future(self._receive())  # the body was read: nothing else comes
        try:
            async for frame in frames:
                if left.done():
                    raise ClientLeft
                await self._say(self._framed(frame))
                if time.monotonic() > ends_at:
                    break
        finally:
            left.cancel()
        await self._last(b"")

    async def refuse(self, error: RpcError, *, as_stream: bool = False) -> None:
        """End with an error, whichever half of the answer is out."""
        body = self._wire.error(error)
        if self.has_begun:
            await self._last(sse.event(body) if self._is_stream else body)
        elif as_stream and self._wire.status(error) == 200:
            await self._begin(sse.HEADERS)
            await self._last(sse.event(body))
        else:
            status = self._wire.status(error)
            headers = [(b"content-type", self._wire.media_type), *self._extra, *EXTRA_HEADERS.get(status, ())]
            if status == 405:
                headers.append((b"allow", self._wire.allow))
            await self._respond(status, body, headers)

    async def end(self) -> None:
        """Nothing more comes, though more was due."""
        await self._last(b"")

    def _framed(self, frame: Frame | None) -> bytes:
        if frame is None:
            return sse.KEEPALIVE
        event_id, shown = frame
        return sse.event(self._wire.frame(shown), event_id)

    async def _begin(self, headers: Iterable[Header]) -> None:
        self.has_begun = True
        await self._out({"type": "http.response.start", "status": 200, "headers": [*headers, *self._extra]})

    async def _say(self, body: bytes) -> None:
        await self._out({"type": "http.response.body", "body": body, "more_body": True})

    async def _last(self, body: bytes) -> None:
        await self._out({"type": "http.response.body", "body": body})

    async def _out(self, *messages: Mapping[str, Any]) -> None:
        """Send to a client that must take it in time."""
        try:
            await within(self._send_each(messages), SEND_WITHIN_S)
        except OSError:  # TimeoutError is one
            raise ClientLeft from None

    async def _send_each(self, messages: Iterable[Mapping[str, Any]]) -> None:
        for message in messages:
            await self._send(message)

    async def _respond(self, status: int, body: bytes, headers: Iterable[Header]) -> None:
        length = (b"content-length", b"%d" % len(body))
        start = {"type": "http.response.start", "status": status, "headers": [length, *headers]}
        await self._out(start, {"type": "http.response.body", "body": body})
