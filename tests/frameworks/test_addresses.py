"""The rows of "Which address a client wants" (docs/reference/cards.md) for agent frameworks."""

from dataclasses import replace

import pytest

from lab.agents import TaskPeer, online
from lab.callers import rpc_path
from lab.hub_process import HubProcess
from tests.frameworks.clients import PLAIN, Framework, shown
from tests.frameworks.test_every_framework import framework

__all__ = ["framework"]


@pytest.mark.parametrize("below", ["/", "", "/agent-card.json", "/.well-known/agent-card.json"])
async def test_an_address_leads_a_framework_to_the_agent(
    embedded_hub: HubProcess, framework: Framework, below: str
) -> None:
    token = embedded_hub.mint("alice", "session")
    async with online(embedded_hub, TaskPeer) as agent:
        address = f"{embedded_hub.url}{rpc_path(agent.handle)}{below}"
        told = replace(framework, options={**framework.options, "address": address})
        async with told.run(embedded_hub.url, agent.handle, token, PLAIN.texts) as run:
            await run.end()
    assert [shown(sight) for sight in run.sights] == ["echo: hello"]
