"""Ways to ask: both bindings of A2A 1.0, or JSON-RPC alone."""

from collections.abc import AsyncIterator

import pytest

from lab.agents import TaskPeer, online
from lab.callers import web
from lab.hub_process import HubProcess
from tests.malformed.way import Way


@pytest.fixture(params=["JSON-RPC", "HTTP+JSON"])
async def way(embedded_hub: HubProcess, request: pytest.FixtureRequest) -> AsyncIterator[Way]:
    async with online(embedded_hub, TaskPeer) as agent, web(embedded_hub.url) as client:
        yield Way(request.param, agent, embedded_hub.mint("alice", "session"), client)


@pytest.fixture
async def rpc(embedded_hub: HubProcess) -> AsyncIterator[Way]:
    async with online(embedded_hub, TaskPeer) as agent, web(embedded_hub.url) as client:
        yield Way("JSON-RPC", agent, embedded_hub.mint("alice", "session"), client)
