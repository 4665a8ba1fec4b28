"""Helpers for plain ASGI callables: a request whose headers are read once, a bounded body, a response in one call.

The form of a request is checked here for every surface (docs/adr/0104): HTTP method, headers that came twice,
media type, size, deadline. A refusal is a `RequestRefused`, which each surface answers in the form of its wire.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any, Protocol
from urllib.parse import parse_qs

import msgspec

from kit import trace
from kit.account_pace import AccountPaces
from kit.durations import seconds
from kit.tasks import wait_within

Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Coroutine[Any, Any, Message]]
Send = Callable[[Mapping[str, Any]], Coroutine[Any, Any, None]]
Header = tuple[bytes, bytes]

MAX_BODY_BYTES = 1_048_576  # of every request but uploads
PIECE_BYTES = 65_536
BODY_WITHIN_S = seconds(30.0, at_least_s=5.0)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
ALLOW_ALL = b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
JSON_TYPES = frozenset({"", "application/json", "application/a2a+json"})  # "": the request names none
FORM_TYPE = "multipart/form-data"
LARGE_BODY_BYTES = 65_536
LARGE_BODIES_A_SECOND = 1_000_000  # bytes of large bodies of JSON
TOO_MANY_REQUESTS = 429
REFUSED_AFTER_S = seconds(1.0)  # see `slow_down`
RETRY_SOON = (b"retry-after", b"2")
SINGLE_HEADERS = frozenset({"authorization", "content-type", "host", "idempotency-key", "last-event-id", "origin"})


class RequestRefused(Exception):
    """A request whose form or caller is not accepted. The text is public.

    `status`: the HTTP status; `code`: the error code of REST; `headers`: further headers of the response.
    """

    def __init__(self, status: int, code: str, message: str, *headers: Header) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = headers

    @property
    def body(self) -> bytes:
        """The body of the answer in REST."""
        return error_body(self.code, str(self))


class ClientLeft(Exception):
    """The client disconnected, or stopped reading the response."""


@contextmanager
def watch_client(receive: Receive) -> Iterator[Callable[[], None]]:
    """Watch, while the block lasts, whether the client disconnects; its request must have been read.

    Yields a function that raises `ClientLeft` once the client has disconnected. Only `receive` reports a
    disconnect, and after the body `receive` reports nothing else.
    """
    left = asyncio.ensure_future(receive())

    def check() -> None:
        if left.done():
            raise ClientLeft

    try:
        yield check
    finally:
        left.cancel()


class Exchange(Protocol):
    """A request that the server has read whole, and its response (`hub/http_protocol.py`)."""

    receive: Receive
    send: Send

    def respond(self, status: int, headers: Iterable[Header], body: bytes) -> None:
        """Write a whole response; does nothing if the client has left."""

    def begin_now(self, status: int, headers: Iterable[Header]) -> bool:
        """Write the head of a response in pieces; False: use `send`, which waits until the client reads."""

    def write_now(self, piece: bytes, *, is_last: bool) -> bool:
        """Write a piece of a response that has begun; False: use `send`, which waits until the client reads."""

    def check_client(self) -> None:
        """Raise `ClientLeft` once the client has disconnected."""

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Go on with the request in a task."""


_large_bodies = AccountPaces(LARGE_BODIES_A_SECOND)  # by token, or by address


class HttpRequest:
    """One HTTP request, its headers read once.

    `headers`: the values by name in lower case; of a repeated header the last value. `contradicted`: the name of a
    single-value header that was sent with two values, because a proxy, Django and the hub could each use a
    different one; else empty. `traceparent`: the span of the request, after `enter_trace`.
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
        # Fewer names than fields: a header is repeated, which is rare; only then the fields are read again.
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
        """Make the request part of a trace (`kit.trace`); returns the response header that names the span."""
        caller = trace.read(self.values(trace.HEADER)) if trace.HEADER in self.headers else ""
        self.traceparent = trace.follow(caller)
        trace.current_span.set(self.traceparent)
        return b"traceparent", self.traceparent.encode("ascii")

    async def read_checked(self, methods: Sequence[str], *, takes_form: bool = False) -> bytes:
        """Check the form of the request and read its body. The body of a POST must be JSON.

        `takes_form`: the body must be a form with files instead.

        Raises:
            RequestRefused: 405, 400 (a header with two values), 415, 413 or 408, the first in this order.
            ClientLeft: the client disconnected.
        """
        self.check_head(methods, takes_form=takes_form)
        self.check_length(MAX_BODY_BYTES)
        body = bytes(await self.read_body(MAX_BODY_BYTES, BODY_WITHIN_S))
        if len(body) > LARGE_BODY_BYTES:  # parsing it holds up the event loop
            address, _ = self.scope.get("client") or ("", 0)
            client = self.headers.get("authorization") or self.headers.get("cookie") or address
            await _large_bodies.of(hash(client)).keep(len(body), within_s=BODY_WITHIN_S)
        return body

    def check_whole(self, methods: Sequence[str], body: bytes) -> None:
        """Check the form of a request whose body was read already; raises what `read_checked` does."""
        self.check_head(methods)
        if len(body) > MAX_BODY_BYTES:
            raise too_large(MAX_BODY_BYTES)

    def check_head(self, methods: Sequence[str], *, takes_form: bool = False) -> None:
        """Check the form of the request, without its length. See `read_checked`."""
        if self.method not in methods:
            allow = (b"allow", ", ".join(methods).encode())
            raise RequestRefused(405, "method_not_allowed", f"want {' or '.join(methods)}", allow)
        if self.contradicted:
            raise two_values(self.contradicted)
        content_type = self.headers.get("content-type", "")
        if takes_form:
            if media_type_of(content_type) != FORM_TYPE:
                raise RequestRefused(415, "unsupported_media_type", f"want Content-Type: {FORM_TYPE}")
        elif self.method == "POST" and content_type not in JSON_TYPES and not is_json(content_type):
            raise RequestRefused(415, "unsupported_media_type", "want Content-Type: application/json")

    def check_length(self, limit_bytes: int) -> None:
        """Refuse a body by its Content-Length, before reading it.

        Raises:
            RequestRefused: 413: the Content-Length is over the limit.
        """
        declared = self.headers.get("content-length", "")
        # Cut, because Python refuses to read numbers of over 4300 digits.
        if declared.isdigit() and int(declared[:20]) > limit_bytes:
            raise too_large(limit_bytes)

    async def read_body(self, limit_bytes: int, within_s: float) -> bytearray:
        """Read the whole body.

        Raises:
            RequestRefused: 413 for a body over `limit_bytes`, 408 for one that takes longer than `within_s`.
            ClientLeft: the client disconnected.
        """
        body = bytearray()
        left_s, ends_at = within_s, monotonic() + within_s
        while True:
            try:
                message = await wait_within(self.receive(), left_s)
            except TimeoutError:
                raise RequestRefused(408, "request_timeout", f"the body took over {within_s:g} s") from None
            if message["type"] == "http.disconnect":
                raise ClientLeft
            body += message.get("body", b"")
            if len(body) > limit_bytes:
                raise too_large(limit_bytes)
            if not message.get("more_body", False):
                return body
            left_s = ends_at - monotonic()

    def _read_repeated(self, headers: Sequence[Header]) -> None:
        for raw, value in headers:
            name = str(raw, "latin-1")
            values = self._repeated.setdefault(name, [])
            values.append(str(value, "latin-1"))
        self.contradicted = contradicted_in(headers)


def contradicted_in(headers: Iterable[Header]) -> str:
    """The name of a single-value header that was sent with two different values; empty when there is none."""
    first: dict[bytes, bytes] = {}
    for raw, value in headers:
        if first.setdefault(raw, value) != value and str(raw, "latin-1") in SINGLE_HEADERS:
            return str(raw, "latin-1")
    return ""


def headers_of(scope: Scope) -> dict[str, str]:
    """The headers of a socket's upgrade by lower-case name; of a repeated header the last value."""
    return {str(name, "latin-1"): str(value, "latin-1") for name, value in scope["headers"]}


def media_type_of(content_type: str) -> str:
    """A `Content-Type` without its parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()


def is_json(content_type: str) -> bool:
    """True if a body of this `Content-Type` is read as JSON, on every surface."""
    return media_type_of(content_type) in JSON_TYPES


def two_values(name: str) -> RequestRefused:
    """The refusal 400 of a single-value header that was sent with two values."""
    return RequestRefused(400, "validation_failed", f"the header {name} came with two values")


def too_large(limit_bytes: int) -> RequestRefused:
    """The refusal 413 of a body over the limit."""
    return RequestRefused(413, "payload_too_large", f"the body is over {limit_bytes} bytes")


def receive_of(body: bytearray, receive: Receive) -> Receive:
    """A `receive` that returns this body in pieces, and then waits for the client's disconnect.

    It frees each piece that it returns: an upload is not in memory twice, here and in the application.
    """
    has_begun = False

    async def give() -> Message:
        nonlocal has_begun
        if body or not has_begun:
            has_begun = True
            piece = bytes(body[:PIECE_BYTES])
            del body[:PIECE_BYTES]
            return {"type": "http.request", "body": piece, "more_body": bool(body)}
        while (message := await receive())["type"] == "http.request":
            pass
        return message

    return give


async def respond(send: Send, status: int, body: bytes, headers: Iterable[Header] = ()) -> None:
    """Send a whole response with a JSON body."""
    base = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": [*base, *headers]})
    await send({"type": "http.response.body", "body": body})


async def answer_preflight(send: Send, headers: Sequence[Header]) -> None:
    """Answer a CORS preflight. `headers`: what pages of other origins may send."""
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def retry_after(wait_s: int) -> Header:
    """The header that says in how many seconds to ask again."""
    return b"retry-after", b"%d" % wait_s


async def slow_down(status: int) -> None:
    """Wait before a response of 429 is sent: a client that asks again at once then sends no flood of requests."""
    if status == TOO_MANY_REQUESTS:
        await asyncio.sleep(REFUSED_AFTER_S)


async def respond_refused(send: Send, refused: RequestRefused) -> None:
    """Send the response of REST to a refused request."""
    await slow_down(refused.status)
    await respond(send, refused.status, refused.body, refused.headers)


def error_body(code: str, message: str) -> bytes:
    """The body of an error of REST: a code for programs, and a sentence for people."""
    return msgspec.json.encode({"error": code, "message": message})


def below(prefix: str, path: str) -> str:
    """A path without the prefix, which a proxy may or may not have removed already."""
    if not prefix or not f"{path}/".startswith(f"{prefix}/"):
        return path
    return path[len(prefix) :] or "/"
