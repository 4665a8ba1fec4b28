"""A TCP way to a port that can be spoilt while it is in use: delay, silence."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from lab.listeners import stop_accepting

PIECE_BYTES = 65_536
PIECES_UNDER_WAY = 64
Done = TypeVar("Done")
Pieces = asyncio.Queue[tuple[float, bytes]]  # each with the moment it is due


@dataclass(frozen=True, slots=True)
class Disturbance:
    """How the way is. Both directions alike; connections that are open feel a change at their next piece.

    `latency_s`: added to each piece, the order kept. `is_silent`: nothing passes and nothing is refused; what was
    sent meanwhile arrives afterwards, as TCP would resend it.
    """

    latency_s: float = 0.0
    is_silent: bool = False


SOUND = Disturbance()


class Proxy:
    """Listens on `port` and passes everything on to `to_port`; any thread may spoil it."""

    def __init__(self, to_port: int) -> None:
        self.to_port = to_port
        self.port = 0
        self.connections = 0  # ever taken
        self._way = SOUND
        self._loop = asyncio.new_event_loop()
        self._passable = asyncio.Event()
        self._passable.set()
        self._tasks: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    def spoil(self, **how: Any) -> None:
        """From now on the way is like this; see `Disturbance`."""
        self._call(self._set(Disturbance(**how)))

    def silence(self) -> None:
        """Nothing passes any more, and neither side is told: a blackhole without RST."""
        self.spoil(is_silent=True)

    def heal(self) -> None:
        """As good as none; what waited passes on."""
        self._call(self._set(SOUND))

    async def _set(self, way: Disturbance) -> None:
        self._way = way
        (self._passable.clear if way.is_silent else self._passable.set)()

    def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = self._loop.create_task(self._join(reader, writer))
        self._tasks[task] = writer
        task.add_done_callback(self._tasks.pop)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on both ways. When one side is gone, or nothing listens there, so is the other."""
        far: asyncio.StreamWriter | None = None
        try:
            await self._passable.wait()
            far_reader, far = await asyncio.open_connection("127.0.0.1", self.to_port)
            async with asyncio.TaskGroup() as group:
                for source, sink in ((reader, far), (far_reader, writer)):
                    pieces: Pieces = asyncio.Queue(PIECES_UNDER_WAY)
                    group.create_task(self._read(source, pieces))  # reading apart from writing:
                    group.create_task(self._write(sink, pieces))  # a delay does not narrow the way
        except* OSError:
            pass
        finally:
            for one in filter(None, (writer, far)):
                one.transport.abort()

    async def _read(self, reader: asyncio.StreamReader, pieces: Pieces) -> None:
        piece = b"-"
        while piece:
            with suppress(ConnectionError):  # a reset is an end, told like one
                piece = b""
                piece = await reader.read(PIECE_BYTES)
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
        """Listen until `ending`; then nothing is left open, not even what was taken a moment ago."""
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
