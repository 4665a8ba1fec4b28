"""What a plain ASGI callable needs: reading a bounded body, answering in one go."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
Header = tuple[bytes, bytes]


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


async def read_body(scope: Scope, receive: Receive, *, limit_bytes: int, within_s: float) -> bytes:
    """The whole request body.

    Raises:
        BodyTooLarge: by its Content-Length, or while reading.
        BodyTooSlow: it took longer than `within_s`.
        ClientLeft: it disconnected.
    """
    declared = header(scope, b"content-length")
    if declared.isdigit() and int(declared) > limit_bytes:
        raise BodyTooLarge
    try:
        async with asyncio.timeout(within_s):
            return await _collect(receive, limit_bytes)
    except TimeoutError:
        raise BodyTooSlow from None


def bounded_receive(scope: Scope, receive: Receive, *, limit_bytes: int) -> Receive:
    """A `receive` that gives no body beyond the limit: a longer one ends as if the client had left.

    Raises:
        BodyTooLarge: its Content-Length says so already.
    """
    declared = header(scope, b"content-length")
    if declared.isdigit() and int(declared) > limit_bytes:
        raise BodyTooLarge
    seen = 0

    async def bounded() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        return message if seen <= limit_bytes else {"type": "http.disconnect"}

    return bounded


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
