"""`/api/v1/questions/{id}`: request and response as sent, without secrets, and the timeline of one ask."""

import asyncio
import json
import os
from typing import Any

import httpx
import pytest

from lab.agents import Chunker, Echo, online
from lab.callers import bearer, call, envelope, question, rpc_path, web
from lab.frames import Json
from lab.hub_process import HubProcess
from lab.hub_storage import MakeStorage
from lab.waiting import eventually
from tests.channel.agents import sql
from tests.gateway.client import EchoSeat, team

PUSH_TOKEN = "push-secret-1234567"
CREDENTIALS = "credentials-of-the-receiver"


async def last_ask(hub: HubProcess, token: str, **query: str) -> str:
    async with web(hub.url) as client:
        found = await client.get("/api/v1/questions", headers=bearer(token), params=query)
    chat_id: str = found.json()["items"][0]["id"]
    return chat_id


async def read(hub: HubProcess, token: str, ask_id: str) -> httpx.Response:
    async with web(hub.url) as client:
        return await client.get(f"/api/v1/questions/{ask_id}", headers=bearer(token))


async def recorded(hub: HubProcess, token: str, ask_id: str, number: int = 1) -> Json:
    """The ask, once so many of its exchanges are written."""
    found: Json = {}

    async def look() -> bool:
        found.update((await read(hub, token, ask_id)).json())
        return len(found["exchanges"]) >= number

    await eventually(look, "the exchange is written")
    return found


def kinds(ask: Json) -> list[str]:
    return [one["kind"] for one in ask["steps"]]


@pytest.mark.parametrize(
    ("version", "protocol"), [("", "The hub's own dialect"), ("1.0", "A2A 1.0"), ("0.3", "A2A 0.3")]
)
async def test_request_and_response_are_shown_as_sent(
    embedded_hub: HubProcess, version: str, protocol: str
) -> None:
    token = embedded_hub.mint("alice", "session")
    async with online(embedded_hub, Echo) as agent:
        params: Any = question("hello exchange")
        method = "SendMessage"
        if version == "0.3":
            parts = [{"kind": "text", "text": "hello exchange"}]
            params = {"message": {"kind": "message", "messageId": "m-03", "role": "user", "parts": parts}}
            method = "message/send"
        answer = await call(embedded_hub.url, agent.handle, token, method, params, version=version)
        ask = await recorded(embedded_hub, token, await last_ask(embedded_hub, token))
    [exchange] = ask["exchanges"]
    assert exchange["protocol"] == f"{protocol} over JSON-RPC"
    assert exchange["requestBody"] == answer.request.content.decode()
    assert exchange["responseBody"] == answer.text
    assert exchange["status"] == 200
    assert exchange["requestHeaders"]["content-type"] == "application/json"
    assert exchange["responseHeaders"]["traceparent"] == answer.headers["traceparent"]
    assert token not in json.dumps(ask)
    assert ask["asCaller"]
    assert {"request", "admitted", "delivery", "work", "end"} <= set(kinds(ask))
    assert ask["deliveredMs"] <= ask["latencyMs"]


async def test_no_secret_is_in_the_record(embedded_hub: HubProcess) -> None:
    token = embedded_hub.mint("alice", "session")
    push = {"url": "https://receiver.example/hook/path-secret", "token": PUSH_TOKEN}
    push["authentication"] = {"scheme": "Bearer", "credentials": CREDENTIALS}  # type: ignore[assignment]
    params = question(f"my token is {token}") | {"configuration": {"taskPushNotificationConfig": push}}
    async with online(embedded_hub, Echo) as agent, web(embedded_hub.url) as client:
        headers = bearer(token) | {"A2A-Version": "1.0", "Cookie": "cw=cookie-secret"}
        sent = await client.post(f"{rpc_path(agent.handle)}/message:send", json=params, headers=headers)
        if sent.status_code != 200:  # the address is not one that a hub may send to: the push is refused
            params.pop("configuration")
            sent = await client.post(f"{rpc_path(agent.handle)}/message:send", json=params, headers=headers)
        assert sent.status_code == 200, sent.text
        ask = await recorded(embedded_hub, token, await last_ask(embedded_hub, token))
    shown = json.dumps(ask["exchanges"])
    assert ask["exchanges"][0]["protocol"] == "A2A 1.0 over HTTP+JSON"
    for secret in (token, PUSH_TOKEN, CREDENTIALS, "path-secret", "cookie-secret", "Bearer c"):
        assert secret not in shown


async def test_a_stream_shows_its_first_and_last_frames(embedded_hub: HubProcess) -> None:
    token = embedded_hub.mint("alice", "session")
    pieces = [f"piece {number} " + "x" * 500 for number in range(100)]
    async with online(embedded_hub, Chunker, pieces=pieces) as agent:
        await call(
            embedded_hub.url, agent.handle, token, "SendStreamingMessage", question("stream"), version="1.0"
        )
        ask = await recorded(embedded_hub, token, await last_ask(embedded_hub, token))
    [exchange] = ask["exchanges"]
    assert exchange["frames"] > 100
    assert "piece 0 " in exchange["responseBody"]
    assert "COMPLETED" in exchange["responseBody"]
    assert len(exchange["responseBody"]) < 20_000 < exchange["responseBytes"]
    assert "reply" in kinds(ask)
    assert ask["firstPieceMs"] <= ask["latencyMs"]


async def test_chat_completions_and_mcp_are_recorded(embedded_hub: HubProcess) -> None:
    token = embedded_hub.mint("alice", "session")
    async with online(embedded_hub, Echo) as agent, web(embedded_hub.url) as client:
        body: Json = {"model": f"agent/{agent.handle}", "messages": [{"role": "user", "content": "as a model"}]}
        chat = await client.post("/v1/chat/completions", json=body, headers=bearer(token))
        assert chat.status_code == 200, chat.text
        ask = await recorded(embedded_hub, token, await last_ask(embedded_hub, token))
        [exchange] = ask["exchanges"]
        assert exchange["protocol"] == "Chat completions"
        assert exchange["responseBody"] == chat.text
        arguments = {"handle": agent.handle, "message": "as a tool"}
        tool = envelope("tools/call", {"name": "ask_agent", "arguments": arguments}, 1)
        headers = bearer(token) | {"Accept": "application/json, text/event-stream"}
        called = await client.post("/mcp", json=tool, headers=headers | {"MCP-Protocol-Version": "2025-06-18"})
        assert called.status_code == 200, called.text
        ask = await recorded(embedded_hub, token, await last_ask(embedded_hub, token))
        [exchange] = ask["exchanges"]
        assert exchange["protocol"] == "MCP"
        assert "echo: as a tool" in exchange["responseBody"]


async def test_the_curl_of_an_ask_works(embedded_hub: HubProcess) -> None:
    token = embedded_hub.mint("alice", "session")
    async with online(embedded_hub, Echo) as agent:
        for version in ("", "1.0"):
            await call(embedded_hub.url, agent.handle, token, "SendMessage", question("it's"), version=version)
            ask = await recorded(embedded_hub, token, await last_ask(embedded_hub, token))
            assert "$TOKEN" in ask["curl"]
            command = ask["curl"].replace("curl ", "curl -sS --noproxy '*' ", 1)
            run = await asyncio.create_subprocess_exec(
                "bash", "-c", command, env={**os.environ, "TOKEN": token}, stdout=asyncio.subprocess.PIPE
            )
            out, _ = await run.communicate()
            assert "echo: it's" in out.decode()


async def test_absent_and_foreign_asks_look_the_same(embedded_hub: HubProcess) -> None:
    token, other = embedded_hub.mint("alice", "session"), embedded_hub.mint("mallory", "session")
    async with online(embedded_hub, Echo) as agent:
        await call(embedded_hub.url, agent.handle, token, "SendMessage", question("private"))
        chat_id = await last_ask(embedded_hub, token)
    foreign, absent = await read(embedded_hub, other, chat_id), await read(embedded_hub, other, "no-such-ask")
    assert foreign.status_code == absent.status_code == 404
    assert foreign.json() == absent.json()


@pytest.mark.slow
@pytest.mark.distributed
async def test_exchanges_are_recorded_on_postgresql(make_storage: MakeStorage) -> None:
    hub = HubProcess.start(make_storage("grown"), processes=2)
    try:
        token = hub.mint("alice", "session")
        async with online(hub, Echo) as agent:
            answer = await call(hub.url, agent.handle, token, "SendMessage", question("é"))
            ask = await recorded(hub, token, await last_ask(hub, token))
        [exchange] = ask["exchanges"]
        assert exchange["responseBody"] == answer.text
        assert ask["deliveredMs"] is not None
    finally:
        hub.stop()


async def test_completions_of_a_team_are_recorded(embedded_hub: HubProcess) -> None:
    token = embedded_hub.mint("recorded-team", "session")
    body: Json = {"model": "any", "messages": [{"role": "user", "content": "as a teammate"}]}
    async with team(embedded_hub, "recorded-team", steward=EchoSeat), web(embedded_hub.url) as client:
        for path, fields in (("/agent/steward", {}), ("/v1/chat/completions", {"model": "agent/steward"})):
            chat = await client.post(path, json=body | fields, headers=bearer(token))
            assert chat.status_code == 200, chat.text
            [(chat_id,)] = sql(embedded_hub, "SELECT chat_id FROM agents_turn ORDER BY id DESC LIMIT 1")
            ask = await recorded(embedded_hub, token, chat_id)
            [exchange] = ask["exchanges"]
            assert (exchange["protocol"], exchange["path"]) == ("Chat completions", path)
            assert "as a teammate" in exchange["requestBody"]
            assert "echo: as a teammate" in exchange["responseBody"]
