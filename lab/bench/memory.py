"""Memory of a fresh server: at rest, for each idle agent socket, for each open stream."""

import resource
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from lab.bench.streams import first_chunks_ms, open_streams
from lab.bench.targets import Start, Target, agents

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
    """Open many, see what the server grew by, divide. The first few only warm it up.

    Sockets and streams get a server each: the second would find room that the first one left.
    """
    with start(folder) as target:
        time.sleep(SETTLE_S)
        name, rest_kib = target.name, target.server.rss_kib()
        stream_kib, held = _stream_kib(target, streams)
    if target.agents is None:
        return Memory(name, rest_kib, stream_kib, held)
    with start(folder) as target:
        return Memory(name, rest_kib, stream_kib, held, _socket_kib(target, folder, sockets), sockets)


def room_for(wanted: int) -> int:
    """How many connections one process may hold here, at most `wanted`; raises the soft limit on the way."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard - DESCRIPTORS_SPARE)


def _stream_kib(target: Target, count: int) -> tuple[float, int]:
    first_chunks_ms(target, WARM_UP)
    each = count if target.agents is None else STREAMS_A_CALLER
    held = min(count, each * len(target.callers))
    return _growth_kib(target, open_streams(target, held, streams_a_caller=each)) / held, held


def _socket_kib(target: Target, folder: Path, count: int) -> float:
    with _idle_agents(target, folder, WARM_UP):
        time.sleep(SETTLE_S)
    return _growth_kib(target, _idle_agents(target, folder, count)) / count


def _growth_kib(target: Target, opened: AbstractContextManager[object]) -> int:
    before = target.server.rss_kib()
    with opened:
        time.sleep(SETTLE_S)
        return target.server.rss_kib() - before


def _idle_agents(target: Target, folder: Path, count: int) -> AbstractContextManager[object]:
    newcomer = {"channel_token": target.channel_token, "session_id": ""}
    return agents(target.port, [newcomer] * count, folder / f"{target.name}-idle-{count}.log")
