"""A server that ends leaves no connection open."""

import asyncio
import socket

from lab.proxy import stop_accepting


async def test_a_connection_accepted_at_the_end_reaches_its_handler() -> None:
    taken: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: taken.append(writer), "127.0.0.1", 0)
    with socket.create_connection(server.sockets[0].getsockname()) as caller:
        for _ in range(2):
            await asyncio.sleep(0)  # accepted, and not connected: `Server.close` would lose it
        await stop_accepting(server)
        assert [writer.get_extra_info("peername") for writer in taken] == [caller.getsockname()]
        for writer in taken:
            writer.transport.abort()
        await asyncio.sleep(0)
