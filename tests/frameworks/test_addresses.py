"""The rows of "Which address a client wants" (docs/reference/cards.md) for agent frameworks."""

from dataclasses import replace

import pytest

from lab.agents import TaskPeer, online
from lab.callers import rpc_path
from lab.hub_process import HubProcess
from tests.frameworks.clients import ALL, Framework
from tests.frameworks.scenarios import PLAIN
from tests.frameworks.test_every_framework import install, shown_to_user

WELL_KNOWN = "/.well-known/agent-card.json"
TAKE_ANY_ADDRESS = [one for one in ALL if one.name in ("ADK", "Strands", "BeeAI", "CrewAI")]


@pytest.mark.parametrize("framework", TAKE_ANY_ADDRESS, ids=str)
@pytest.mark.parametrize(
    "below", ["", *(pytest.param(one, marks=pytest.mark.deep) for one in ("/", "/agent-card.json", WELL_KNOWN))]
)
async def test_an_address_leads_a_framework_to_the_agent(
    embedded_hub: HubProcess, framework: Framework, below: str
) -> None:
    install(framework)
    token = embedded_hub.mint("alice", "session")
    async with online(embedded_hub, TaskPeer) as agent:
        address = f"{embedded_hub.url}{rpc_path(agent.handle)}{below}"
        told = replace(framework, options={**framework.options, "address": address})
        assert await shown_to_user(embedded_hub, agent, token, told, PLAIN) == ["echo: hello"]
