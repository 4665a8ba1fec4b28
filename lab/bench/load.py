"""One run of load: `connections` askers, each asking again as soon as it was answered, for some seconds."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import httptools
import uvloop

from lab.bench import wrk
from lab.bench.cores import LOAD_CORE, SERVER_CORE
from lab.bench.targets import Requests, Target, Template
from lab.processes import TICKS_A_SECOND, Program

CONNECTED_WITHIN_S = 30.0


@dataclass(frozen=True)
class Run:
    """What one run measured. The last four are shares of one core, 1.0 is all of it.

    `stolen`: what others, on this machine or its host, took of the server's core.
    """

    target: str
    connections: int
    asks_per_s: float
    p50_ms: float
    p99_ms: float
    errors: int
    first_error: str
    server_cpu: float
    stolen: float
    load_core: float
    generator_cpu: float


def measure(
    target: Target, connections: int, seconds: int, *, method: str = "SendMessage", kind: str = "say"
) -> Run:
    """Load one target; `kind` is the first word of each question."""
    templates = target.templates(method, kind)
    return _watch(
        target.name, target.server, connections, lambda: generate(templates, target.port, connections, seconds)
    )


def measure_raw(
    name: str, server: Program, port: int, requests: Sequence[Requests], connections: int, seconds: float
) -> Run:
    """Load a server by our own generator.

    Raises:
        TimeoutError: it accepts no connections.
    """
    return _watch(name, server, connections, lambda: uvloop.run(_run_within(requests, port, connections, seconds)))


def _watch(name: str, server: Program, connections: int, generate_load: Callable[[], wrk.Said]) -> Run:
    cpu, busy, server_busy = server.cpu_s(), _busy_s(LOAD_CORE), _busy_s(SERVER_CORE)
    began = time.monotonic()
    said = generate_load()
    took = time.monotonic() - began
    server_cpu = (server.cpu_s() - cpu) / took
    return Run(
        target=name,
        connections=connections,
        server_cpu=server_cpu,
        stolen=max(0.0, (_busy_s(SERVER_CORE) - server_busy) / took - server_cpu),
        load_core=(_busy_s(LOAD_CORE) - busy) / took,
        **said,
    )


def generate(templates: list[Template], port: int, connections: int, seconds: int) -> wrk.Said:
    """The load itself, by wrk where there is one, else by our own generator."""
    if wrk.is_there():
        return wrk.run(templates, port, connections, seconds)
    return uvloop.run(_run(templates, port, connections, seconds))


def _busy_s(core: int) -> float:
    """How long a core has worked since the machine started, for all processes."""
    line = next(line for line in Path("/proc/stat").read_text().splitlines() if line.startswith(f"cpu{core} "))
    user, nice, system, _idle, _wait, irq, softirq, steal, *_ = map(int, line.split()[1:])
    return (user + nice + system + irq + softirq + steal) / TICKS_A_SECOND


@dataclass
class _Tally:
    latencies_ms: list[float] = field(default_factory=list)
    errors: int = 0
    first_error: str = ""

    def fail(self, what: str) -> None:
        self.errors += 1
        self.first_error = self.first_error or what[:300]


class _Asker(asyncio.Protocol):
    """One connection of our own generator."""

    def __init__(self, templates: Sequence[Requests], numbers: list[int], tally: _Tally) -> None:
        self._templates, self._numbers, self._tally = templates, numbers, tally
        self._parser = httptools.HttpResponseParser(self)
        self._body = b""
        self._answered = templates[0].answered.encode()
        self._asked_at = 0.0
        self._over = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's does not inherit from it
        self._ask()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        if self._parser.get_status_code() == 200 and self._answered in self._body:
            self._tally.latencies_ms.append((time.perf_counter() - self._asked_at) * 1000)
        else:
            self._tally.fail(self._body.decode(errors="replace"))
        self._body = b""
        self._ask()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._over:
            self._tally.fail(f"connection lost: {exc}")

    def stop(self) -> None:
        self._over = True
        self._transport.close()

    def _ask(self) -> None:
        if not self._over:
            self._numbers[0] += 1
            template = self._templates[self._numbers[0] % len(self._templates)]
            self._asked_at = time.perf_counter()
            self._transport.write(template.fill(self._numbers[0]))


async def _run_within(templates: Sequence[Requests], port: int, connections: int, seconds: float) -> wrk.Said:
    async with asyncio.timeout(seconds + CONNECTED_WITHIN_S):
        return await _run(templates, port, connections, seconds)


async def _run(templates: Sequence[Requests], port: int, connections: int, seconds: float) -> wrk.Said:
    loop, tally, numbers = asyncio.get_running_loop(), _Tally(), [0]
    began, cpu = time.monotonic(), time.process_time()
    askers: list[_Asker] = []
    for _ in range(connections):
        _, asker = await loop.create_connection(lambda: _Asker(templates, numbers, tally), "127.0.0.1", port)
        askers.append(asker)
    await asyncio.sleep(seconds)
    took = time.monotonic() - began
    for asker in askers:
        asker.stop()
    ordered = sorted(tally.latencies_ms) or [float("nan")]
    return {
        "asks_per_s": len(tally.latencies_ms) / took,
        "p50_ms": ordered[len(ordered) // 2],
        "p99_ms": ordered[len(ordered) * 99 // 100],
        "errors": tally.errors,
        "first_error": tally.first_error,
        "generator_cpu": (time.process_time() - cpu) / took,
    }
