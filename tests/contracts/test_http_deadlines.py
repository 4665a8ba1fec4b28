"""A client that takes nothing loses its connection, whether its answer was at an end or not; others do not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvicorn

from hub.http_protocol import HubHttpProtocol
from kit.asgi import Receive, Scope, Send
from lab.waiting import eventually
from tests.contracts.servers import serving

MUCH = 32 * 1_048_576  # more than any kernel keeps for who does not read
PIECE = b"x" * 65_536


class ShortDeadline(HubHttpProtocol):
    """The hub's own, in a hurry."""

    taken_within_s = 0.5


class LongerDeadline(HubHttpProtocol):
    """The same, for clients that read: a busy machine may stop them for a second."""

    taken_within_s = 2.0


async def much(scope: Scope, receive: Receive, send: Send) -> None:
    """An answer of MUCH: at `/whole` in one piece, elsewhere in many."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % MUCH)]})
    if scope["path"] != "/whole":
        for _ in range(MUCH // len(PIECE)):
            await send({"type": "http.response.body", "body": PIECE, "more_body": True})
    await send({"type": "http.response.body", "body": bytes(MUCH) if scope["path"] == "/whole" else b""})


@asynccontextmanager
async def asked(server: uvicorn.Server, path: str) -> AsyncIterator[asyncio.StreamReader]:
    """The response as far as it is read: asyncio stops taking from the kernel after 128 KiB."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.config.port)
    writer.write(f"GET {path} HTTP/1.0\r\n\r\n".encode())
    try:
        yield reader
    finally:
        writer.transport.abort()


@pytest.mark.parametrize("path", ["/whole", "/pieces"])
async def test_who_reads_nothing_loses_the_connection(path: str) -> None:
    async with serving(much, ShortDeadline, loop="asyncio") as server, asked(server, path) as reader:
        await reader.readexactly(1)

        async def is_gone() -> bool:
            return not server.server_state.connections

        await eventually(is_gone, "the hub lets go of it")


@pytest.mark.parametrize("path", ["/whole", "/pieces"])
async def test_who_reads_gets_it_all(path: str) -> None:
    async with serving(much, LongerDeadline, loop="asyncio") as server, asked(server, path) as reader:
        answer = await reader.read(-1)
    assert len(answer.partition(b"\r\n\r\n")[2]) == MUCH


@pytest.mark.slow
async def test_who_reads_with_breaks_keeps_the_connection() -> None:
    """Each break is long, none as long as the hub waits; together they are longer."""
    size = 0
    async with serving(much, LongerDeadline, loop="asyncio") as server, asked(server, "/pieces") as reader:
        while more := await reader.read(8 * 1_048_576):
            size += len(more)
            if size % (4 * 1_048_576) < len(more):
                await asyncio.sleep(LongerDeadline.taken_within_s / 6)
    assert size > MUCH
