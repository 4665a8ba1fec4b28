"""What a socket of the server keeps once it is accepted."""

import asyncio
from typing import Any

import uvicorn
from uvicorn.server import ServerState
from websockets.asyncio.client import connect

from hub.sockets import HubSockets


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Accept, then send back what comes."""
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": message["text"]})


async def test_the_server_pings_sockets_of_the_gateway() -> None:
    made: list[HubSockets] = []
    config = uvicorn.Config(echo, ws=HubSockets, ws_ping_interval=60, log_config=None)

    def make() -> HubSockets:
        made.append(HubSockets(config, ServerState(), {}))
        return made[-1]

    server = await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        for path in ("/gateway", "/", "/channel"):
            async with connect(f"ws://127.0.0.1:{port}{path}", compression=None) as client:
                await client.send("hello")
                await client.recv()
                assert (made[-1].ping_timer is None) == (path == "/channel")


async def test_an_accepted_socket_forgets_the_headers_of_its_handshake() -> None:
    made: list[HubSockets] = []
    config = uvicorn.Config(echo, ws=HubSockets, ws_per_message_deflate=False, log_config=None)

    def make() -> HubSockets:
        made.append(HubSockets(config, ServerState(), {}))
        return made[-1]

    server = await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        async with connect(f"ws://127.0.0.1:{port}/channel", compression=None) as client:
            await client.send("hello")
            assert await client.recv() == "hello"
            assert not {"request", "response"} & vars(made[0]).keys()
