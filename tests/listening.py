"""Servers of bytes on a port of the running loop."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from lab.proxy import stop_accepting

Handle = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(handle: Handle) -> AsyncIterator[int]:
    """A port where each connection is answered as `handle` says; it ends with all of them."""
    writers: list[asyncio.StreamWriter] = []

    def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Awaitable[None]:
        writers.append(writer)  # before the handler runs, which may be never
        return handle(reader, writer)

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        await stop_accepting(server)
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(0)  # what is aborted is closed in the next round
