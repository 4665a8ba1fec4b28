"""Streamed questions: how soon the first piece of a reply comes, and streams that stay open.

Memory of a fresh server: at rest, for each idle agent socket, for each open stream.
"""

import asyncio
import resource
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import uvloop

from lab.bench.client import LAST, HttpConnection, connected
from lab.bench.hubs import BenchTarget, Start, idle_agents

FIRST_CHUNK = b'"echo: '
WITHIN_S = 30


class StreamBroken(Exception):
    """The server closed the connection, or answered something else than this stream."""


async def first_chunks_ms(target: BenchTarget, count: int) -> list[float]:
    """Ask `count` times, one after the other; how long each first chunk took."""
    templates = target.templates("SendStreamingMessage", "stream")
    async with connected(target.port) as connection:
        return [await _first_chunk_ms(connection, templates[n % len(templates)].fill(n)) for n in range(count)]


@asynccontextmanager
async def open_streams(
    target: BenchTarget, count: int, *, streams_a_caller: int
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
    """The number of streams that send something within that time, and do not end; earlier pieces do not count."""
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


STREAMS_A_CALLER = 20  # the most that one caller may hold of one agent
WARM_UP = 50
SETTLE_S = 2.0
DESCRIPTORS_SPARE = 200


@dataclass(frozen=True)
class Memory:
    """Resident KiB of a server. `socket_kib` and `stream_kib` are each one's share of the growth."""

    target: str
    rest_kib: int
    stream_kib: float
    streams: int
    socket_kib: float | None = None
    sockets: int = 0


def measure_memory(start: Start, folder: Path, *, sockets: int, streams: int) -> Memory:
    """Open many, read what the server grew by, divide. The first few only warm the server up.

    Sockets and streams get a server each: the second count would reuse memory that the first one left free.
    """
    with start(folder) as target:
        name, has_agents = target.name, target.agents is not None
        rest_kib, stream_kib, held = uvloop.run(_stream_kib(target, streams))
    if not has_agents:
        return Memory(name, rest_kib, stream_kib, held)
    with start(folder) as target:
        return Memory(name, rest_kib, stream_kib, held, uvloop.run(_socket_kib(target, folder, sockets)), sockets)


def room_for(wanted: int) -> int:
    """The number of connections that a process may hold, at most `wanted`; raises the soft limit on the way."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard - DESCRIPTORS_SPARE)


async def settled_kib(target: BenchTarget) -> int:
    """The resident memory of a server after a moment of rest."""
    await asyncio.sleep(SETTLE_S)
    return target.server.rss_kib()


async def _stream_kib(target: BenchTarget, count: int) -> tuple[int, float, int]:
    rest_kib = await settled_kib(target)
    await first_chunks_ms(target, WARM_UP)
    each = count if target.agents is None else STREAMS_A_CALLER
    held = min(count, each * len(target.callers))
    before = target.server.rss_kib()
    async with open_streams(target, held, streams_a_caller=each):
        return rest_kib, (await settled_kib(target) - before) / held, held


async def _socket_kib(target: BenchTarget, folder: Path, count: int) -> float:
    with idle_agents(target, [target.channel_token] * WARM_UP, folder):
        await asyncio.sleep(SETTLE_S)
    before = target.server.rss_kib()
    with idle_agents(target, [target.channel_token] * count, folder):
        return (await settled_kib(target) - before) / count
