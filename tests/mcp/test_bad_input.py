"""Requests that `/mcp` refuses: each with a clear error, none with a 5xx, and nothing of other callers in it."""

import asyncio
import json
from typing import Any

import httpx
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError

from lab.agents import Echo, Held, TaskPeer, online
from lab.callers import Json, bearer, mint_app, revoke_app, web
from lab.hub_process import HubProcess, StartHub
from lab.hub_storage import MakeStorage
from lab.waiting import eventually
from tests.mcp.clients import MODES, mcp_client, task_id_of, text_of

HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
LIST: Json = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


async def post(hub: HubProcess, body: bytes | Json, token: str = "", **headers: str) -> httpx.Response:
    """One request by hand."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = HEADERS | (bearer(token) if token else {}) | named
    async with web(hub.url) as client:
        return await client.post("/mcp", content=raw, headers=sent)


async def test_without_a_live_token_the_answer_says_where_to_sign_in(
    embedded_hub: HubProcess, subtests: pytest.Subtests
) -> None:
    where = f"{embedded_hub.url}/.well-known/oauth-protected-resource/mcp"
    channel = f"Bearer {embedded_hub.mint('alice', 'channel')}"
    for authorization in ("", "Bearer cw_sess_" + "0" * 32, "Basic YTpi", channel):
        answer = await post(embedded_hub, LIST, **({"Authorization": authorization} if authorization else {}))
        with subtests.test(authorization=authorization):
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == f'Bearer resource_metadata="{where}", scope="ask read"'
            assert answer.json()["error"]["message"].startswith("sign in")
    async with web(embedded_hub.url) as client:
        named = (await client.get(where)).json()
        assert named == (await client.get("/.well-known/oauth-protected-resource")).json()
        assert (await client.get(named["resource_documentation"])).status_code == 200
    assert named["resource"] == f"{embedded_hub.url}/mcp"
    assert named["authorization_servers"] == [embedded_hub.url]


async def test_other_methods_are_405(embedded_hub: HubProcess) -> None:
    session = embedded_hub.mint("alice", "session")
    async with web(embedded_hub.url, headers=bearer(session) | HEADERS) as client:
        for method in ("GET", "DELETE", "PUT"):
            answer = await client.request(method, "/mcp")
            assert (answer.status_code, "POST" in answer.headers["allow"]) == (405, True)
        assert (await client.get("/mcp/sse")).status_code == 404  # the transport before 2025


async def test_hosts_and_origins_that_are_not_the_hubs_are_403(
    start_hub: StartHub, make_storage: MakeStorage, subtests: pytest.Subtests
) -> None:
    app = "https://app.example"
    hub = start_hub(make_storage("embedded"), APP_ORIGINS=app, ALLOWED_HOSTS="hub.lan")
    token, port = hub.mint("alice", "session"), hub.url.rpartition(":")[2]
    allowed = [
        {}, {"Origin": hub.url}, {"Origin": app}, {"Host": "hub.lan"},
        {"Host": f"localhost:{port}", "Origin": f"http://localhost:{port}"},
    ]  # fmt: skip
    refused = [
        {"Host": "evil.example"}, {"Host": f"evil.example:{port}", "Origin": f"http://evil.example:{port}"},
        {"Host": "a b"}, {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": f"{app}.evil.example"},
        {"Origin": "http://["},
    ]  # fmt: skip
    for status, requests in ((200, allowed), (403, refused)):
        for headers in requests:
            with subtests.test(headers=headers):
                answer = await post(hub, LIST, token, **headers)
                is_app = headers.get("Origin") == app
                assert (answer.status_code, answer.headers.get("access-control-allow-origin")) == (
                    status, app if is_app else None,
                )  # fmt: skip
    async with web(hub.url) as client:
        asked = await client.options("/mcp", headers={"Origin": app})
        assert (asked.status_code, asked.headers["access-control-allow-origin"]) == (204, app)
        assert "Authorization" in asked.headers["access-control-allow-headers"]
        assert (await client.options("/mcp", headers={"Origin": "https://evil.example"})).status_code == 403


START = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"'
BODIES = dict.fromkeys(
    (
        *(b"", b"{", b"\xff\xfe", b"[]", b"7"),
        START + b', "id": 2}',
        START + b', "params": {"a": "\\u0000"}}',
        START + b', "params": {"a": 1e999}}',
        START + b', "params": ' + b"[" * 99 + b"]" * 99 + b"}",
        b'{"jsonrpc": "1.0", "id": 1, "method": "tools/list"}',
        b'{"jsonrpc": "2.0", "id": {}, "method": "tools/list"}',
        b'{"jsonrpc": "2.0", "id": 1, "method": 7}',
    ),
    400,
) | {
    b'{"jsonrpc": "2.0", "method": "notifications/initialized"}': 202,
    b'{"jsonrpc": "2.0", "id": 9, "result": {}}': 202,
}


@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28"])
async def test_broken_messages_are_refused(embedded_hub: HubProcess, version: str) -> None:
    token = embedded_hub.mint("alice", "session")
    for body, status in BODIES.items():
        answer = await post(embedded_hub, body, token, MCP_Protocol_Version=version)
        expected = 400 if b"result" in body and version == "2026-07-28" else status
        assert answer.status_code == expected, (body, answer.text)


async def test_a_body_over_the_limit_is_413_and_another_type_415(embedded_hub: HubProcess) -> None:
    token = embedded_hub.mint("alice", "session")
    assert (await post(embedded_hub, b" " * 1_048_577, token)).status_code == 413
    assert (await post(embedded_hub, LIST, token, Content_Type="text/plain")).status_code == 415
    assert (await post(embedded_hub, LIST, token, Accept="text/html")).status_code == 406
    assert (await post(embedded_hub, LIST, token, MCP_Protocol_Version="1999-01-01")).status_code == 400


@pytest.mark.parametrize("mode", MODES)
async def test_unknown_tools_and_methods_are_protocol_errors(
    embedded_hub: HubProcess, mode: str, subtests: pytest.Subtests
) -> None:
    async with mcp_client(embedded_hub.url, embedded_hub.mint("alice", "session"), mode) as client:
        for name in ("delete_everything", "ask_owner_unknown", "ask_", "x" * 5000, "ask_\u2603_\u2603"):
            with subtests.test(name=name), pytest.raises(MCPError, match="no tool"):
                await client.call_tool(name, {})
        with pytest.raises(MCPError) as refused, pytest.warns(MCPDeprecationWarning):
            await client.subscribe_resource("clawbridge://tasks/x")
        assert refused.value.code == types.METHOD_NOT_FOUND
        with pytest.raises(MCPError, match="cursor"):
            await client.list_tools(cursor="\u0007")


ASKED = {"handle": "a/b", "message": "hi"}
ARGUMENTS: list[tuple[str, Any, str]] = [
    ("ask_agent", {}, "handle"),
    ("ask_agent", ASKED | {"handle": 7}, "handle"),
    *(("ask_agent", ASKED | {"message": one}, "message") for one in (["hi"], " ")),
    ("ask_agent", ASKED | {"more": 1}, "more"),
    *(("ask_agent", ASKED | {"context_id": one}, "context_id") for one in ("x" * 129, "\u0007")),
    ("ask_agent", ASKED | {"wait_s": 0}, "wait_s"),
    *(
        ("ask_agent", ASKED | {"files": [one]}, "files[0]")
        for one in ({"data": "?"}, {"data": "aGk=", "url": "https://x"})
    ),
    ("ask_agent", ASKED | {"files": [{}] * 64}, "files"),
    *(("ask_agent", ASKED | {"handle": one}, "no such agent") for one in ("a", "a/b/c", "a/\u0007")),
    *(("list_agents", {"query": one}, "query") for one in (1, "x" * 201)),
    ("get_task", {"task_id": ""}, "task_id"),
    ("get_task", {"task_id": "task-\u0007"}, "task not found"),
    ("answer_task", {"task_id": "task-1", "message": ""}, "message"),
    ("cancel_task", {"task_id": "task-" + "0" * 32}, "task not found"),
]


async def test_wrong_arguments_are_results_that_name_them(
    embedded_hub: HubProcess, subtests: pytest.Subtests
) -> None:
    token = embedded_hub.mint("alice", "session")
    for tool, arguments, named in ARGUMENTS:
        params = {"name": tool, "arguments": arguments}
        with subtests.test(tool=tool, arguments=arguments):
            answer = await post(embedded_hub, LIST | {"method": "tools/call", "params": params}, token)
            assert answer.status_code == 200
            data = next(line for line in answer.text.splitlines() if line.startswith("data: "))
            result = json.loads(data.removeprefix("data: "))["result"]
            assert (result["isError"], named in result["content"][0]["text"]) == (True, True), (arguments, result)


async def test_a_question_over_the_agents_own_limit_is_a_result(embedded_hub: HubProcess) -> None:
    token = embedded_hub.mint("alice", "session")
    async with (
        online(embedded_hub, Echo, agent={"maxBodyBytes": 1024}) as agent,
        mcp_client(embedded_hub.url, token) as client,
    ):
        answer = await client.call_tool("ask_agent", {"handle": agent.handle, "message": "x" * 2000})
        assert answer.is_error
        assert "1024 bytes" in text_of(answer)
        assert not agent.prompts


async def test_a_task_is_its_callers_alone_by_tools(hub: HubProcess, alice: str, bob: str) -> None:
    async with (
        online(hub, TaskPeer) as agent,
        mcp_client(hub.urls[0], alice) as hers,
        mcp_client(hub.urls[-1], bob) as his,
    ):
        asked = await hers.call_tool("ask_agent", {"handle": agent.handle, "message": "ask which one?"})
        absent = text_of(await his.call_tool("get_task", {"task_id": "task-" + "0" * 32}))
        for tool, more in (("get_task", {}), ("cancel_task", {}), ("answer_task", {"message": "the first"})):
            foreign = await his.call_tool(tool, {"task_id": task_id_of(asked)} | more)
            assert foreign.is_error
            assert text_of(foreign) == absent
        assert "which one?" in text_of(await hers.call_tool("get_task", {"task_id": task_id_of(asked)}))


async def test_who_asks_by_tools(embedded_hub: HubProcess) -> None:
    alice, owner = embedded_hub.mint("alice", "session"), embedded_hub.mint("owner", "session")
    async with online(embedded_hub, Echo, agent={"access": "private"}) as agent:
        asked = {"handle": agent.handle, "message": "hello"}
        for token, may in ((alice, False), (owner, True)):
            async with mcp_client(embedded_hub.url, token) as client:
                answer = await client.call_tool("ask_agent", asked)
                assert answer.is_error is not may
                slug = agent.handle.partition("/")[2]
                listed = text_of(await client.call_tool("list_agents", {"query": slug}))
                assert (f"- {agent.handle} " in listed) is may
            if not may:
                assert text_of(answer).startswith("Error: no such agent.")
    reads = await mint_app(embedded_hub.url, alice, "reads", scopes=["read"])
    async with mcp_client(embedded_hub.url, reads) as client:
        answer = await client.call_tool("ask_agent", {"handle": "owner/x", "message": "hello"})
        assert answer.is_error


async def test_a_token_whose_scopes_name_no_tool_is_refused(embedded_hub: HubProcess) -> None:
    owner = embedded_hub.mint("owner", "session")
    publishes = await mint_app(embedded_hub.url, owner, "publishes", scopes=["publish"])
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    accept = {"Accept": "application/json, text/event-stream"}
    async with web(embedded_hub.url, headers=bearer(publishes) | accept) as client:
        for query in ("", "?agents=tools"):
            answer = await client.post(f"/mcp{query}", json=message)
            assert answer.status_code == 403
            assert answer.headers["www-authenticate"] == 'Bearer error="insufficient_scope", scope="read"'


@pytest.mark.parametrize("mode", MODES)
async def test_a_token_revoked_in_the_middle_ends_the_call(hub: HubProcess, mode: str) -> None:
    session = hub.mint("carol", "session")
    token = await mint_app(hub.url, session, "soon revoked")
    async with online(hub, Held) as agent, mcp_client(hub.urls[-1], token, mode) as client:
        call = asyncio.create_task(client.call_tool("ask_agent", {"handle": agent.handle, "message": "wait"}))
        await agent.heard("prompt")
        await revoke_app(hub.url, session, "soon revoked")
        ended = await asyncio.wait_for(call, 20)
        assert ended.is_error
        assert "sign in" in text_of(ended).lower()
        assert (await post(hub, LIST, token)).status_code == 401
        agent.release.set()
        task_id = agent.prompts[0]["taskId"]
    async with mcp_client(hub.url, session, mode) as client:

        async def answered() -> bool:
            return text_of(await client.call_tool("get_task", {"task_id": task_id})).startswith("echo: wait")

        await eventually(answered, "the turn went on, and its answer is kept")
