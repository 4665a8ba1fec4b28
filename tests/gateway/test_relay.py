"""Messages that pass between agents without a turn: to one that reads slowly, and to one that never reads."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from gateway.wire.protocol import BURST
from kit.frame_queue import MAX_BYTES
from lab.hub_process import HubProcess
from lab.waiting import eventually
from tests.gateway.client import EchoSeat, GatewayClient, change_policy, code_of, team

SENT = 180  # below the burst of one client
TEXT = "x" * 200_000  # so that all are more than what the hub and both ends of the socket hold
PAUSE_S = 1.0
WITHIN_S = 60


@asynccontextmanager
async def slow_seat(hub: HubProcess, token: str, name: str) -> AsyncIterator[ClientConnection]:
    """An agent whose socket takes one frame at a time, when the test reads it."""
    url = f"{hub.url.replace('http', 'ws', 1)}/gateway?token={token}&agentId={name}"
    socket = await connect(
        url, subprotocols=[Subprotocol("a2a-v1")], compression=None, max_queue=1, ping_interval=None
    )
    try:
        yield socket
    finally:
        socket.transport.abort()


async def flood(sender: GatewayClient, agent: str) -> None:
    assert SENT < BURST
    assert SENT * len(TEXT) > 3 * MAX_BYTES
    for number in range(SENT):
        await sender.tell(agent, TEXT, id=f"m-{number}")


async def test_a_sender_is_not_read_while_its_recipient_has_much_to_read(embedded_hub: HubProcess) -> None:
    login = "slow-reader"
    async with (
        slow_seat(embedded_hub, embedded_hub.mint(login, "channel"), "beta") as beta,
        team(embedded_hub, login, "alpha", "gamma", delta=EchoSeat) as (alpha, gamma, _),
    ):
        await change_policy(embedded_hub, login, storesTold=False)
        flooding = asyncio.create_task(flood(alpha, "beta"))
        await asyncio.sleep(PAUSE_S)
        began = time.monotonic()
        reply = await gamma.send_message("delta", "are others served meanwhile?")
        assert reply["content"]["content"].startswith("echo")
        assert time.monotonic() - began < PAUSE_S
        arrived: list[str] = []
        async with asyncio.timeout(WITHIN_S):
            while len(arrived) < SENT:
                frame = json.loads(await beta.recv())
                if frame["type"] == "message":
                    arrived.append(frame["id"])
                    await asyncio.sleep(0.005)
            await flooding
        assert arrived == [f"m-{number}" for number in range(SENT)]
        assert alpha.of("error") == []


async def test_a_recipient_that_never_reads_is_closed_and_its_sender_goes_on(embedded_hub: HubProcess) -> None:
    login = "never-reader"
    async with (
        slow_seat(embedded_hub, embedded_hub.mint(login, "channel"), "beta"),
        team(embedded_hub, login, "alpha") as (alpha,),
    ):
        await change_policy(embedded_hub, login, storesTold=False)
        await flood(alpha, "beta")
        await alpha.send("ping")

        async def is_served() -> bool:
            return bool(alpha.of("pong"))

        assert await eventually(is_served, "the sender goes on", within_s=WITHIN_S)
        assert {code_of(one)[0] for one in alpha.of("error")} == {3002}
        await alpha.sees("beta", "offline")
