"""Options of a socket of the server once it is accepted."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from socket import SO_SNDBUF, SOL_SOCKET
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosedError, ConnectionClosedOK

from gateway.surface.prototype import serve_prototype
from hub.http_protocol import HubHttpProtocol
from hub.socket_protocol import HEARTBEAT_TIMEOUT, PONGS_AT_ONCE, HubSockets
from kit.sockets import find_set_heartbeat, send_refusal
from lab.waiting import eventually


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Accept, then send back what comes."""
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": message["text"]})


async def beating(scope: Any, receive: Any, send: Any) -> None:
    """Take each message as a number of seconds, and ping the client at this interval from then on."""
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        set_heartbeat = find_set_heartbeat(send)
        assert set_heartbeat is not None
        set_heartbeat(float(message["text"]))
        await send({"type": "websocket.send", "text": message["text"]})


@asynccontextmanager
async def serving(application: Any, **options: Any) -> AsyncIterator[tuple[list[HubSockets], str]]:
    """A server whose sockets are noted, and the beginning of its addresses."""
    made: list[HubSockets] = []
    config = uvicorn.Config(application, ws=HubSockets, log_config=None, **{"ws_ping_interval": 60} | options)

    def make() -> HubSockets:
        made.append(HubSockets(config, ServerState(), {}))
        return made[-1]

    server = await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0)
    async with server:
        yield made, f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_the_server_pings_sockets_of_the_gateway() -> None:
    async with serving(echo) as (made, url):
        for path in ("/gateway", "/", "/channel"):
            async with connect(f"{url}{path}", compression=None) as client:
                await client.send("hello")
                await client.recv()
                assert (made[-1].ping_timer is None) == (path == "/channel")


async def test_a_socket_of_the_gateway_is_pinged_as_often_as_it_wants() -> None:
    async with serving(beating) as (made, url), connect(f"{url}/gateway", compression=None) as client:
        (socket,) = made
        for seconds, pong_within in (("40", 20), ("12", 12), ("2", 10)):
            await client.send(seconds)
            assert await client.recv() == seconds
            assert socket.ping_interval == float(seconds)
            assert socket.ping_timeout == pong_within
            assert socket.ping_timer is not None
            due_in = socket.ping_timer.when() - asyncio.get_running_loop().time()
            assert 0 < due_in <= float(seconds)
        socket.keepalive_timeout()
        with pytest.raises(ConnectionClosedError):
            await client.recv()
        assert client.close_code == HEARTBEAT_TIMEOUT


async def beating_at_once(scope: Any, receive: Any, send: Any) -> None:
    """The client is pinged every 12 s from the start."""
    set_heartbeat = find_set_heartbeat(send)
    assert set_heartbeat is not None
    set_heartbeat(12.0)
    await receive()
    await send({"type": "websocket.accept"})
    while (await receive())["type"] == "websocket.receive":
        pass


async def test_a_socket_of_the_prototype_is_pinged_as_often_as_it_wants() -> None:
    async def serve(scope: Any, receive: Any, send: Any) -> None:
        await serve_prototype(beating_at_once, scope, receive, send)

    async with serving(serve) as (made, url), connect(f"{url}/a2a?agentId=alpha", compression=None) as client:
        await client.recv()  # the welcome of the dialect
        (socket,) = made
        assert (socket.ping_interval, socket.ping_timeout) == (12, 12)
        assert socket.ping_timer is not None
        socket.keepalive_timeout()
        with pytest.raises(ConnectionClosedError):
            await client.recv()
        assert client.close_code == HEARTBEAT_TIMEOUT


async def test_an_accepted_socket_forgets_the_headers_of_its_handshake() -> None:
    async with (
        serving(echo, ws_per_message_deflate=False) as (made, url),
        connect(f"{url}/channel", compression=None) as client,
    ):
        await client.send("hello")
        assert await client.recv() == "hello"
        assert not {"request", "response"} & vars(made[0]).keys()


PING = b"\x89\xfd\0\0\0\0" + b"x" * 125  # with a mask of zeros
EMPTY_PING = b"\x89\x80\0\0\0\0"
CLOSE = b"\x88\x82\0\0\0\0\x03\xe8"  # 1000
PINGS = 100_000
INVALID_DATA = 1007
SMALL_BUFFER = 8_192
BUFFERED = 262_144  # what the server keeps for a client that does not read


@pytest.mark.parametrize("text", [b"\xff", [b'{"a": "', b"\xf0\x9f", b'"}']], ids=["one frame", "fragments"])
async def test_a_text_that_is_no_utf_8_closes_the_socket_and_is_no_error_of_the_hub(
    caplog: pytest.LogCaptureFixture, text: Any
) -> None:
    async with serving(echo) as (_, url), connect(f"{url}/cli", compression=None) as client:
        await client.send("hello")
        await client.recv()
        await client.send(text, text=True)
        with pytest.raises(ConnectionClosedError):
            await client.recv()
        assert client.close_code == INVALID_DATA
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.parametrize("refuses", [False, True])
async def test_bytes_that_are_no_frame_before_the_socket_is_accepted_end_the_connection(
    caplog: pytest.LogCaptureFixture, refuses: bool
) -> None:
    has_begun, events, failures = asyncio.Event(), list[str](), list[dict[str, Any]]()

    async def accept_never(scope: Any, receive: Any, send: Any) -> None:
        events.append((await receive())["type"])
        has_begun.set()
        if refuses:  # after the server has ended the connection, and before it says so
            while not send.__self__.transport.is_closing():
                await asyncio.sleep(0)
            with suppress(OSError):
                await send_refusal(send, 404, "not_found", "no such socket")
        events.append((await receive())["type"])

    asyncio.get_running_loop().set_exception_handler(lambda _, failure: failures.append(failure))
    async with serving(accept_never) as (_, url):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        key = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13"
        writer.write(
            f"GET /cli HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{key}\r\n\r\n".encode()
        )
        await has_begun.wait()
        writer.write(b"\xff" * 8)
        with suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()

        async def has_left() -> bool:
            return len(events) == 2

        assert await eventually(has_left, "the application knows that the client is gone")
    assert (events, failures) == (["websocket.connect", "websocket.disconnect"], [])
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_an_application_may_close_a_socket_that_the_server_has_closed() -> None:
    ended: list[str] = []

    async def close_later(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await receive()
        try:
            await send({"type": "websocket.close"})
        except OSError:
            ended.append("the client is gone")

    async with serving(close_later) as (_, url), connect(f"{url}/cli", compression=None) as client:
        client.transport.write(b"\x81\x85\0\0\0\0hello" + b"\x81\x81\0\0\0\0\xff")  # the second is no UTF-8
        with pytest.raises(ConnectionClosedError):
            await client.recv()
    assert ended


async def test_a_client_that_sends_pings_and_reads_nothing_fills_no_memory() -> None:
    async with serving(echo) as (made, url), connect(f"{url}/cli", compression=None) as client:
        client.transport.pause_reading()
        client.transport.write(PING * PINGS)

        async def is_sent() -> bool:
            return client.transport.get_write_buffer_size() == 0

        await eventually(is_sent, "the server has read all pings")
        assert made[0].transport.get_write_buffer_size() < BUFFERED
        last = await client.ping()
        client.transport.resume_reading()
        await asyncio.wait_for(last, 60)  # behind some ten thousand pongs


@pytest.mark.parametrize("ping", [PING, EMPTY_PING], ids=["full", "empty"])
async def test_many_pings_of_one_read_are_answered_until_the_client_has_to_read(ping: bytes) -> None:
    async with serving(echo) as (made, url), connect(f"{url}/cli", compression=None) as client:
        client.transport.pause_reading()
        fill(made[0], ping)
        _, most_bytes = made[0].transport.get_write_buffer_limits()
        assert made[0].transport.get_write_buffer_size() < most_bytes + PONGS_AT_ONCE * len(ping)
        last = await client.ping()
        client.transport.resume_reading()
        await asyncio.wait_for(last, 60)


async def test_a_close_after_pings_is_answered_when_the_client_reads() -> None:
    async with serving(echo) as (made, url), connect(f"{url}/cli", compression=None) as client:
        client.transport.pause_reading()
        fill(made[0], PING)
        made[0].data_received(PING + CLOSE)
        client.transport.resume_reading()
        with pytest.raises(ConnectionClosedOK):
            await asyncio.wait_for(client.recv(), 60)


def fill(socket: HubSockets, ping: bytes) -> None:
    """Give a socket pings until its client has to read."""
    socket.transport.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_SNDBUF, SMALL_BUFFER)
    while socket.writable.is_set():
        socket.data_received(ping * 2_000)


async def test_upgrades_that_come_at_once_are_done_one_in_each_iteration_of_the_loop() -> None:
    number, iterations, began_at = 20, 0, list[int]()

    async def count() -> None:
        nonlocal iterations
        while True:
            iterations += 1
            await asyncio.sleep(0)

    async def accept(scope: Any, receive: Any, send: Any) -> None:
        began_at.append(iterations)
        await receive()
        await send({"type": "websocket.accept"})
        await receive()

    config = uvicorn.Config(accept, http=HubHttpProtocol, ws=HubSockets, log_config=None, ws_ping_interval=60)
    config.load()
    state = ServerState()
    server = await asyncio.get_running_loop().create_server(
        lambda: HubHttpProtocol(config, state, {}), "127.0.0.1", 0
    )
    counting = asyncio.create_task(count())
    async with server:
        url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/channel"
        sockets = await asyncio.gather(*(connect(url, compression=None) for _ in range(number)))
        await asyncio.gather(*(socket.close() for socket in sockets))
    counting.cancel()
    assert len(set(began_at)) == number
