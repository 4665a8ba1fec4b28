"""The request and the response of uvicorn's protocol for HTTP, with a way to answer a whole request at once."""

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from uvicorn._types import ASGI3Application, ASGIReceiveEvent
from uvicorn.protocols.http.flow_control import CLOSE_HEADER
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from kit.asgi import ClientLeft, Exchange, Header, Scope

MAX_WAITING_BYTES = 16_384
CONTROL_CHARACTER = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
FORMAT_HEADER = b"%b: %b".__mod__
LAST = (b"", b"0\r\n\r\n")  # the end of a body in pieces, where it ends
UNWATCHED = asyncio.Event()  # the event of the requests for which no task waits

# Finds, by its scope, the function that answers a request that was read whole; None: the application serves the
# request.
AnswerWhole = Callable[[bytes, Exchange], None]
FindDirect = Callable[[Scope], AnswerWhole | None]


class BufferedTransport:
    """A transport that writes once in each iteration of the loop, or when MAX_WAITING_BYTES wait.

    uvloop makes a system call for each `write`, and a packet over loopback costs more than the answer in it. The
    class changes only writing and closing; all else is delegated to the transport.
    """

    __slots__ = ("_loop", "_size", "_transport", "_waiting", "is_closing", "pause_reading", "resume_reading")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._waiting: list[bytes] = []
        self._size = 0
        self.is_closing = transport.is_closing
        self.pause_reading = transport.pause_reading
        self.resume_reading = transport.resume_reading

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Buffer the data until the end of this iteration of the loop.

        The data is dropped if the connection ends before: uvloop raises when a closed transport is written to.
        """
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append(data)
        self._size += len(data)
        if self._size >= MAX_WAITING_BYTES:
            self._flush()

    def write_whole(self, data: bytes) -> None:
        """Write the buffered data and this, which is the end of a response."""
        if self._waiting:
            self._waiting.append(data)
            self._flush()
        elif not self.is_closing():
            self._transport.write(data)

    def close(self) -> None:
        """Write the buffered data, then close."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._waiting:
            data, self._waiting, self._size = b"".join(self._waiting), [], 0
            if not self.is_closing():
                self._transport.write(data)


class HttpExchange(RequestResponseCycle):
    """A request that has a direct way, and its response. See `kit.asgi.Exchange`.

    uvicorn's class serves the request if it needs a task. An event is made when the task waits for one.
    """

    transport: BufferedTransport  # type: ignore[assignment]
    start_task: Callable[[RequestResponseCycle, ASGI3Application], None]

    def respond(self, status: int, headers: Iterable[Header], body: bytes) -> None:
        """Write a whole response, whose headers have the length; does nothing if the client has left.

        Raises:
            ValueError: a header has a control character, or the length is wrong or missing.
        """
        if self.disconnected or self.response_started:
            return
        sent = [*self.default_headers, *headers]
        if (b"content-length", b"%d" % len(body)) not in sent:
            raise ValueError("the headers do not have the length of the body")
        head = self._head(status, sent)
        self.response_started = True
        self.transport.write_whole(head + body)
        self._complete()

    def begin_now(self, status: int, headers: Iterable[Header]) -> bool:
        """Write the head of a response that comes in pieces; False: it must be sent, as the client does not read.

        Raises:
            ValueError: a header has a control character.
        """
        if self.flow.write_paused or self.response_started:
            return self.disconnected
        if not self.disconnected:
            head = self._head(status, [*self.default_headers, *headers, (b"transfer-encoding", b"chunked")])
            self.response_started = self.chunked_encoding = True
            self.transport.write(head)
        return True

    def write_now(self, piece: bytes, *, is_last: bool) -> bool:
        """Write a piece of a response that has begun; False: it must be sent, as the client does not read."""
        if self.disconnected:
            return True
        if self.flow.write_paused or not self.chunked_encoding or self.response_complete:
            return False
        self.transport.write((b"%x\r\n%b\r\n" % (len(piece), piece) if piece else b"") + LAST[is_last])
        if is_last:
            self._complete()
        return True

    def check_client(self) -> None:
        """Raise `ClientLeft` once the client has disconnected."""
        if self.disconnected:
            raise ClientLeft

    def _head(self, status: int, headers: list[Header]) -> bytes:
        """The status line and the headers, with the end of the connection if it ends after this response."""
        if CLOSE_HEADER in headers:
            self.keep_alive = False
        elif not self.keep_alive:
            headers.append(CLOSE_HEADER)
        lines = list(map(FORMAT_HEADER, headers))
        # The lines are joined without line breaks here: a break within a header is a control character, too.
        if CONTROL_CHARACTER.search(b"".join(lines)):
            raise ValueError("a header has a control character")
        return b"%b%b\r\n\r\n" % (STATUS_LINE[status], b"\r\n".join(lines))

    def _complete(self) -> None:
        self.response_complete = True
        if self.message_event is not UNWATCHED:
            self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Go on with the request in a task, as if an application served it."""

        async def application(*_: object) -> None:
            await work

        self.start_task(self, application)

    async def receive(self) -> ASGIReceiveEvent:
        """Wait for more of the request, or for the client's disconnect."""
        if self.message_event is UNWATCHED:
            self.message_event = asyncio.Event()
        return await super().receive()

    def watch_body(self) -> None:
        """Let a task receive the body, some of which has not come."""
        self.message_event = asyncio.Event()
        if self.body:
            self.message_event.set()
