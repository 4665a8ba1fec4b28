"""The time that the tools wait for an agent."""

import json

import pytest

from lab.agents import Slow, TaskPeer, online
from lab.hub_process import HubProcess
from lab.waiting import eventually
from mcp_server.service.calls import RETURNS_WITHIN_S, find_return_s
from tests.mcp.clients import HANDSHAKE, mcp_client, run_typescript, text_of
from tests.v1.test_slow_agents import TAKES_S


async def test_a_plain_question_waits_as_long_as_its_agents_owner_allows(short_wait_hub: HubProcess) -> None:
    """The hub's own limit, which the agent exceeds, is for agents without one."""
    token = short_wait_hub.mint("alice", "session")
    async with (
        online(short_wait_hub, Slow, delay_s=TAKES_S, agent={"waitS": 30}) as agent,
        mcp_client(short_wait_hub.url, token, HANDSHAKE) as client,
    ):
        answer = await client.call_tool("ask_agent", {"handle": agent.handle, "message": "hello"})
    assert text_of(answer).startswith("echo: hello\n")


async def test_a_client_with_a_time_out_gets_the_task_before_it(short_wait_hub: HubProcess) -> None:
    """The official TypeScript client, which says of itself only that it runs on Node.js."""
    hub, token = short_wait_hub, short_wait_hub.mint("alice", "session")
    async with online(hub, TaskPeer, agent={"waitS": 60}) as agent:
        calls = [["asked", "ask_agent", {"handle": agent.handle, "message": "say begun | hold | say , done"}]]
        run = await run_typescript("calls.mjs", f"{hub.url}/mcp", token, json.dumps(calls))
        result, named = run.one("asked").value, {"task_id": agent.prompts[0]["taskId"]}
        working = f"Still working: call get_task with {json.dumps(named)} for the answer.\nSo far: begun"
        assert (result["content"][0]["text"], result.get("isError", False)) == (working, False)
        agent.release.set()
        async with mcp_client(hub.url, token) as client:

            async def answered() -> bool:
                return text_of(await client.call_tool("get_task", named)).startswith("begun, done\n")

            await eventually(answered, "the whole answer can be read")


@pytest.mark.parametrize("user_agent", ["node", "undici", "codex-mcp-client/0.50.0"])
def test_clients_that_give_up_after_60_s_are_known(user_agent: str) -> None:
    assert find_return_s(user_agent) == RETURNS_WITHIN_S


@pytest.mark.parametrize("user_agent", ["", "claude-code/2.1.0 (cli)", "python-httpx/0.28.1", "node-red"])
def test_other_clients_have_no_known_time_out(user_agent: str) -> None:
    assert find_return_s(user_agent) is None
