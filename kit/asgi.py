"""What a plain ASGI callable needs: a request whose headers are read once, a bounded body, an answer in one go."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs

from kit import trace
from kit.durations import seconds
from kit.waits import within

Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Mapping[str, Any]], Coroutine[Any, Any, None]]
Header = tuple[bytes, bytes]

MAX_BODY_BYTES = 1_048_576  # of every request but uploads
BODY_WITHIN_S = seconds(30.0, at_least_s=5.0)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
ALLOW_ALL = b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
SINGLE_HEADERS = frozenset({"authorization", "content-type", "host", "idempotency-key", "last-event-id", "origin"})


class BodyTooLarge(Exception):
    """The body is over the limit; nothing of it was kept."""


class BodyTooSlow(Exception):
    """The body was not complete in time."""


class ClientLeft(Exception):
    """The client went away, or takes nothing any more."""


class HttpRequest:
    """One HTTP request, its headers read once.

    `headers`: by name in lower case; of one that came twice the last value. `contradicted`: the name of a header
    that has one value and came with two; empty when there is none. Which of the two counts would depend on the
    reader: a proxy, Django, or the hub. `traceparent`: the span of the request, once `enter_trace` made it.
    """

    __slots__ = ("_repeated", "contradicted", "headers", "method", "path", "receive", "scope", "traceparent")

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope = scope
        self.receive = receive
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.headers: dict[str, str] = {}
        self.contradicted = self.traceparent = ""
        self._repeated: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            self.headers[str(name, "latin-1")] = str(value, "latin-1")
        # Fewer names than fields: one came more than once, which is rare and looked at only then.
        if len(self.headers) < len(scope["headers"]):
            self._read_repeated(scope["headers"])

    def values(self, name: str) -> Sequence[str]:
        """Every value of a header (name in lower case)."""
        if name in self._repeated:
            return self._repeated[name]
        return (self.headers[name],) if name in self.headers else ()

    def query_values(self, name: str) -> Sequence[str]:
        """Every value of a query parameter."""
        query = self.scope.get("query_string", b"")
        return parse_qs(str(query, "latin-1")).get(name, ()) if query else ()

    def enter_trace(self) -> Header:
        """From now on the request is part of a trace (`kit.trace`); the header that says so in its answer."""
        self.traceparent = trace.enter(self.values("traceparent"))
        return b"traceparent", self.traceparent.encode("ascii")

    def check_length(self, limit_bytes: int) -> None:
        """Refuse a body before it comes.

        Raises:
            BodyTooLarge: its Content-Length says so.
        """
        declared = self.headers.get("content-length", "")
        # Cut, because Python refuses to read numbers of over 4300 digits.
        if declared.isdigit() and int(declared[:20]) > limit_bytes:
            raise BodyTooLarge

    async def read_body(self) -> bytes:
        """The whole body, at most MAX_BODY_BYTES.

        Raises:
            BodyTooLarge: by its Content-Length, or while reading.
            BodyTooSlow: it took longer than BODY_WITHIN_S.
            ClientLeft: it disconnected.
        """
        self.check_length(MAX_BODY_BYTES)
        try:
            return await within(self._collect(), BODY_WITHIN_S)
        except TimeoutError:
            raise BodyTooSlow from None

    async def _collect(self) -> bytes:
        body = bytearray()
        more = True
        while more:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientLeft
            body += message.get("body", b"")
            if len(body) > MAX_BODY_BYTES:
                raise BodyTooLarge
            more = message.get("more_body", False)
        return bytes(body)

    def _read_repeated(self, headers: Sequence[Header]) -> None:
        for raw, value in headers:
            name = str(raw, "latin-1")
            values = self._repeated.setdefault(name, [])
            values.append(str(value, "latin-1"))
        self.contradicted = contradicted_in(headers)


def contradicted_in(headers: Iterable[Header]) -> str:
    """The name of a header that has one value and came with two; empty when there is none."""
    first: dict[bytes, bytes] = {}
    for raw, value in headers:
        if first.setdefault(raw, value) != value and str(raw, "latin-1") in SINGLE_HEADERS:
            return str(raw, "latin-1")
    return ""


def headers_of(scope: Scope) -> dict[str, str]:
    """The headers of a socket's upgrade by lower-case name; of one sent twice the last value."""
    return {str(name, "latin-1"): str(value, "latin-1") for name, value in scope["headers"]}


def media_type_of(content_type: str) -> str:
    """A `Content-Type` without its parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()


class BoundedBody:
    """A `receive` that gives no more of a body than that, and for no longer.

    A body over a bound ends as if the client had left. `broken` then says why: no answer was sent yet.
    """

    def __init__(self, receive: Receive, *, limit_bytes: int, within_s: float) -> None:
        self.broken: BodyTooLarge | BodyTooSlow | None = None
        self._receive = receive
        self._left_bytes = limit_bytes
        self._deadline = asyncio.get_running_loop().time() + within_s
        self._is_whole = False

    async def receive(self) -> Message:
        """The next message of the request."""
        # After the body only the end of the connection can come, and an answer may take as long as it likes.
        if self._is_whole:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            return self._break(BodyTooSlow())
        self._left_bytes -= len(message.get("body", b""))
        self._is_whole = not message.get("more_body", False)
        return message if self._left_bytes >= 0 else self._break(BodyTooLarge())

    def _break(self, why: BodyTooLarge | BodyTooSlow) -> Message:
        self.broken = why
        return {"type": "http.disconnect"}


def bodiless(receive: Receive) -> Receive:
    """A `receive` without the body, whatever the client sends: for who is refused without reading it."""
    begun = False

    async def empty() -> Message:
        nonlocal begun
        if not begun:
            begun = True
            return {"type": "http.request", "body": b"", "more_body": False}
        while (message := await receive())["type"] == "http.request":
            pass
        return message

    return empty


async def respond(send: Send, status: int, body: bytes, headers: Iterable[Header] = ()) -> None:
    """Answer at once with a JSON body."""
    base = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": [*base, *headers]})
    await send({"type": "http.response.body", "body": body})


def below(prefix: str, path: str) -> str:
    """A path without the prefix that a proxy may have left on it; one that does not begin with it as it is."""
    if not prefix or not f"{path}/".startswith(f"{prefix}/"):
        return path
    return path[len(prefix) :] or "/"
