"""Completion of handles, tasks and artifacts."""

from types import SimpleNamespace
from typing import Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from agents.models import Turn
from hub import wiring
from kit.async_db import db_call
from lab.agents import Echo, TaskPeer, online
from lab.hub_process import HubProcess
from mcp_server.service.calls import ToolCalls
from mcp_server.service.catalog import URI_TEMPLATE, find_latest_task_ids
from mcp_server.surface.endpoint import CALLER_KEY
from mcp_server.surface.resources_and_prompts import MAX_VALUES, complete
from tests.contracts.rows import admitted, ask, published
from tests.mcp.clients import MODES, mcp_client, task_id_of
from tests.mcp.test_tool_names import make_caller, publish

ASK = types.PromptReference(name="ask")
RESOURCE = types.ResourceTemplateReference(uri=URI_TEMPLATE)


@pytest.mark.parametrize("mode", MODES)
async def test_handles_tasks_and_artifacts_are_completed(embedded_hub: HubProcess, mode: str) -> None:
    hub, alice, bob = embedded_hub, embedded_hub.mint("alice", "session"), embedded_hub.mint("bob", "session")
    async with (
        online(hub, TaskPeer) as agent,
        online(hub, Echo, agent={"access": "private"}) as private,
        mcp_client(hub.url, alice, mode) as client,
        mcp_client(hub.url, bob, mode) as other,
    ):
        for begin in (agent.handle[:-1], f"@{agent.handle.upper()}", agent.handle.partition("/")[2]):
            found = await client.complete(ASK, {"name": "agent", "value": begin})
            assert agent.handle in found.completion.values
        assert (await client.complete(ASK, {"name": "agent", "value": private.handle})).completion.values == []
        assert (await client.complete(ASK, {"name": "question", "value": "W"})).completion.values == []

        asked = await client.call_tool(
            "ask_agent", {"handle": agent.handle, "message": "text a1 one | text b1 two"}
        )
        task_id = task_id_of(asked)
        begun = {"name": "task", "value": task_id[:-4]}
        assert (await client.complete(RESOURCE, begun)).completion.values == [task_id]
        assert (await other.complete(RESOURCE, begun)).completion.values == []
        named, first = {"task": task_id}, {"name": "artifact", "value": "a"}
        assert (await client.complete(RESOURCE, first, named)).completion.values == ["a1"]
        assert (await other.complete(RESOURCE, first, named)).completion.values == []
        for ref, name in ((ASK, "task"), (types.PromptReference(name="no"), "agent")):
            with pytest.raises(MCPError, match="no such argument"):
                await client.complete(ref, {"name": name, "value": ""})


@pytest.mark.django_db
def test_a_token_that_may_not_ask_gets_no_ids_of_tasks() -> None:
    admitted(ask(published()))
    Turn.objects.update(task_id="task-1")
    assert len(find_latest_task_ids(make_caller(scopes="ask"))) == 1
    for scope in ("read", "publish", "admin"):
        assert find_latest_task_ids(make_caller(scopes=scope)) == []


async def test_at_most_100_values_are_given(transactional_db: Any) -> None:
    caller = await db_call(make_caller)()
    context: Any = SimpleNamespace(request=SimpleNamespace(scope={CALLER_KEY: caller}))
    argument = types.CompletionArgument(name="agent", value="owner/a")
    calls = ToolCalls(wiring.HubServices().bridge.runner)
    for number in range(MAX_VALUES + 1):
        given = await complete(calls, context, types.CompleteRequestParams(ref=ASK, argument=argument))
        assert (len(given.completion.values), given.completion.has_more) == (number, False)
        await db_call(publish)(f"owner/a{number}")
    given = await complete(calls, context, types.CompleteRequestParams(ref=ASK, argument=argument))
    assert (len(given.completion.values), given.completion.has_more) == (MAX_VALUES, True)
