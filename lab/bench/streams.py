"""Streamed questions: how soon the first piece of a reply comes, and streams that stay open."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from lab.bench.client import LAST, HttpConnection, connected
from lab.bench.hubs import Target

FIRST_CHUNK = b'"echo: '
WITHIN_S = 30


class StreamBroken(Exception):
    """The server closed the connection, or answered something else than this stream."""


async def first_chunks_ms(target: Target, count: int) -> list[float]:
    """Ask `count` times, one after the other; how long each first chunk took."""
    templates = target.templates("SendStreamingMessage", "stream")
    async with connected(target.port) as connection:
        return [await _first_chunk_ms(connection, templates[n % len(templates)].fill(n)) for n in range(count)]


@asynccontextmanager
async def open_streams(
    target: Target, count: int, *, streams_a_caller: int
) -> AsyncIterator[list[HttpConnection]]:
    """Hold streams whose agents never answer; inside, each has had its first event."""
    templates = target.templates("SendStreamingMessage", "hold")
    async with AsyncExitStack() as stack:
        held = []
        for number in range(count):
            connection = await stack.enter_async_context(connected(target.port))
            connection.writer.write(templates[number // streams_a_caller % len(templates)].fill(number))
            event = await _read_to(connection, b'"state"')
            if b"FAILED" in event:
                raise StreamBroken(event[-300:])
            held.append(connection)
        yield held


async def count_alive(connections: Sequence[HttpConnection], within_s: float) -> int:
    """How many streams send something within that time, and do not end; what they sent before does not count."""
    for connection in connections:
        with suppress(TimeoutError):
            async with asyncio.timeout(0):
                while await connection.reader.read(65536):
                    pass
    said = await asyncio.gather(*(_next_piece(one, within_s) for one in connections))
    return sum(bool(piece) and LAST not in piece for piece in said)


async def _next_piece(connection: HttpConnection, within_s: float) -> bytes:
    with suppress(TimeoutError, ConnectionError):
        async with asyncio.timeout(within_s):
            return await connection.reader.read(65536)
    return b""


async def _first_chunk_ms(connection: HttpConnection, request: bytes) -> float:
    began = time.perf_counter()
    connection.writer.write(request)
    answer = await _read_to(connection, FIRST_CHUNK)
    took_ms = (time.perf_counter() - began) * 1000
    if b'COMPLETED"' not in await _read_to(connection, LAST):
        raise StreamBroken(answer[-300:])
    return took_ms


async def _read_to(connection: HttpConnection, mark: bytes) -> bytes:
    try:
        async with asyncio.timeout(WITHIN_S):
            return await connection.reader.readuntil(mark)
    except (TimeoutError, asyncio.IncompleteReadError) as failure:
        raise StreamBroken(repr(failure)) from None
