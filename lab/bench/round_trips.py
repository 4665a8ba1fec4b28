"""A TCP way to a database that counts round trips: how often the client spoke after the server had."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from lab.listeners import stop_accepting

PIECE_BYTES = 65_536
WITHIN_S = 10.0


@dataclass(slots=True)
class Connection:
    """One client's. What it sends in several pieces before it is answered is one trip."""

    round_trips: int = 0
    server_spoke: bool = True


class RoundTrips:
    """Passes everything on to a port of this machine; runs in a thread of its own."""

    def __init__(self, to_port: int) -> None:
        self.port = 0
        self._to_port = to_port
        self._connections: list[Connection] = []

    def counts(self) -> list[int]:
        """The round trips of each connection so far; connections keep their place."""
        return [connection.round_trips for connection in self._connections]

    async def serve(self, listening: threading.Event, ending: asyncio.Event) -> None:
        """Listen until `ending`."""
        server = await asyncio.start_server(self._join, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        listening.set()
        await ending.wait()
        await stop_accepting(server)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._to_port)
        self._connections.append(connection := Connection())
        with suppress(ConnectionError):
            await asyncio.gather(
                self._pass(reader, far_writer, connection, is_client=True),
                self._pass(far_reader, writer, connection, is_client=False),
            )

    async def _pass(
        self,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        connection: Connection,
        *,
        is_client: bool,
    ) -> None:
        try:
            while piece := await source.read(PIECE_BYTES):
                connection.round_trips += is_client and connection.server_spoke
                connection.server_spoke = not is_client
                sink.write(piece)
                await sink.drain()
        finally:
            sink.close()


@contextmanager
def counted(to_port: int) -> Iterator[RoundTrips]:
    """A way to that port; what is open at the end is closed."""
    loop, listening, ending = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    way = RoundTrips(to_port)

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(way.serve(listening, ending))

    thread = threading.Thread(target=run, name="round trips", daemon=True)
    thread.start()
    if not listening.wait(WITHIN_S):
        raise TimeoutError("the way to the database does not listen")
    try:
        yield way
    finally:
        loop.call_soon_threadsafe(ending.set)
        thread.join(WITHIN_S)
