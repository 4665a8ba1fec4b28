"""Clients that leave before their answer: which of them cancel the question, and which do not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from lab.agents import Held, TaskPeer, online
from lab.callers import Json, bearer, inbound, web
from lab.hub_process import HubProcess
from lab.waiting import eventually
from tests.mcp.clients import HANDSHAKE, MODERN, MODES, mcp_client, text_of
from tests.mcp.test_bad_input import HEADERS, post
from tests.v1.caller import Caller

GOES_ON_S = 1.0  # so long a turn is watched that must go on
STEPS = "say begun | wait"  # until it is canceled


@asynccontextmanager
async def asking(url: str, token: str, agent: TaskPeer, mode: str) -> AsyncIterator[asyncio.Task[Any]]:
    """A client's call, once the client has seen that its agent began to answer."""
    has_begun = asyncio.Event()

    async def report(*_: object) -> None:
        has_begun.set()

    async with mcp_client(url, token, mode) as client:
        asked = {"handle": agent.handle, "message": STEPS}
        call = asyncio.create_task(client.call_tool("ask_agent", asked, progress_callback=report))
        await has_begun.wait()
        yield call
        await leave(call)


async def leave(call: "asyncio.Task[Any]") -> None:
    """Have the client give up a call."""
    call.cancel()
    with suppress(asyncio.CancelledError):
        await call


async def check_canceled(hub: HubProcess, agent: TaskPeer) -> None:
    """The agent is told to stop, and the audit names the caller's cancellation."""
    canceled = await agent.heard("cancel")
    assert canceled["chatId"] == agent.prompts[0]["chatId"]

    async def recorded() -> Json | None:
        log = await inbound(hub.url, agent.agent["id"], hub.mint("owner", "session"))
        return next((one for one in log["recent"] if one["deniedReason"] == "canceled"), None)

    await eventually(recorded, "the audit says that it was canceled")


async def check_goes_on(agent: TaskPeer) -> None:
    """The agent is not told to stop."""
    with pytest.raises(TimeoutError):
        await agent.heard("cancel", within_s=GOES_ON_S)


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_gives_up_a_call_cancels_its_question(hub: HubProcess, alice: str, mode: str) -> None:
    """By closing the stream of the call (2026), or by a notification (2025)."""
    async with online(hub, TaskPeer) as agent, mcp_client(hub.urls[-1], alice, mode) as client:
        call = asyncio.create_task(client.call_tool("ask_agent", {"handle": agent.handle, "message": "wait"}))
        await agent.heard("prompt")
        await leave(call)
        await check_canceled(hub, agent)


async def test_a_notification_to_another_process_cancels_the_callers_own_question(
    hub: HubProcess, alice: str, bob: str
) -> None:
    canceled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "one"}}
    async with online(hub, TaskPeer) as agent, web(hub.urls[-1]) as client:
        params = {"name": "ask_agent", "arguments": {"handle": agent.handle, "message": "wait"}}
        asked = {"jsonrpc": "2.0", "id": "one", "method": "tools/call", "params": params}
        call = asyncio.create_task(post(hub, asked, alice))
        await agent.heard("prompt")
        foreign = await client.post("/mcp", json=canceled, headers=HEADERS | bearer(bob))
        assert foreign.status_code == 202
        await check_goes_on(agent)
        assert (await client.post("/mcp", json=canceled, headers=HEADERS | bearer(alice))).status_code == 202
        await check_canceled(hub, agent)
        assert '"Request cancelled"' in (await call).text


async def test_a_question_that_another_surface_follows_goes_on(hub: HubProcess, alice: str) -> None:
    async with online(hub, TaskPeer) as agent, asking(hub.urls[0], alice, agent, MODERN) as call:
        subscriber = Caller(hub.urls[-1], agent.handle, alice)
        async with subscriber.open("SubscribeToTask", {"id": agent.prompts[0]["taskId"]}) as events:
            await anext(events)
            await leave(call)
            await check_goes_on(agent)


async def test_a_client_of_2025_whose_connection_ends_does_not_cancel(hub: HubProcess, alice: str) -> None:
    async with online(hub, Held) as agent:
        params = {"name": "ask_agent", "arguments": {"handle": agent.handle, "message": "take your time"}}
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        call = asyncio.create_task(post(hub, asked, alice))
        await agent.heard("prompt")
        await leave(call)
        agent.release.set()
        async with mcp_client(hub.urls[-1], alice, HANDSHAKE) as client:

            async def answered() -> bool:
                shown = await client.call_tool("get_task", {"task_id": agent.prompts[0]["taskId"]})
                return text_of(shown).startswith("echo: take your time\n")

            await eventually(answered, "the answer is kept")
        assert len(agent.prompts) == 1
