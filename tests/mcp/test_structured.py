"""Structured results: the client of the SDK compares each that is no error with the schema of its tool."""

import jsonschema
import pytest

from lab.agents import Echo, TaskPeer, online
from lab.hub_process import HubProcess
from tests.mcp.clients import MODES, mcp_client, task_id_of, text_of


@pytest.mark.parametrize("mode", MODES)
async def test_results_have_the_structure_of_their_schemas(embedded_hub: HubProcess, mode: str) -> None:
    token = embedded_hub.mint("alice", "session")
    async with (
        online(embedded_hub, TaskPeer) as agent,
        mcp_client(embedded_hub.url, token, mode) as client,
    ):
        schemas = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}

        async def ask(message: str) -> tuple[str, str]:
            asked = {"handle": agent.handle, "message": message, "wait_s": 1}
            result = await client.call_tool("ask_agent", asked)
            structured = result.structured_content
            jsonschema.validate(structured, schemas["ask_agent"])  # some clients do so with errors, too
            again = await client.call_tool("get_task", {"task_id": task_id_of(result)})
            assert again.structured_content == structured
            assert (structured["task_id"], structured["handle"]) == (task_id_of(result), agent.handle)
            assert text_of(result) == (
                f"{structured['text']}\ntask_id: {structured['task_id']}\ncontext_id: {structured['context_id']}"
            )
            assert result.is_error is (structured["state"] == "rejected")
            return structured["state"], structured["text"].partition("\n")[0]

        assert await ask("say hello | say , you") == ("completed", "hello, you")
        assert await ask("ask which one?") == ("input_required", "which one?")
        assert await ask("reject not today") == (
            "rejected",
            "The agent refused the question: not today. "
            "Ask it something else with ask_agent, or ask another of list_agents.",
        )
        state, text = await ask("say begun | wait")
        assert (state, text.partition(":")[0]) == ("working", "Still working")


async def test_agents_are_listed_as_data_too(embedded_hub: HubProcess) -> None:
    token = embedded_hub.mint("alice", "session")
    async with online(embedded_hub, Echo) as agent, mcp_client(embedded_hub.url, token) as client:
        slug = agent.handle.partition("/")[2]
        [listed] = (await client.call_tool("list_agents", {"query": slug})).structured_content["agents"]
        assert (listed["handle"], listed["state"]) == (agent.handle, "online")
        nothing = await client.call_tool("list_agents", {"query": "xylophones"})
        assert nothing.structured_content == {"agents": [], "has_more": False}
        unknown = await client.call_tool("ask_agent", {"handle": "owner/nothing", "message": "hello"})
        assert (unknown.is_error, unknown.structured_content) == (True, None)
