"""The waits of clients and agents on a hub with the durations that ship: the contract's own seconds."""

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.frames import Opcode

from lab.agents import Slow, Stall, online
from lab.callers import TLS, bearer, envelope, failed_text, open_stream, question, reply_text, rpc_path, send
from lab.channel_agent import ChannelAgent, dial
from lab.hub_process import HubProcess
from lab.hub_storage import MakeStorage
from tests.faults.test_slow_clients import connection

GIVES_UP_AFTER_S = 5  # clients in use, when they read nothing
THINKS_S = 7.5  # longer than two silences, shorter than three
SLACK_S = 3.0  # looked at once a second, on a busy machine


@pytest.fixture(scope="module")
def real_hub(make_storage: MakeStorage) -> Iterator[HubProcess]:
    """One process on SQLite, at real speed."""
    hub = HubProcess.start(make_storage("embedded"), TEST_TIME_SCALE=1)
    yield hub
    hub.stop()


async def check_slow_answer(hub: HubProcess, token: str) -> None:
    body = envelope("SendMessage", question("hello"))
    async with (
        online(hub, Slow, delay_s=THINKS_S) as agent,
        httpx.AsyncClient(timeout=GIVES_UP_AFTER_S, trust_env=False, verify=TLS) as client,
    ):
        response = await client.post(hub.url + rpc_path(agent.handle), json=body, headers=bearer(token))
    assert response.text.startswith("  {")
    assert reply_text(json.loads(response.text)["result"]) == "echo: hello"


async def check_silent_stream(hub: HubProcess, token: str) -> None:
    async with (
        online(hub, Slow, delay_s=THINKS_S) as agent,
        open_stream(hub.url, agent.handle, "hello", token) as answer,
    ):
        await answer.next_line()
        began = time.monotonic()
        assert (await answer.next_line()).startswith(":")
        assert 2 < time.monotonic() - began < GIVES_UP_AFTER_S
        assert reply_text([task async for task in answer.tasks()][-1]) == "echo: hello"
    assert len(answer.comments) == 1


async def check_register(hub: HubProcess, token: str) -> None:
    """Without a `register` the hub closes after 10 s."""
    socket = await dial(hub.url.replace("http", "ws", 1) + "/channel", token)
    began = time.monotonic()
    await socket.wait_closed()
    assert 9 < time.monotonic() - began < 10 + SLACK_S


async def check_head(hub: HubProcess) -> None:
    """Without a request the hub closes after 10 s."""
    async with connection(hub.url) as client:
        began = time.monotonic()
        await asyncio.wait_for(client.ended(), 10 + SLACK_S)
        assert time.monotonic() - began > 9


class Pinged(ClientConnection):
    """A client that notes the pings of the server."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.pinged = asyncio.Event()

    def process_event(self, event: Any) -> None:
        if getattr(event, "opcode", None) is Opcode.PING:
            self.pinged.set()
        super().process_event(event)


async def check_heartbeat(hub: HubProcess, query: str, capabilities: dict[str, object]) -> None:
    """A client of the gateway is pinged as often as it wants, in its address or its handshake; not after 30 s."""
    url = f"{hub.url.replace('http', 'ws', 1)}/gateway?token={hub.mint('alice', 'session')}{query}"
    async with connect(url, create_connection=Pinged, compression=None) as client:
        content = {"action": "advertise", "capabilities": capabilities}
        await client.send(json.dumps({"type": "handshake", "content": content}))
        await asyncio.wait_for(client.pinged.wait(), 1 + 3 * SLACK_S)


async def test_silence_registering_and_heads_have_the_seconds_of_the_contract(real_hub: HubProcess) -> None:
    """Real speed, at once: 3 s to a keep-alive, 10 s for a `register` and a head, 1 s to a wanted heartbeat."""
    alice, owner = real_hub.mint("alice", "session"), real_hub.mint("owner", "channel")
    await asyncio.gather(
        check_slow_answer(real_hub, alice),
        check_silent_stream(real_hub, alice),
        check_register(real_hub, owner),
        check_head(real_hub),
        check_heartbeat(real_hub, "&heartbeat=1000", {}),
        check_heartbeat(real_hub, "", {"heartbeat": 1000}),
    )


class Deaf(ChannelAgent):
    """Answers no ping."""

    async def on_frame(self, frame: object) -> None:
        del frame


async def check_pings(hub: HubProcess, token: str) -> None:
    """A ping after 25 s; an agent that says nothing is let go of after 60 s."""
    async with Deaf(hub.url, token) as agent:
        began = time.monotonic()
        await agent.heard("ping", within_s=25 + SLACK_S)
        assert time.monotonic() - began > 24
        await asyncio.wait_for(agent.closed.wait(), 35 + SLACK_S)
        assert time.monotonic() - began > 59
        assert len([frame for frame in agent.frames if frame["type"] == "ping"]) == 2


async def check_default_wait(hub: HubProcess, token: str) -> None:
    async with online(hub, Stall) as agent:
        task = await send(hub.url, agent.handle, "hello", token)
    assert failed_text(task) == "agent did not reply within 60s"


@pytest.mark.deep
async def test_pings_silence_and_the_default_wait_have_the_seconds_of_the_contract(real_hub: HubProcess) -> None:
    alice, owner = real_hub.mint("alice", "session"), real_hub.mint("owner", "channel")
    await asyncio.gather(check_pings(real_hub, owner), check_default_wait(real_hub, alice))
