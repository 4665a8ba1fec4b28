"""Load at a fixed pace: asks begin when they are due, whether or not those before were answered."""

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import httptools

from lab.bench.targets import Requests

TICK_S = 0.001
LAST_WITHIN_S = 10.0


@dataclass
class Paced:
    """What came of it. `took_ms`: from when each was due, so that an ask which had to wait its turn counts so."""

    rate: float
    took_ms: list[float] = field(default_factory=list)
    errors: int = 0


class _Line(asyncio.Protocol):
    """One connection, which takes the next ask that is due as soon as it is free."""

    def __init__(self, generator: "_Generator") -> None:
        self._generator = generator
        self._parser = httptools.HttpResponseParser(self)
        self._body = b""
        self.due = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        is_good = self._parser.get_status_code() == 200 and self._generator.expected in self._body
        self._body = b""
        self._generator.answered(self, is_good=is_good)


class _Generator:
    def __init__(self, templates: Sequence[Requests], rate: float) -> None:
        self.paced = Paced(rate)
        self._templates = templates
        self.expected = templates[0].answered.encode()
        self._number = 0
        self._waiting: deque[float] = deque()
        self.free: list[_Line] = []

    def due(self, moment: float) -> None:
        self._waiting.append(moment)
        if self.free:
            self._ask(self.free.pop())

    def answered(self, line: _Line, *, is_good: bool) -> None:
        self.paced.took_ms.append((time.perf_counter() - line.due) * 1000)
        self.paced.errors += not is_good
        if self._waiting:
            self._ask(line)
        else:
            self.free.append(line)

    def _ask(self, line: _Line) -> None:
        line.due = self._waiting.popleft()
        self._number += 1
        template = self._templates[self._number % len(self._templates)]
        line.transport.write(template.fill(self._number))


async def pace(templates: Sequence[Requests], port: int, connections: int, rate: float, seconds: float) -> Paced:
    """Ask `rate` times a second, evenly, over at most so many connections at once."""
    loop, generator = asyncio.get_running_loop(), _Generator(templates, rate)
    for _ in range(connections):
        _, line = await loop.create_connection(lambda: _Line(generator), "127.0.0.1", port)
        generator.free.append(line)
    began, asked = time.perf_counter(), 0
    while asked < rate * seconds:
        while asked < rate * seconds and (moment := began + asked / rate) <= time.perf_counter():
            generator.due(moment)
            asked += 1
        await asyncio.sleep(TICK_S)
    deadline = time.monotonic() + LAST_WITHIN_S
    while len(generator.free) < connections and time.monotonic() < deadline:
        await asyncio.sleep(TICK_S)
    generator.paced.errors += asked - len(generator.paced.took_ms)
    for line in generator.free:
        line.transport.close()
    return generator.paced
