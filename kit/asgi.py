"""What a plain ASGI callable needs: reading a bounded body, answering in one go."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any
from urllib.parse import parse_qs

from kit import trace
from kit.durations import seconds
from kit.waits import within

Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
Header = tuple[bytes, bytes]

MAX_BODY_BYTES = 1_048_576  # of every request but uploads
BODY_WITHIN_S = seconds(30.0, at_least_s=5.0)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
ALLOW_ALL = b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
SINGLE_HEADERS = frozenset(
    {b"authorization", b"content-type", b"host", b"idempotency-key", b"last-event-id", b"origin"}
)


class BodyTooLarge(Exception):
    """The body is over the limit; nothing of it was kept."""


class BodyTooSlow(Exception):
    """The body was not complete in time."""


class ClientLeft(Exception):
    """The client went away, or takes nothing any more."""


def header(scope: Scope, name: bytes) -> str:
    """The first value of a header (name in lower case), or the empty string."""
    for key, value in scope["headers"]:
        if key == name:
            return str(value, "latin-1")
    return ""


def headers_named(scope: Scope, name: bytes) -> list[str]:
    """Every value of a header (name in lower case)."""
    return [str(value, "latin-1") for key, value in scope["headers"] if key == name]


def contradicted_header(scope: Scope) -> str:
    """The name of a header that has one value and came with two; empty when there is none.

    Which of the two counts would depend on the reader: a proxy, Django, or the hub. Case does not count.
    """
    seen: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        if name in SINGLE_HEADERS and seen.setdefault(name, value) != value:
            return str(name, "latin-1")
    return ""


def query_values(scope: Scope, name: str) -> list[str]:
    """Every value of a query parameter."""
    query = scope.get("query_string", b"")
    return parse_qs(str(query, "latin-1")).get(name, []) if query else []


def headers_of(scope: Scope) -> dict[str, str]:
    """Headers by lower-case name; of one sent twice the last value."""
    return {str(name, "latin-1"): str(value, "latin-1") for name, value in scope["headers"]}


def media_type_of(content_type: str) -> str:
    """A `Content-Type` without its parameters, in lower case."""
    return content_type.partition(";")[0].strip().lower()


def traced(scope: Scope) -> Header:
    """From now on the request is part of a trace (`kit.trace`); the header that says so in its answer."""
    return b"traceparent", trace.enter(headers_named(scope, b"traceparent")).encode("ascii")


async def read_body(scope: Scope, receive: Receive, *, limit_bytes: int, within_s: float) -> bytes:
    """The whole request body.

    Raises:
        BodyTooLarge: by its Content-Length, or while reading.
        BodyTooSlow: it took longer than `within_s`.
        ClientLeft: it disconnected.
    """
    check_length(scope, limit_bytes)
    try:
        return await within(_collect(receive, limit_bytes), within_s)
    except TimeoutError:
        raise BodyTooSlow from None


class BoundedBody:
    """A `receive` that gives no more of a body than that, and for no longer.

    A body over a bound ends as if the client had left. `broken` then says why: nobody has answered yet.
    """

    def __init__(self, receive: Receive, *, limit_bytes: int, within_s: float) -> None:
        self.broken: BodyTooLarge | BodyTooSlow | None = None
        self._receive = receive
        self._left_bytes = limit_bytes
        self._deadline = asyncio.get_running_loop().time() + within_s
        self._is_whole = False

    async def receive(self) -> Message:
        """The next message of the request."""
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


def check_length(scope: Scope, limit_bytes: int) -> None:
    """Refuse a body before it comes.

    Raises:
        BodyTooLarge: its Content-Length says so.
    """
    declared = header(scope, b"content-length")
    if declared.isdigit() and int(declared[:20]) > limit_bytes:
        raise BodyTooLarge


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


async def _collect(receive: Receive, limit_bytes: int) -> bytes:
    body = bytearray()
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        body += message.get("body", b"")
        if len(body) > limit_bytes:
            raise BodyTooLarge
        more = message.get("more_body", False)
    return bytes(body)


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
