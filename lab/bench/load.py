"""The load: connections that ask again as soon as they are answered, or asks that begin at a fixed rate."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import cast

import httptools
import uvloop

from lab.bench.client import RequestSource
from lab.bench.hubs import BenchTarget
from lab.bench.meter import Meter, Used
from lab.figures import NOT_A_NUMBER, median_ratio, percentile
from lab.processes import Program

CONNECTED_WITHIN_S = 30.0
LAST_WITHIN_S = 10.0
TICK_S = 0.001
SATURATED = 0.95


@dataclass(frozen=True)
class LoadRun:
    """The figures of one run. Times are of answered asks, in milliseconds.

    `rate`: how many asks began in a second, whether or not those before were answered; None: each connection asked
    again as soon as it was answered. `generator_cpu`: the share of a core that the load itself used.
    """

    target: str
    connections: int
    asks_per_s: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float
    errors: int
    first_error: str
    generator_cpu: float
    used: Used
    rate: float | None = None

    @property
    def asks(self) -> float:
        """The number of answered asks."""
        return self.asks_per_s * self.used.took_s

    @property
    def server_cpu(self) -> float:
        """The share of a core that the web processes used."""
        return self.used.web_s / self.used.took_s

    @property
    def web_ms(self) -> float:
        """Processor time of the web processes for an ask."""
        return self.used.web_s / self.asks * 1000 if self.asks else NOT_A_NUMBER


@dataclass(frozen=True)
class AskedServer:
    """A server that is asked: its port, and the requests in turn."""

    port: int
    requests: Sequence[RequestSource]


def measure(
    target: BenchTarget,
    connections: int,
    seconds: float,
    *,
    method: str = "SendMessage",
    kind: str = "say",
    rate: float | None = None,
) -> LoadRun:
    """Load one target; `kind` is the first word of each question."""
    asked = [AskedServer(target.port, target.templates(method, kind))]
    agents = [target.agents] if target.agents else []
    return measure_servers(target.name, [target.server], asked, connections, seconds, agents=agents, rate=rate)


def measure_servers(
    name: str,
    servers: Sequence[Program],
    asked: Sequence[AskedServer],
    connections: int,
    seconds: float,
    *,
    agents: Sequence[Program] = (),
    rate: float | None = None,
) -> LoadRun:
    """Load several servers at once, each over so many connections.

    Raises:
        TimeoutError: a server accepts no connections.
    """
    tally, cpu_s = Tally(), time.process_time()
    meter = Meter(servers, agents)
    took_s = uvloop.run(_generate(asked, connections, seconds, rate, tally))
    used, cpu_s = meter.used(), time.process_time() - cpu_s
    p50, p95, p99, most = (percentile(tally.took_ms, share) for share in (0.5, 0.95, 0.99, 1.0))
    return LoadRun(
        target=name,
        connections=connections * len(asked),
        asks_per_s=len(tally.took_ms) / took_s,
        p50_ms=p50,
        p95_ms=p95,
        p99_ms=p99,
        max_ms=most,
        errors=tally.errors,
        first_error=tally.first_error,
        generator_cpu=cpu_s / took_s,
        used=used,
        rate=rate,
    )


@dataclass
class Tally:
    """The results of the asks. `took_ms`: from when each was due, so that waiting for a connection counts too."""

    took_ms: list[float] = field(default_factory=list)
    errors: int = 0
    first_error: str = ""

    def fail(self, what: str) -> None:
        """Count an ask that was not answered."""
        self.errors += 1
        self.first_error = self.first_error or what[:300]


class Generator:
    """The asks of one server. `is_paced`: an ask begins only when `due` says so."""

    def __init__(self, requests: Sequence[RequestSource], tally: Tally, *, is_paced: bool) -> None:
        self.expected = requests[0].answered.encode()
        self.free: list[AskingConnection] = []
        self.waiting: deque[float] = deque()
        self.is_over = False
        self._requests, self._tally, self._is_paced = requests, tally, is_paced
        self._number = 0

    def due(self, moment: float) -> None:
        """Begin an ask, as soon as a connection is free."""
        self.waiting.append(moment)
        if self.free:
            self._ask(self.free.pop(), self.waiting.popleft())

    def take(self, connection: "AskingConnection") -> None:
        """Use a connection that is free."""
        if self.is_over:
            return
        if not self._is_paced:
            self._ask(connection, time.perf_counter())
        elif self.waiting:
            self._ask(connection, self.waiting.popleft())
        else:
            self.free.append(connection)

    def answered(self, connection: "AskingConnection", status: int, body: bytes) -> None:
        """Count an answer, and use its connection again."""
        if status == 200 and self.expected in body:
            self._tally.took_ms.append((time.perf_counter() - connection.due) * 1000)
        else:
            self._tally.fail(body.decode(errors="replace"))
        self.take(connection)

    def lost(self, failure: Exception | None) -> None:
        """Count a connection that the server closed."""
        if not self.is_over:
            self._tally.fail(f"connection lost: {failure}")

    def _ask(self, connection: "AskingConnection", due: float) -> None:
        self._number += 1
        connection.due = due
        connection.transport.write(self._requests[self._number % len(self._requests)].fill(self._number))


class AskingConnection(asyncio.Protocol):
    """One connection of a generator, which has at most one ask under way."""

    def __init__(self, generator: Generator) -> None:
        self.due = 0.0
        self._generator = generator
        self._parser = httptools.HttpResponseParser(self)
        self._body = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Uvloop's transport is no subclass of asyncio.Transport.
        self.transport = cast(asyncio.Transport, transport)
        self._generator.take(self)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        body, self._body = self._body, b""
        self._generator.answered(self, self._parser.get_status_code(), body)

    def connection_lost(self, exc: Exception | None) -> None:
        self._generator.lost(exc)


async def _generate(
    asked: Sequence[AskedServer], connections: int, seconds: float, rate: float | None, tally: Tally
) -> float:
    """Ask for some seconds; how long that took, without the wait for the last answers of paced asks."""
    loop, generators, made = asyncio.get_running_loop(), [], []
    began = time.perf_counter()
    async with asyncio.timeout(CONNECTED_WITHIN_S):
        for one in asked:
            generator = Generator(one.requests, tally, is_paced=rate is not None)
            generators.append(generator)
            for _ in range(connections):
                _, connection = await loop.create_connection(
                    lambda generator=generator: AskingConnection(generator),  # type: ignore[misc]
                    "127.0.0.1",
                    one.port,
                )
                made.append(connection)
    if rate is None:
        await asyncio.sleep(seconds)
    else:
        began = time.perf_counter()
        await _pace(generators, rate, seconds, tally)
    took_s = time.perf_counter() - began if rate is None else seconds
    for generator in generators:
        generator.is_over = True
    for connection in made:
        connection.transport.close()
    return took_s


async def _pace(generators: Sequence[Generator], rate: float, seconds: float, tally: Tally) -> None:
    """Begin asks evenly, whether or not those before were answered; then wait for the last answers."""
    began, asked = time.perf_counter(), 0
    while asked < rate * seconds:
        while asked < rate * seconds and (moment := began + asked / rate) <= time.perf_counter():
            generators[asked % len(generators)].due(moment)
            asked += 1
        await asyncio.sleep(TICK_S)
    deadline = time.monotonic() + LAST_WITHIN_S
    while len(tally.took_ms) + tally.errors < asked and time.monotonic() < deadline:
        await asyncio.sleep(TICK_S)
    tally.errors += max(0, asked - len(tally.took_ms) - tally.errors)


def _full(share: float) -> str:
    return f"{share:.0%}" + (" full" if share > SATURATED else "")


COLUMNS: Mapping[str, Callable[[Sequence[LoadRun]], str]] = {
    "asks/s": lambda runs: f"{median(run.asks_per_s for run in runs):.0f}",
    "p50 ms": lambda runs: f"{median(run.p50_ms for run in runs):.1f}",
    "p95 ms": lambda runs: f"{median(run.p95_ms for run in runs):.1f}",
    "p99 ms": lambda runs: f"{median(run.p99_ms for run in runs):.1f}",
    "max ms": lambda runs: f"{max(run.max_ms for run in runs):.1f}",
    "errors": lambda runs: str(sum(run.errors for run in runs)),
    "server cpu": lambda runs: f"{median(run.server_cpu for run in runs):.0%}",
    "stolen": lambda runs: f"{median(run.used.stolen for run in runs):.0%}",
    "others": lambda runs: f"{median(run.used.others for run in runs):.0%}",
    "load's core": lambda runs: _full(median(run.used.load_core for run in runs)),
    "web ms/ask": lambda runs: f"{median(run.web_ms for run in runs):.3f}",
    "pg ms/ask": lambda runs: f"{_ms_an_ask(runs, lambda used: used.postgres_s):.3f}",
    "redis ms/ask": lambda runs: f"{_ms_an_ask(runs, lambda used: used.redis_s):.3f}",
}
"""The columns of tables of runs: medians, but for the largest time and the sum of errors."""


def cells(runs: Sequence[LoadRun], *columns: str) -> list[str]:
    """Some of COLUMNS for runs of one kind."""
    return [COLUMNS[column](runs) for column in columns]


def speed_ratio(runs: Sequence[LoadRun], base: Sequence[LoadRun]) -> float:
    """Asks per second divided by those of the base; the median of the rounds, each round for itself."""
    return median_ratio([run.asks_per_s for run in runs], [run.asks_per_s for run in base])


def _ms_an_ask(runs: Sequence[LoadRun], part: Callable[[Used], float]) -> float:
    asks = sum(run.asks for run in runs)
    return sum(part(run.used) for run in runs) / asks * 1000 if asks else NOT_A_NUMBER
