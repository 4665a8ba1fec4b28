"""Ways to ask: both bindings of A2A 1.0, or JSON-RPC alone."""

from collections.abc import AsyncIterator

import pytest

from lab.agents import TaskPeer, online
from lab.callers import web
from lab.hub_process import HubProcess
from tests.malformed.bindings import BindingClient


@pytest.fixture(params=["JSON-RPC", "HTTP+JSON"])
async def way(embedded_hub: HubProcess, request: pytest.FixtureRequest) -> AsyncIterator[BindingClient]:
    async with online(embedded_hub, TaskPeer) as agent, web(embedded_hub.url) as client:
        yield BindingClient(request.param, agent, embedded_hub.mint("alice", "session"), client)


@pytest.fixture
async def rpc(embedded_hub: HubProcess) -> AsyncIterator[BindingClient]:
    async with online(embedded_hub, TaskPeer) as agent, web(embedded_hub.url) as client:
        yield BindingClient("JSON-RPC", agent, embedded_hub.mint("alice", "session"), client)
