"""Heads of requests within bounds, and connections that leave when they are told to.

uvicorn waits for ever for the rest of a head, and for a client to take the last of an answer before it closes.
Bodies have bounds of their own (`kit.asgi`), and so has what a client takes (`hub.patience`).
"""

import asyncio
import re
import sys
from collections.abc import Iterable

from httptools import HttpParserInvalidMethodError
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from hub.corked import HubHttp
from kit.asgi import ALLOW_ALL
from kit.durations import seconds

HEAD_WITHIN_S = seconds(10.0, at_least_s=2.5)
MAX_HEAD_BYTES = 65_536
LEAVE_WITHIN_S = seconds(10.0, at_least_s=2.5)
STOOD_STILL_S = seconds(3.0, at_least_s=2.0)  # longer than the second from one look to the next
REQUEST_LINE = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64} /\S* HTTP/1\.[01]\r?\n")
NO_SUCH_METHOD = (
    b"HTTP/1.1 405 Method Not Allowed\r\nallow: "
    + ALLOW_ALL
    + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
)
LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class HeadTooLarge(Exception):
    """Ends the parsing of a request; the client is told by `send_400_response`."""


class BoundedHeads(HubHttp):
    """Notes since when it waits for a head, or to be closed; `look_after` ends it. 0.0: it does not wait."""

    head_since = closing_since = 0.0
    head_bytes = 0
    is_in_head = True
    is_too_large = False
    has_request_line = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client connected; its first head is awaited."""
        super().connection_made(transport)
        self.head_since = self.loop.time()

    def data_received(self, data: bytes) -> None:
        """What comes after an answer and begins no request, such as the rest of a body, is awaited like a head.

        Only a head is bounded in bytes: whoever sends the rest of a refused body must live to read the refusal.
        """
        self.has_request_line = REQUEST_LINE.match(data) is not None
        super().data_received(data)
        if self.head_since and self.is_in_head:
            self.head_bytes += len(data)
            if self.head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
                self._refuse()
        elif not self.head_since and self._has_answered:
            self.head_since = self.loop.time()

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self.head_since, self.head_bytes, self.is_in_head = self.loop.time(), 0, True

    def on_headers_complete(self) -> None:
        """Its head is whole; one that came at once is no larger than one in pieces may be."""
        self.head_since, self.is_in_head = 0.0, False
        if len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers) > MAX_HEAD_BYTES:
            self.is_too_large = True
            raise HeadTooLarge
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """What came is no request, its head is too large, or the server knows no such HTTP method."""
        if self.is_too_large:
            self._refuse()
        elif self.has_request_line and isinstance(sys.exc_info()[1], HttpParserInvalidMethodError):
            self.transport.write(NO_SUCH_METHOD)
            self.transport.close()
        else:
            super().send_400_response(msg)

    def _refuse(self) -> None:
        self.transport.write(LARGE)
        self.transport.close()

    @property
    def _has_answered(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # none before the first request
        return cycle is not None and cycle.response_complete and not self.pipeline

    def forgive(self, time_s: float) -> None:
        """So long nobody could be heard: it was not waited for."""
        self.head_since += time_s if self.head_since else 0.0
        self.closing_since += time_s if self.closing_since else 0.0

    def look_after(self, now: float) -> None:
        """End it when it was waited for too long; call it about once a second."""
        if self.transport.is_closing():
            self.closing_since = self.closing_since or now
            if now - self.closing_since > LEAVE_WITHIN_S:
                self.transport.abort()
        elif self.head_since and now - self.head_since > HEAD_WITHIN_S:
            self.transport.close()


def look_after(connections: Iterable[object], now: float, before: float) -> None:
    """Look after every connection of a server that is HTTP, as was done `before`, a second ago or at 0.0 never.

    When that is long ago the process stood still, with its machine perhaps.
    """
    stood_still_s = now - before if before and now - before > STOOD_STILL_S else 0.0
    for connection in list(connections):
        if isinstance(connection, BoundedHeads):
            connection.forgive(stood_still_s)
            connection.look_after(now)
