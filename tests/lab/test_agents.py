"""The scripted agent of tests and faults: what it does when the hub closes its socket."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from lab.channel_agent import ChannelAgent
from lab.faults.agents import EchoAgent
from lab.faults.oplog import OpLog
from lab.frames import Json

PROMPT = {"type": "prompt", "chatId": "c1", "text": "nonce what did I say?"}


@asynccontextmanager
async def listening(handle: Callable[[ServerConnection], Awaitable[None]]) -> AsyncIterator[str]:
    """A hub that does what `handle` says; its URL."""
    async with serve(handle, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"


async def welcome(socket: ServerConnection) -> Json:
    frame: Json = json.loads(await socket.recv())
    await socket.send(json.dumps({"type": "welcome", "sessionId": "s1", "routingName": "@a"}))
    return frame


async def test_a_socket_closed_instead_of_a_welcome_is_an_error_at_once() -> None:
    async def refuse(socket: ServerConnection) -> None:
        await socket.recv()
        await socket.close(4001, "no")

    async with listening(refuse) as url, asyncio.timeout(30):
        with pytest.raises(ConnectionError, match="4001"):
            await ChannelAgent(url, "token").connect()


async def test_a_bye_is_read_although_the_pong_before_it_cannot_be_sent() -> None:
    async def ping_and_leave(socket: ServerConnection) -> None:
        await welcome(socket)
        # Nothing here waits, so the agent reads the three frames at once.
        await socket.send(json.dumps({"type": "ping", "ts": "now"}))
        await socket.send(json.dumps({"type": "bye", "reason": "halted", "retry": True}))
        await socket.close(1013)

    async with listening(ping_and_leave) as url, ChannelAgent(url, "token") as agent:
        assert (await agent.heard("bye"))["reason"] == "halted"
        assert agent.frames[-2]["type"] == "ping"


async def test_an_agent_of_the_faults_comes_back_as_the_same_session_and_answers(tmp_path: Path) -> None:
    registered: list[Json] = []
    replied = asyncio.Event()

    async def drop_the_first(socket: ServerConnection) -> None:
        registered.append(await welcome(socket))
        if len(registered) == 1:
            return
        await socket.send(json.dumps(PROMPT))
        with suppress(ConnectionClosed):
            async for _ in socket:
                replied.set()

    async with listening(drop_the_first) as url, asyncio.timeout(30):
        with closing(OpLog(tmp_path / "log")) as log:
            agent = EchoAgent([url], "token", log)
            agent.start()
            await replied.wait()
            assert agent.is_connected
            await agent.stop()
    assert (agent.connects, agent.prompted.is_set(), agent.is_over) == (2, True, True)
    assert [frame["sessionId"] for frame in registered] == [None, "s1"]
