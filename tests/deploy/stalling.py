"""A way to a server that can fall silent: connections stay, and nothing goes through them."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Way:
    """Passes bytes on between a port of its own and a server's, unless it is told to stall."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._open = asyncio.Event()
        self._open.set()
        self._loop = asyncio.get_running_loop()
        self.port = 0

    async def listen(self) -> asyncio.Server:
        server = await asyncio.start_server(self._pass, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        return server

    def stall(self) -> None:
        self._loop.call_soon_threadsafe(self._open.clear)

    def resume(self) -> None:
        self._loop.call_soon_threadsafe(self._open.set)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._open.wait()
        back_reader, back_writer = await asyncio.open_connection("127.0.0.1", self._server_port)
        await asyncio.gather(self._carry(reader, back_writer), self._carry(back_reader, writer))

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while chunk := await reader.read(65536):
                await self._open.wait()
                writer.write(chunk)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()


@contextmanager
def way_to(server_port: int) -> Iterator[Way]:
    """A way while it lasts, in a thread of its own."""
    ready, ways = threading.Event(), []
    over: asyncio.Event

    async def run() -> None:
        nonlocal over
        over = asyncio.Event()
        way = Way(server_port)
        server = await way.listen()
        ways.append(way)
        ready.set()
        await over.wait()
        server.close()

    loop = asyncio.new_event_loop()
    main = loop.create_task(run())
    thread = threading.Thread(target=lambda: _finish(loop, main), daemon=True)
    thread.start()
    ready.wait(10)
    yield ways[0]
    loop.call_soon_threadsafe(over.set)
    thread.join(10)


def _finish(loop: asyncio.AbstractEventLoop, main: asyncio.Task[None]) -> None:
    loop.run_until_complete(main)
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    loop.close()
