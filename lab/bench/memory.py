"""Memory of a fresh server: at rest, for each idle agent socket, for each open stream."""

import asyncio
import resource
from dataclasses import dataclass
from pathlib import Path

import uvloop

from lab.bench.hubs import Start, Target, idle_agents
from lab.bench.streams import first_chunks_ms, open_streams

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


def measure(start: Start, folder: Path, *, sockets: int, streams: int) -> Memory:
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
    """How many connections one process may hold here, at most `wanted`; raises the soft limit on the way."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard - DESCRIPTORS_SPARE)


async def settled_kib(target: Target) -> int:
    """The resident memory of a server after a moment of rest."""
    await asyncio.sleep(SETTLE_S)
    return target.server.rss_kib()


async def _stream_kib(target: Target, count: int) -> tuple[int, float, int]:
    rest_kib = await settled_kib(target)
    await first_chunks_ms(target, WARM_UP)
    each = count if target.agents is None else STREAMS_A_CALLER
    held = min(count, each * len(target.callers))
    before = target.server.rss_kib()
    async with open_streams(target, held, streams_a_caller=each):
        return rest_kib, (await settled_kib(target) - before) / held, held


async def _socket_kib(target: Target, folder: Path, count: int) -> float:
    with idle_agents(target, [target.channel_token] * WARM_UP, folder):
        await asyncio.sleep(SETTLE_S)
    before = target.server.rss_kib()
    with idle_agents(target, [target.channel_token] * count, folder):
        return (await settled_kib(target) - before) / count
