"""A TCP proxy before a port: it counts round trips, and can delay or silence connections that are in use."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

ROUNDS = 3  # of the loop: what the kernel took is accepted, connected, and given to its handler


async def stop_accepting(server: asyncio.Server) -> None:
    """Close a server; every connection that it accepted was given to its handler when this returns.

    `Server.close` alone is not enough: Python 3.11 neither serves nor closes a connection that was accepted in the
    same round of the loop.
    """
    loop = asyncio.get_running_loop()
    for listener in server.sockets:
        loop.remove_reader(listener)
    for _ in range(ROUNDS):
        await asyncio.sleep(0)
    server.close()


PIECE_BYTES = 65_536
PIECES_UNDER_WAY = 64
Done = TypeVar("Done")
Pieces = asyncio.Queue[tuple[float, bytes]]  # each with the moment it is due


@dataclass(frozen=True, slots=True)
class Disturbance:
    """The disturbance of both directions; open connections too, from their next piece on.

    `latency_s`: added to each piece, the order kept. `is_silent`: nothing passes and nothing is refused; what was
    sent meanwhile arrives afterwards, as TCP would resend it.
    """

    latency_s: float = 0.0
    is_silent: bool = False


SOUND = Disturbance()


@dataclass(slots=True)
class Trips:
    """The round trips of one connection: how often the client sent something after the server had."""

    count: int = 0
    is_client_next: bool = True

    def note(self, *, is_client: bool) -> None:
        """Count a piece that one side sent."""
        self.count += is_client and self.is_client_next
        self.is_client_next = not is_client


class Proxy:
    """Listens on `port` and passes everything on to `to_port`; any thread may disturb it."""

    def __init__(self, to_port: int) -> None:
        self.to_port = to_port
        self.port = 0
        self.connections: list[Trips] = []  # of each connection that was ever taken
        self._way = SOUND
        self._loop = asyncio.new_event_loop()
        self._passable = asyncio.Event()
        self._passable.set()
        self._tasks: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    def spoil(self, **how: Any) -> None:
        """Disturb all connections from now on; see `Disturbance`."""
        self._call(self._set(Disturbance(**how)))

    def silence(self) -> None:
        """Pass nothing on and close nothing, as a network that drops all packets."""
        self.spoil(is_silent=True)

    def heal(self) -> None:
        """End the disturbance; delayed pieces are passed on."""
        self._call(self._set(SOUND))

    async def _set(self, way: Disturbance) -> None:
        self._way = way
        (self._passable.clear if way.is_silent else self._passable.set)()

    def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.append(trips := Trips())
        task = self._loop.create_task(self._join(reader, writer, trips))
        self._tasks[task] = writer
        task.add_done_callback(self._tasks.pop)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, trips: Trips) -> None:
        """Pass on both directions; close one side when the other is closed or does not accept."""
        far: asyncio.StreamWriter | None = None
        try:
            await self._passable.wait()
            far_reader, far = await asyncio.open_connection("127.0.0.1", self.to_port)
            async with asyncio.TaskGroup() as group:
                for source, sink in ((reader, far), (far_reader, writer)):
                    pieces: Pieces = asyncio.Queue(PIECES_UNDER_WAY)
                    # Reading is apart from writing, so that a delay does not narrow the way.
                    group.create_task(self._read(source, pieces, trips, is_client=source is reader))
                    group.create_task(self._write(sink, pieces))
        except* OSError:
            pass
        finally:
            for one in filter(None, (writer, far)):
                one.transport.abort()

    async def _read(self, reader: asyncio.StreamReader, pieces: Pieces, trips: Trips, *, is_client: bool) -> None:
        piece = b"-"
        while piece:
            with suppress(ConnectionError):  # a reset is an end, told like one
                piece = b""
                piece = await reader.read(PIECE_BYTES)
                trips.note(is_client=is_client)
            wait_s = self._way.latency_s if piece else 0
            await pieces.put((self._loop.time() + wait_s, piece))

    async def _write(self, writer: asyncio.StreamWriter, pieces: Pieces) -> None:
        while True:
            due, piece = await pieces.get()
            await asyncio.sleep(due - self._loop.time())
            await self._passable.wait()
            if not piece:
                break
            writer.write(piece)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()

    def _call(self, work: Coroutine[Any, Any, Done]) -> Done:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def serve(self, listening: threading.Event, ending: asyncio.Event) -> None:
        """Listen until `ending`; then close every connection, also one that was just accepted."""
        server = await asyncio.start_server(self._take, "127.0.0.1", self.port)
        self.port = server.sockets[0].getsockname()[1]
        listening.set()
        await ending.wait()
        await stop_accepting(server)
        for task, writer in self._tasks.items():
            task.cancel()
            writer.transport.abort()  # a task that never began would not
        await asyncio.gather(*self._tasks, return_exceptions=True)


@contextmanager
def proxied(to_port: int) -> Iterator[Proxy]:
    """A proxy in a thread of its own, so that nothing its user does delays it."""
    proxy, listening, ending = Proxy(to_port), threading.Event(), asyncio.Event()
    loop = proxy._loop

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(proxy.serve(listening, ending))

    thread = threading.Thread(target=run, name="proxy", daemon=True)
    thread.start()
    if not listening.wait(10):
        raise TimeoutError("the proxy does not listen")
    try:
        yield proxy
    finally:
        loop.call_soon_threadsafe(ending.set)
        thread.join(10)
