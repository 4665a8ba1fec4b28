"""Sends drawn bytes over many connections at once, and judges what comes back."""

import asyncio
import re
import socket
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tests.fuzz.live import Broke, Live
from tests.fuzz.raw import RawCase

CONNECTIONS = 128
ENDED_WITHIN_S = 60  # a deadline of the hub, and time for a busy machine
BETWEEN_PACKETS_S = 0.002
LATE_S = 0.3
MAX_BYTES = 65_536
STATUS = re.compile(rb"(?:\A|(?<=[^\n]))HTTP/1\.1 (\d{3}) ")
MAY_ANSWER = frozenset({503})
INTERNAL_ERROR = b"\x03\xf3"  # 1011, in a close frame; no drawn frame has it, which the hub would send back


@dataclass
class Dialer:
    """Sends cases. `seen`: how often each status came; 0 for a connection that was closed without an answer."""

    live: Live
    seen: Counter[int] = field(default_factory=Counter)
    sent: int = 0

    def attack(self, cases: Sequence[RawCase]) -> None:
        """Send all; raises Broke with the first case that the hub answered as it must not, or not at all."""
        self.live.run(self._attack(cases))
        self.live.check()

    async def _attack(self, cases: Sequence[RawCase]) -> None:
        waiting = iter(cases)

        async def work() -> None:
            for case in waiting:
                await self._one(case)
                self.sent += 1

        async with asyncio.TaskGroup() as workers:
            for _ in range(CONNECTIONS):
                workers.create_task(work())

    async def _one(self, case: RawCase) -> None:
        where = urlsplit(self.live.hub.url)
        reader, writer = await asyncio.open_connection(where.hostname, where.port)
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            async with asyncio.timeout(ENDED_WITHIN_S):
                received = await self._talk(case, reader, writer)
        except TimeoutError:
            raise Broke(f"neither answered nor closed within {ENDED_WITHIN_S} s: {case}") from None
        finally:
            writer.transport.abort()
        statuses = [int(one) for one in STATUS.findall(received)]
        self.seen.update(statuses or [0])
        if any(one >= 500 and one not in MAY_ANSWER for one in statuses):
            raise Broke(f"{statuses} {received[:500]!r}: {case}")
        if case.upgrade and INTERNAL_ERROR in received:
            raise Broke(f"the socket was closed with 1011: {case}")

    async def _talk(self, case: RawCase, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        received = b""
        with suppress(OSError):  # the hub closed the connection
            if case.upgrade:
                writer.write(case.upgrade)
                received = await reader.read(MAX_BYTES) if case.waits else b""
            for packet in case.packets:
                writer.write(packet)
                await writer.drain()
                await asyncio.sleep(BETWEEN_PACKETS_S)
            if case.ending == "wait":
                return received + await reader.read(MAX_BYTES)  # an answer, or the end
            if case.ending == "late":
                with suppress(TimeoutError):
                    received += await asyncio.wait_for(reader.read(MAX_BYTES), LATE_S)
            if case.ending != "reset":
                writer.write_eof()
                return received + await reader.read()  # the hub closes its side, too
        return received
