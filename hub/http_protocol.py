"""uvicorn's protocol for HTTP, with bounds on what clients may keep waiting.

The writes of an answer are put together.

uvicorn itself has no deadline for the rest of a request's head, for a client to take an answer, or for the end of
an answer before it closes a connection. Bodies have bounds of their own (`kit.asgi`).
"""

import asyncio
import re
import sys
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, cast

from httptools import HttpParserInvalidMethodError
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from hub.http_exchange import UNWATCHED, AnswerWhole, BufferedTransport, FindDirect, HttpExchange
from hub.http_head import LOWER_CASE, find_proxy_headers
from kit.asgi import ALLOW_ALL, LARGE_BODY_BYTES
from kit.durations import seconds

HEAD_WITHIN_S = seconds(10.0, at_least_s=5.0)
MAX_HEAD_BYTES = 65_536
LEAVE_WITHIN_S = seconds(10.0, at_least_s=2.5)
STALL_THRESHOLD_S = seconds(3.0, at_least_s=2.0)  # longer than the second from one look to the next
TAKEN_WITHIN_S = seconds(45.0, at_least_s=10.0)  # a stream gives up on a reader after 30
DRAIN_CREDIT_S = seconds(
    6.0
)  # added when the client has emptied the buffer of about 48 KiB: a client may read 8 KiB a second for ever
REQUEST_LINE = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64} /\S* HTTP/1\.[01]\r?\n")
NO_SUCH_METHOD = (
    b"HTTP/1.1 405 Method Not Allowed\r\nallow: "
    + ALLOW_ALL
    + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
)
LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
PLAIN_PATH = re.compile(rb"/[A-Za-z0-9._~@:/-]*")  # the same when it is unquoted


class HeadTooLarge(Exception):
    """Ends the parsing of a request; `send_400_response` answers the client."""


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
        "_answer",
        "_find",
        "_head_bytes",
        "_idle_since",
        "_is_too_large",
        "_left_s",
        "_paused_at",
        "_read_proxy_headers",
        "_received",
        "_served",
        "_unstarted",
        "closing_since",
        "head_since",
    )
    taken_within_s = TAKEN_WITHIN_S
    find_direct: FindDirect | None = None

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._unstarted: HttpExchange | None = None  # its body is not complete
        self._served: RequestResponseCycle | None = None  # the request that is served; `cycle` may be a later one
        self._answer: Callable[[bytes, Any], Coroutine[Any, Any, None] | None]
        config = self.config
        self._find = None if config.root_path or config.limit_concurrency is not None else self.find_direct
        self._read_proxy_headers = find_proxy_headers(self.app)
        self.head_since = self.closing_since = self._idle_since = 0.0
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
        before: RequestResponseCycle | None = self.cycle  # none before the first request
        self._idle_since = 0.0
        self._received = data
        super().data_received(data)
        self._received = b""
        if (exchange := self._unstarted) is not None:  # its body is not complete
            self._unstarted = None
            if not self.transport.is_closing():
                exchange.watch_body()
                self.start_task(exchange, self.app)
        if "method" not in (self.scope or ()):  # uvicorn adds the method when a head is complete
            if not self._head_bytes:
                self.head_since = self.loop.time()
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
                self._refuse()
        elif not self.head_since and before is self.cycle and self._is_answered(before):
            self.head_since = self.loop.time()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header, its name in lower case."""
        name = LOWER_CASE[name]
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Begin a request whose head is complete; a head in one piece has the same limit as a head in several."""
        may_be_large = self._head_bytes + len(self._received) > MAX_HEAD_BYTES
        self.head_since, self._head_bytes = 0.0, 0
        if may_be_large and _size_of(self.url, self.headers) > MAX_HEAD_BYTES:
            self._is_too_large = True
            raise HeadTooLarge
        answer = self._find_answer() if self.parser.get_method() == b"POST" else None
        if answer is None:
            super().on_headers_complete()
            return
        self._answer = answer
        self.cycle = self._unstarted = exchange = HttpExchange(
            scope=self.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=UNWATCHED,
            expect_100_continue=self.expect_100_continue,
            keep_alive=self.parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )
        exchange.start_task = self.start_task
        self._served = exchange

    def on_body(self, body: bytes) -> None:
        """Keep a piece of the body."""
        if self._unstarted is not None:
            self._unstarted.body += body
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Answer a request that has come whole, if it has a direct way."""
        exchange, self._unstarted = self._unstarted, None
        if exchange is None:
            super().on_message_complete()
            return
        exchange.more_body = exchange.waiting_for_100_continue = False
        body, exchange.body = bytes(exchange.body), bytearray()  # a task does not receive the body again
        try:
            self._answer(body, exchange)
        except Exception as failure:  # noqa: BLE001  uvicorn logs and answers it
            exchange.run(_raise(failure))

    def on_response_complete(self) -> None:
        """Read the next request; `end_overdue` ends the connection if none comes, so that no timer is needed."""
        if self.pipeline or self.transport.is_closing():
            super().on_response_complete()
            return
        self.server_state.total_requests += 1
        if self.flow.read_paused:
            self.flow.resume_reading()

    def start_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        """Serve a request by an application, in a task."""
        self._start_asgi_task(cycle, app)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._served = cycle
        super()._start_asgi_task(cycle, app)

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

    def handle_websocket_upgrade(self) -> None:
        """Upgrade the connection when it is its turn. The event loop does one upgrade in each iteration, and
        serves other clients in between: hundreds of upgrades may come at once.
        """
        self.transport.pause_reading()
        line: deque[HubHttpProtocol] = vars(self.server_state).setdefault("upgrades", deque())
        line.append(self)
        if len(line) == 1:
            self.loop.call_soon(self._upgrade, line)

    def _upgrade(self, line: "deque[HubHttpProtocol]") -> None:
        try:
            if not self.transport.is_closing():
                super().handle_websocket_upgrade()
                self.transport.resume_reading()
        except Exception:
            self.transport.abort()
            raise
        finally:
            line.popleft()
            if line:
                self.loop.call_soon(line[0]._upgrade, line)

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
        """Clean up after a connection that either side closed.

        uvicorn tells only the newest request of the connection, which may still wait for the one that is served.
        """
        self._cancel_abort()
        super().connection_lost(exc)
        served, self._served = self._served, None
        if served is not None and not served.response_complete:
            served.disconnected = True
            served.message_event.set()
        self.cycle = None  # type: ignore[assignment]  # the exchange names this protocol

    def extend_deadlines(self, time_s: float) -> None:
        """Extend the deadlines by the time in which the process stood still and could receive nothing."""
        self.head_since += time_s if self.head_since else 0.0
        self.closing_since += time_s if self.closing_since else 0.0
        self._idle_since += time_s if self._idle_since else 0.0

    def end_overdue(self, now: float) -> None:
        """End the connection if the protocol waited too long; call this about once a second."""
        if self.transport.is_closing():
            self.closing_since = self.closing_since or now
            if now - self.closing_since > LEAVE_WITHIN_S:
                self.transport.abort()
        elif self.head_since:
            if now - self.head_since > HEAD_WITHIN_S:
                self.transport.close()
        elif self._is_answered(self.cycle):
            self._idle_since = self._idle_since or now
            if now - self._idle_since > self.timeout_keep_alive:
                self.transport.close()

    def _is_answered(self, cycle: RequestResponseCycle | None) -> bool:
        return cycle is not None and cycle.response_complete and not self.pipeline

    def _find_answer(self) -> AnswerWhole | None:
        """The function that answers this POST; None: the application serves the request.

        The application serves what has to wait for an earlier response, or for a client that does not read.
        """
        cycle: RequestResponseCycle | None = self.cycle
        if (
            self._find is None
            or (cycle is not None and not cycle.response_complete)
            or self.flow.write_paused
            or self.parser.get_http_version() != "1.1"
            or self.parser.should_upgrade()
            or not PLAIN_PATH.fullmatch(self.url)
            or self._has_large_body()
        ):
            return None
        scope: Any = self.scope
        scope["method"], scope["query_string"] = "POST", b""
        scope["path"], scope["raw_path"] = self.url.decode("ascii"), self.url
        if self._read_proxy_headers is not None:
            self._read_proxy_headers(scope)
        return self._find(scope)

    def _has_large_body(self) -> bool:
        """True if the body is so long that its client may have to wait before it is read."""
        length = next((value for name, value in self.headers if name == b"content-length"), b"0")
        return int(length) > LARGE_BODY_BYTES  # the parser has checked that it is a number of 64 bits

    def _refuse(self) -> None:
        self.transport.write(LARGE)
        self.transport.close()

    def _cancel_abort(self) -> None:
        if self._abort_timer is not None:
            self._abort_timer.cancel()
            self._abort_timer = None


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
