"""uvicorn's protocol for HTTP, with bounds on what clients may keep waiting.

The writes of an answer are put together.

uvicorn itself has no deadline for the rest of a request's head, for a client to take an answer, or for the end of
an answer before it closes a connection. Bodies have bounds of their own (`kit.asgi`).
"""

import asyncio
import re
import sys
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, cast

from httptools import HttpParserInvalidMethodError
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from kit.asgi import ALLOW_ALL, Exchange, Header, Receive, Scope, Send
from kit.durations import seconds

HEAD_WITHIN_S = seconds(10.0, at_least_s=5.0)
MAX_HEAD_BYTES = 65_536
LEAVE_WITHIN_S = seconds(10.0, at_least_s=2.5)
STALL_THRESHOLD_S = seconds(3.0, at_least_s=2.0)  # longer than the second from one look to the next
TAKEN_WITHIN_S = seconds(45.0, at_least_s=10.0)  # a stream gives up on a reader after 30
DRAIN_CREDIT_S = seconds(
    6.0
)  # added when the client has emptied the buffer of about 48 KiB: a client may read 8 KiB a second for ever
MAX_WAITING_BYTES = 16_384
REQUEST_LINE = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64} /\S* HTTP/1\.[01]\r?\n")
NO_SUCH_METHOD = (
    b"HTTP/1.1 405 Method Not Allowed\r\nallow: "
    + ALLOW_ALL
    + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
)
LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"

# Finds, by its scope, the function that answers a request that was read whole; None: the application serves the
# request. The function returns a coroutine if the request needs a task.
AnswerWhole = Callable[[bytes, Exchange], Coroutine[Any, Any, None] | None]
FindDirect = Callable[[Scope], AnswerWhole | None]


class HeadTooLarge(Exception):
    """Ends the parsing of a request; `send_400_response` answers the client."""


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
        """Buffer the data until the end of this iteration of the loop."""
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append(data)
        self._size += len(data)
        if self._size >= MAX_WAITING_BYTES:
            self._flush()

    def close(self) -> None:
        """Write the buffered data, then close."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._waiting:
            data, self._waiting, self._size = b"".join(self._waiting), [], 0
            self._transport.write(data)


class HubHttpProtocol(HttpToolsProtocol):
    """An HTTP connection, or a socket until its upgrade, when uvicorn gives the transport to another protocol.

    `head_since`, `closing_since`: since when the protocol waits for a head, or for the end of the connection (0.0:
    it does not wait); `end_overdue` ends the connection. The connection is aborted if its buffer stays full for
    `taken_within_s`, or nearly full for longer.

    `find_direct`: finds the function that answers a POST which arrived whole; then no task of the application is
    started for the request.
    """

    # With these in uvicorn's dictionary of attributes, Python would keep one for each connection: 1.1 KiB.
    __slots__ = (
        "_abort_timer",
        "_head_bytes",
        "_is_too_large",
        "_left_s",
        "_paused_at",
        "_received",
        "_unstarted",
        "closing_since",
        "head_since",
    )
    taken_within_s = TAKEN_WITHIN_S
    find_direct: FindDirect | None = None

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._unstarted: tuple[RequestResponseCycle, ASGI3Application] | None = None
        self.head_since = self.closing_since = 0.0
        self._head_bytes = 0  # the received bytes of a head that is not complete
        self._is_too_large = False
        self._received = b""  # the data that is being parsed
        self._abort_timer: asyncio.TimerHandle | None = None
        self._left_s = self.taken_within_s
        self._paused_at = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first head of a client that connected."""
        super().connection_made(cast(asyncio.Transport, BufferedTransport(transport, self.loop)))
        self.head_since = self.loop.time()

    def data_received(self, data: bytes) -> None:
        """Parse data. After a response, the rest of a request's body has the time limit of a head.

        The limit of bytes holds only for a head: a client that sends the rest of a refused body must read the
        refusal.
        """
        self._received = data
        super().data_received(data)
        self._received = b""
        if self._unstarted is not None:  # its body is not complete
            self._start()
        if "method" not in (self.scope or ()):  # uvicorn adds the method when a head is complete
            if not self._head_bytes:
                self.head_since = self.loop.time()
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
                self._refuse()
        elif not self.head_since:
            cycle: RequestResponseCycle | None = self.cycle  # none before the first request
            if cycle is not None and cycle.response_complete and not self.pipeline:
                self.head_since = self.loop.time()

    def on_headers_complete(self) -> None:
        """Begin a request whose head is complete; a head in one piece has the same limit as a head in several."""
        may_be_large = self._head_bytes + len(self._received) > MAX_HEAD_BYTES
        self.head_since, self._head_bytes = 0.0, 0
        if may_be_large and _size_of(self.url, self.headers) > MAX_HEAD_BYTES:
            self._is_too_large = True
            raise HeadTooLarge
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Start a request that is whole."""
        super().on_message_complete()
        if self._unstarted is not None:
            self._start()

    def on_response_complete(self) -> None:
        """Start the next request of a client that does not wait for responses."""
        super().on_response_complete()
        if self._unstarted is not None:
            self._start()

    def start_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        """Serve a request by an application, in a task."""
        super()._start_asgi_task(cycle, app)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        """Start the request later, once it is known whether its body is complete."""
        self._unstarted = cycle, app

    def _start(self) -> None:
        assert self._unstarted is not None  # noqa: S101  for the type checker
        (cycle, app), self._unstarted = self._unstarted, None
        is_whole_post = not cycle.more_body and cycle.scope["method"] == "POST"
        find = type(self).find_direct if is_whole_post and app is self.app else None
        if find is None or (answer := find(cast(Scope, cycle.scope))) is None:
            self.start_task(cycle, app)
            return
        body = bytes(cycle.body)
        cycle.body.clear()
        cycle.message_event.clear()
        cycle.waiting_for_100_continue = False
        exchange = HttpExchange(self, cycle)
        try:
            work = answer(body, exchange)
        except Exception as failure:  # noqa: BLE001  uvicorn logs and answers it
            work = _raise(failure)
        if work is not None:
            exchange.run(work)

    def send_400_response(self, msg: str) -> None:
        """Refuse data that is no request, too large a head, or an HTTP method that the server does not know."""
        is_unknown = isinstance(sys.exc_info()[1], HttpParserInvalidMethodError)
        if self._is_too_large:
            self._refuse()
        elif is_unknown and REQUEST_LINE.match(self._received):
            self.transport.write(NO_SUCH_METHOD)
            self.transport.close()
        else:
            super().send_400_response(msg)

    def pause_writing(self) -> None:
        """Abort the connection later, unless the full buffer gets room before."""
        super().pause_writing()
        self._paused_at = self.loop.time()
        self._abort_timer = self.loop.call_later(self._left_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Let senders go on, as the buffer has room again."""
        self._cancel_abort()
        used_s = self.loop.time() - self._paused_at
        self._left_s = min(self._left_s - used_s + DRAIN_CREDIT_S, self.taken_within_s)
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Clean up after a connection that either side closed."""
        self._cancel_abort()
        super().connection_lost(exc)

    def extend_deadlines(self, time_s: float) -> None:
        """Extend the deadlines by the time in which the process stood still and could receive nothing."""
        self.head_since += time_s if self.head_since else 0.0
        self.closing_since += time_s if self.closing_since else 0.0

    def end_overdue(self, now: float) -> None:
        """End the connection if the protocol waited too long; call this about once a second."""
        if self.transport.is_closing():
            self.closing_since = self.closing_since or now
            if now - self.closing_since > LEAVE_WITHIN_S:
                self.transport.abort()
        elif self.head_since and now - self.head_since > HEAD_WITHIN_S:
            self.transport.close()

    def _refuse(self) -> None:
        self.transport.write(LARGE)
        self.transport.close()

    def _cancel_abort(self) -> None:
        if self._abort_timer is not None:
            self._abort_timer.cancel()
            self._abort_timer = None


class HttpExchange:
    """A request that was read whole, and its response. See `kit.asgi.Exchange`."""

    __slots__ = ("_cycle", "_protocol", "receive", "send")

    def __init__(self, protocol: HubHttpProtocol, cycle: RequestResponseCycle) -> None:
        self._protocol = protocol
        self._cycle = cycle
        self.receive = cast(Receive, cycle.receive)
        self.send = cast(Send, cycle.send)

    def respond(self, status: int, headers: Iterable[Header], body: bytes) -> None:
        """Write a whole response, whose headers have the length; does nothing if the client has left.

        Raises:
            ValueError: a header has a line break.
        """
        cycle = self._cycle
        if cycle.disconnected or cycle.response_started:
            return
        pieces = [STATUS_LINE[status], *[b"%b: %b\r\n" % header for header in headers]]
        if not cycle.keep_alive:
            pieces.append(b"connection: close\r\n")
        head = b"".join(pieces)
        if len(head.splitlines()) != len(pieces):
            raise ValueError("a header has a line break")
        cycle.response_started = cycle.response_complete = True
        cycle.transport.write(b"%b\r\n%b" % (head, body))
        cycle.message_event.set()
        if not cycle.keep_alive:
            cycle.transport.close()
        cycle.on_response()

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Go on with the request in a task, as if an application served it."""

        async def application(*_: object) -> None:
            await work

        self._protocol.start_task(self._cycle, application)


async def _raise(failure: Exception) -> None:
    raise failure


def end_overdue(connections: Iterable[object], now: float, before: float) -> None:
    """End the overdue connections of a server. `before`: when this was last called, 0.0 for never.

    If the last call was over STALL_THRESHOLD_S ago, the process stood still, and all deadlines are extended.
    """
    stood_still_s = now - before if before and now - before > STALL_THRESHOLD_S else 0.0
    for connection in list(connections):
        if isinstance(connection, HubHttpProtocol):
            connection.extend_deadlines(stood_still_s)
            connection.end_overdue(now)


def _size_of(url: bytes, headers: Iterable[tuple[bytes, bytes]]) -> int:
    return len(url) + sum(len(name) + len(value) + 4 for name, value in headers)
