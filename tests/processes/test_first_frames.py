"""The first frame of an agent, which callers ask while it takes the place of an earlier connection."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from lab.agents import Echo, online
from lab.callers import bearer, envelope, question, rpc_path, web
from lab.hub_process import HubProcess, StartHub
from lab.hub_storage import DistributedStorages, MakeStorage
from lab.proxy import proxied
from tests.gateway.client import GatewayClient, seat

pytestmark = [pytest.mark.slow, pytest.mark.distributed]

LATENCY_S = 0.3
ASK_EVERY_S = 0.02


@pytest.fixture
async def slow_hub(
    make_storage: MakeStorage, distributed_storages: DistributedStorages, start_hub: StartHub
) -> AsyncIterator[HubProcess]:
    """Two processes whose messages to each other are slow: what a process waits for is seen."""
    home, server = make_storage("grown"), distributed_storages.servers.redis_port
    with proxied(server) as way:
        url = home.env["REDIS_URL"].replace(f":{server}/", f":{way.port}/")
        hub = start_hub(replace(home, env={**home.env, "REDIS_URL": url}), processes=2)
        way.spoil(latency_s=LATENCY_S)
        yield hub


async def test_the_answer_to_a_sign_in_precedes_the_messages_for_a_seat(slow_hub: HubProcess) -> None:
    token = slow_hub.mint("team", "channel")
    async with seat(slow_hub.urls[1], token, "alpha") as alpha, seat(slow_hub.urls[0], token, "beta"):

        async def tell_on() -> None:
            while True:
                await alpha.tell("beta", "news")
                await asyncio.sleep(ASK_EVERY_S)

        telling = asyncio.create_task(tell_on())
        try:
            async with GatewayClient(slow_hub.urls[1], token, agentId="beta") as beta:
                await beta.find("message")
        finally:
            telling.cancel()
    assert beta.frames[0]["type"] == "auth-response"


async def test_the_welcome_of_an_agent_precedes_its_prompts(slow_hub: HubProcess) -> None:
    alice = slow_hub.mint("alice", "session")
    async with online(slow_hub, Echo) as old, web(slow_hub.urls[1], headers=bearer(alice)) as client:

        async def ask_on() -> None:
            while True:
                await client.post(rpc_path(old.handle), json=envelope("SendMessage", question("hello")))

        asking = [asyncio.create_task(ask_on()) for _ in range(4)]
        agent = Echo(slow_hub.urls[1], old.token, session_id=old.session_id)
        try:
            await agent.connect()
            await agent.heard("prompt")
        finally:
            for one in asking:
                one.cancel()
            await agent.leave()
    assert agent.frames[0]["type"] == "welcome"
