"""Ways to ask: both bindings of A2A 1.0, or JSON-RPC alone.

`way` and `rpc` ask one agent that all tests share; `way_apart` and `rpc_apart` one of the test's own.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import pytest_asyncio

from lab.agents import TaskPeer, online
from lab.callers import web
from lab.hub_process import HubProcess
from tests.malformed.bindings import BindingClient

BINDINGS = ["JSON-RPC", "HTTP+JSON"]
Asked = tuple[TaskPeer, str, httpx.AsyncClient]


@asynccontextmanager
async def asked(hub: HubProcess) -> AsyncIterator[Asked]:
    """An agent, and who asks it."""
    async with online(hub, TaskPeer, owner="attacked") as agent, web(hub.url) as client:
        yield agent, hub.mint("alice", "session"), client


# Both of the session, as the hub is: else each module would be a group of its own, with a hub of its own.
@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared(embedded_hub: HubProcess) -> AsyncIterator[Asked]:
    async with asked(embedded_hub) as one:
        yield one


@pytest_asyncio.fixture(loop_scope="session")
async def apart(embedded_hub: HubProcess) -> AsyncIterator[Asked]:
    async with asked(embedded_hub) as one:
        yield one


@pytest.fixture(params=BINDINGS)
def way(shared: Asked, request: pytest.FixtureRequest) -> BindingClient:
    return BindingClient(request.param, *shared)


@pytest.fixture
def rpc(shared: Asked) -> BindingClient:
    return BindingClient("JSON-RPC", *shared)


@pytest.fixture(params=BINDINGS)
def way_apart(apart: Asked, request: pytest.FixtureRequest) -> BindingClient:
    return BindingClient(request.param, *apart)


@pytest.fixture
def rpc_apart(apart: Asked) -> BindingClient:
    return BindingClient("JSON-RPC", *apart)
