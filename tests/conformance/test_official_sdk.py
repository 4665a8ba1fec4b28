"""The official A2A SDK, from PyPI, finds our agents."""

import httpx
import pytest
from a2a.client import A2ACardResolver
from a2a.client.errors import AgentCardResolutionError

from tests.callers import rpc_path
from tests.hub_process import HubProcess
from tests.peers import Echo, online


async def test_the_sdks_card_resolver_reads_an_agents_card(hub: HubProcess) -> None:
    fields = {"name": "rust expert", "description": "answers Rust questions"}
    async with online(hub, Echo, agent=fields) as agent, httpx.AsyncClient(trust_env=False) as client:
        path = f"{rpc_path(agent.handle)}/agent-card.json"
        card = await A2ACardResolver(client, hub.url, path).get_agent_card()
    assert (card.name, card.description, card.version) == ("rust expert", "answers Rust questions", "1")
    assert {interface.url for interface in card.supported_interfaces} == {hub.url + rpc_path(agent.handle)}
    spoken = [(interface.protocol_binding, interface.protocol_version) for interface in card.supported_interfaces]
    assert spoken == [("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("JSONRPC", "0.3")]
    assert card.capabilities.streaming is True
    assert card.capabilities.push_notifications is False
    assert [skill.id for skill in card.skills] == ["ask"]
    assert card.security_schemes["bearerSession"].http_auth_security_scheme.scheme == "Bearer"


async def test_the_sdk_is_told_when_there_is_no_such_agent(hub: HubProcess) -> None:
    async with httpx.AsyncClient(trust_env=False) as client:
        resolver = A2ACardResolver(client, hub.url, f"{rpc_path('owner/never-was')}/agent-card.json")
        with pytest.raises(AgentCardResolutionError):
            await resolver.get_agent_card()
