"""Answers that are cut off, and requests that are repeated."""

import asyncio
from typing import Any

import openai
import pytest

from lab.agents import Echo, Held, TaskPeer, online
from lab.callers import bearer, get_task, mint_app, reply_text, revoke_app, web
from lab.hub_process import HubProcess
from lab.waiting import eventually
from tests.chat.clients import asking, client_of, read, user

PATHS = ("/v1/chat/completions", "/v1/responses")
REVOKED_WITHIN_S = 20  # documented as 2 s


async def check_answered(hub: HubProcess, handle: str, task_id: str, token: str, text: str) -> None:
    """The turn went on, and its answer is kept."""

    async def answered() -> bool:
        task = (await get_task(hub.url, handle, task_id, token))["result"]
        return task["status"]["state"] == "COMPLETED" and reply_text(task) == text

    await eventually(answered, "the turn goes on", within_s=20)


async def test_a_client_that_leaves_a_stream_does_not_stop_the_agent(hub: HubProcess, alice: str) -> None:
    async with asking(hub, TaskPeer) as (agent, client, model), web(hub.urls[-1]) as http:
        messages = user("say one | hold | say , two")
        stream = await client.chat.completions.create(model=model, messages=messages, stream=True)
        async for chunk in stream:
            if chunk.choices[0].delta.content:
                break
        await stream.close()

        async def left() -> bool:
            return "clawbridge_streams 0.0" in (await http.get("/metrics")).text

        await eventually(left, "the hub sees that the client has gone", within_s=20)
        agent.release.set()
        await check_answered(hub, agent.handle, chunk.id, alice, "one, two")
    assert not [frame for frame in agent.frames if frame["type"] == "cancel"]


async def test_a_token_that_is_revoked_ends_its_streams(hub: HubProcess) -> None:
    session = hub.mint("carol", "session")
    name = "chat, soon revoked"
    async with online(hub, Held) as agent:
        async with client_of(hub.urls[-1], await mint_app(hub.url, session, name)) as client:
            model = f"agent/{agent.handle}"
            stream = await client.chat.completions.create(model=model, messages=user("wait"), stream=True)
            events = await client.responses.create(model=model, input="wait too", stream=True)
            await agent.heard("prompt", count=2)
            await revoke_app(hub.url, session, name)
            with pytest.raises(openai.APIError) as ended:
                await asyncio.wait_for(read(stream), REVOKED_WITHIN_S)
            assert ended.value.code == "invalid_api_key"
            seen: list[Any] = [event async for event in events]
            assert (seen[-1].type, seen[-1].response.error.code) == ("response.failed", "invalid_api_key")
        agent.release.set()
        await check_answered(hub, agent.handle, seen[0].response.id, session, "echo: wait too")


async def test_a_request_with_an_idempotency_key_is_asked_once(hub: HubProcess) -> None:
    async with asking(hub, Echo) as (agent, client, model):
        asked: dict[str, Any] = {"model": model, "messages": user("once")}
        keyed = client.with_options(default_headers={"Idempotency-Key": f"key of {agent.handle}"})
        first, again = [await keyed.chat.completions.create(**asked) for _ in range(2)]
        assert first.choices[0].message.content == again.choices[0].message.content == "echo: once"
        assert first.id == again.id
        text, chunks = await read(await keyed.chat.completions.create(**asked, stream=True))
        assert (text, chunks[0].id) == ("echo: once", first.id)
        with pytest.raises(openai.UnprocessableEntityError) as reused:
            await keyed.chat.completions.create(**asked | {"messages": user("twice")})
        assert reused.value.code == "idempotency_key_reused"
        assert len(agent.prompts) == 1
        other = await client.chat.completions.create(**asked)
        assert other.id != first.id


async def test_pages_of_other_origins_may_ask_with_a_token(embedded_hub: HubProcess) -> None:
    wants = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x-stainless-os"}
    cookie = {"Cookie": f"cw_session={embedded_hub.mint('alice', 'session')}"}
    async with web(embedded_hub.url, headers={"Origin": "https://app.example"}) as http:
        for path, status in (*((one, 403) for one in PATHS), ("/v1/models", 200), ("/v1/models/agent/a/b", 404)):
            method = "POST" if path in PATHS else "GET"
            preflight = await http.options(path, headers=wants)
            assert (preflight.status_code, preflight.headers["access-control-allow-origin"]) == (204, "*")
            assert {"Authorization", "*"} <= set(preflight.headers["access-control-allow-headers"].split(", "))
            assert "POST" in preflight.headers["access-control-allow-methods"]
            refused = await http.request(method, path, json={})
            assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, "*")
            # Without these a client in a page would repeat a question that its agent has failed to answer.
            exposed = ", ".join(refused.headers.get_list("access-control-expose-headers")).split(", ")
            assert {"Retry-After", "X-Should-Retry"} <= set(exposed)
            assert (await http.request(method, path, json={}, headers=cookie)).status_code == status


async def test_no_body_is_too_bad_for_a_clear_error(embedded_hub: HubProcess) -> None:
    said = b'[{"role": "user", "content": "a"}'
    parts = {  # what follows the name of the messages, or of the input
        b"[" + b",".join([b"{}"] * 100_000) + b"]}": 400,
        b"[" + b",".join([b'{"role":"user","content":""}'] * 100_000) + b"]}": 413,
        b'"' + b"x" * 1_048_577 + b'"}': 413,
        b"[" * 500 + b"]" * 500 + b"}": 400,
        said.replace(b'"a"', b'"\\u0000"') + b"]}": 400,
        said.replace(b'"a"', b'"\\ud800"') + b"]}": 400,
        said.replace(b'"a"', b"1e999") + b"]}": 400,
        said.replace(b'"a"', b'[{"type": 7}]') + b"]}": 400,
        said.replace(b'"user"', b"1") + b"]}": 400,
        said.replace(b'"user"', b'"wizard"') + b"]}": 400,
        said + b'], "model": "agent/c/d"}': 400,
        said + b'], "stream": "yes"}': 400,
    }
    headers = bearer(embedded_hub.mint("alice", "session")) | {"Content-Type": "application/json"}
    async with web(embedded_hub.url, headers=headers) as http:
        for path, field in zip(PATHS, ("messages", "input"), strict=True):
            head = f'{{"model": "agent/a/b", "{field}": '.encode()
            bodies = dict.fromkeys((b"", b"{", b"\xff\xfe", b"null"), 400)
            for body, status in (bodies | {head + part: status for part, status in parts.items()}).items():
                answer = await http.post(path, content=body)
                assert answer.status_code == status, (body[:80], answer.text)
                assert answer.json()["error"]["type"] == "invalid_request_error"
                assert answer.json()["error"]["message"]
            long = await http.post(path, content=head + said + b"]}", headers={"X-Conversation-Id": "x" * 1000})
            assert (long.status_code, long.json()["error"]["param"]) == (400, "X-Conversation-Id"), long.text
