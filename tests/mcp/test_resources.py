"""The artifacts of a caller's tasks as resources."""

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from lab.agents import TaskPeer, online
from lab.hub_process import HubProcess
from mcp_server.service.catalog import TASKS_PER_PAGE
from mcp_server.surface.results import MAX_EMBEDDED_CHARS, NAME_META, URI_META
from tests.mcp.clients import HANDSHAKE, MODES, mcp_client, task_id_of

LARGE = "x" * MAX_EMBEDDED_CHARS
STEPS = f'say see: | raw notes {LARGE} | image dot aGk= | url plan https://example.com/plan | data d {{"a": 1}}'
NOT_FOUND = {HANDSHAKE: -32002}


@pytest.mark.parametrize("mode", MODES)
async def test_a_result_links_to_large_artifacts_and_each_is_read(hub: HubProcess, alice: str, mode: str) -> None:
    async with online(hub, TaskPeer) as agent, mcp_client(hub.urls[-1], alice, mode) as client:
        answer = await client.call_tool("ask_agent", {"handle": agent.handle, "message": STEPS})
        begin = f"clawbridge://tasks/{task_id_of(answer)}/artifacts/"
        links = [one for one in answer.content if isinstance(one, types.ResourceLink)]
        assert [(one.uri, one.name, one.size) for one in links] == [
            (f"{begin}notes", "notes.txt", len(LARGE)),
            ("https://example.com/plan", "plan", None),
        ]
        [image] = [one for one in answer.content if isinstance(one, types.ImageContent)]
        assert image.meta == {URI_META: f"{begin}dot", NAME_META: "dot.png"}
        assert answer.structured_content is not None
        assert [(one["name"], one["uri"]) for one in answer.structured_content["files"]] == [
            ("notes.txt", links[0].uri), ("dot.png", f"{begin}dot"), ("plan", links[1].uri),
        ]  # fmt: skip

        listed = {str(one.uri): one.mime_type for one in (await client.list_resources()).resources}
        read = {}
        for name in ("reply-1", "notes", "dot", "plan", "d"):
            [contents] = (await client.read_resource(f"{begin}{name}")).contents
            read[name] = contents.text if isinstance(contents, types.TextResourceContents) else contents.blob
            assert (contents.uri, contents.mime_type) == (f"{begin}{name}", listed[f"{begin}{name}"])
    assert read.pop("notes") == LARGE
    assert read == {"reply-1": "see:", "dot": "aGk=", "plan": links[1].uri, "d": '{"a":1}'}


@pytest.mark.parametrize("mode", MODES)
async def test_absent_and_foreign_resources_look_the_same(
    hub: HubProcess, alice: str, bob: str, mode: str
) -> None:
    async with (
        online(hub, TaskPeer) as agent,
        mcp_client(hub.urls[0], alice, mode) as hers,
        mcp_client(hub.urls[-1], bob, mode) as his,
    ):
        asked = await hers.call_tool("ask_agent", {"handle": agent.handle, "message": "text notes hello"})
        uri = f"clawbridge://tasks/{task_id_of(asked)}/artifacts/notes"
        assert uri in [one.uri for one in (await hers.list_resources()).resources]
        assert uri not in [one.uri for one in (await his.list_resources()).resources]
        refusals = set()
        for client, wanted in (
            (his, uri),
            (hers, f"{uri}2"),
            (hers, uri.replace("task-", "task-0")),
            (hers, "x:"),
        ):
            with pytest.raises(MCPError) as refused:
                await client.read_resource(wanted)
            assert refused.value.data == {"uri": wanted}
            refusals.add((refused.value.code, refused.value.message))
    assert refusals == {(NOT_FOUND.get(mode, -32602), "no such resource: the artifact is absent or has expired")}


async def test_the_latest_artifacts_are_listed_by_pages(embedded_hub: HubProcess) -> None:
    token = embedded_hub.mint("artifact-lister", "session")
    async with online(embedded_hub, TaskPeer) as agent, mcp_client(embedded_hub.url, token) as client:
        tasks = [
            task_id_of(
                await client.call_tool("ask_agent", {"handle": agent.handle, "message": f"text made {number}"})
            )
            for number in range(TASKS_PER_PAGE + 1)
        ]
        first = await client.list_resources()
        last = await client.list_resources(cursor=first.next_cursor)
        [oldest] = (await client.read_resource(last.resources[0].uri)).contents
    assert last.next_cursor is None
    assert [one.uri for one in (*first.resources, *last.resources)] == [
        f"clawbridge://tasks/{one}/artifacts/made" for one in reversed(tasks)
    ]
    assert isinstance(oldest, types.TextResourceContents)
    assert oldest.text == "0"
