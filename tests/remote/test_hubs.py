"""Running hubs that call remote servers: every surface, two processes, and a process that dies."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from kit.ids import unguessable
from lab.agents import Echo
from lab.callers import Json, bearer, inbound, send, web
from lab.hub_process import HubProcess, StartHub
from lab.hub_storage import HubStorage
from lab.waiting import eventually
from tests.remote.caller import far_body
from tests.remote.servers import Remote, Seen, sdk_server

ENV = {"REMOTE_ALLOW_PRIVATE": 1, "REMOTE_RETRY_S": 1}


async def publish(hub: HubProcess, far: Remote, **details: Any) -> Json:
    """The server as an agent of the owner's."""
    body = {**far_body(far.url), **details}
    async with web(hub.url) as client:
        response = await client.post("/api/v1/agents", json=body, headers=bearer(hub.mint("owner", "session")))
    assert response.status_code == 201, response.text
    agent: Json = response.json()
    return agent


def words(task: Json) -> str:
    """The text a caller reads of a task, wherever its dialect puts it."""
    return json.dumps(task)


async def test_every_surface_and_process_reaches_it(home: HubStorage, start_hub: StartHub) -> None:
    processes = 1 if home.name == "embedded" else 2
    hub = start_hub(home, processes=processes, **ENV)
    async with sdk_server() as far:
        agent = await publish(hub, far)
        for url in hub.urls:
            task = await send(url, "owner/far", "hello", hub.mint("alice", "session"))
            assert "echo: hello" in words(task)
            async with web(url) as client:
                routed = await client.post(
                    "/api/v1/peers/@owner%2Ffar/route",
                    json={"prompt": "over the route", "mode": "ask"},
                    headers=bearer(hub.mint("alice", "session")),
                )
                card = (await client.get("/api/a2a/v1/agents/owner/far/agent-card.json")).text
                page = (await client.get("/agents?online=1")).text
            assert routed.json()["reply"] == "echo: over the route", routed.text
            assert far.url not in card
            assert "owner/far" in page
        log = await inbound(hub.url, agent["id"], hub.mint("owner", "session"))
        assert sorted(one["question"] for one in log["recent"]) == sorted(["over the route", "hello"] * processes)
        assert all(one["ok"] for one in log["recent"])


async def test_a_breaker_that_opens_in_one_process_is_open_in_all(home: HubStorage, start_hub: StartHub) -> None:
    processes = 1 if home.name == "embedded" else 2
    hub = start_hub(home, processes=processes, **ENV | {"REMOTE_RETRY_S": 600})
    async with sdk_server() as far:
        await publish(hub, far)
    for _ in range(5):
        await send(hub.url, "owner/far", "hello", hub.mint("alice", "session"))
    for url in hub.urls:
        task = await send(url, "owner/far", "hello", hub.mint("alice", "session"))
        assert "agent channel offline" in words(task)
        async with web(url) as client:
            seen = await client.get(
                "/api/v1/agents/by-handle/owner/far", headers=bearer(hub.mint("owner", "session"))
            )
        assert seen.json()["online"] is False
        assert seen.json()["remote"]["breaker"] == "open"
        assert seen.json()["queriesToday"] == 0


@pytest.mark.slow
async def test_what_a_dead_process_was_asking_ends(make_storage: Any, start_hub: StartHub) -> None:
    hub = start_hub(make_storage("embedded"), **ENV)
    async with sdk_server() as far:
        agent = await publish(hub, far)
        asking = asyncio.create_task(_ask_and_break(hub))
        await eventually(lambda: _true(far.seen.texts), "it is asked")
        await asyncio.to_thread(hub.kill9)
        await asking
        await asyncio.to_thread(hub.serve, 0)
        task = await send(hub.url, "owner/far", "again", hub.mint("bob", "session"))
        assert "echo: again" in words(task)
        log = await inbound(hub.url, agent["id"], hub.mint("owner", "session"))
        assert {one["question"]: one["deniedReason"] for one in log["recent"]} == {
            "again": None,
            "hold on": "process_died",
        }


async def _ask_and_break(hub: HubProcess) -> None:
    with pytest.raises(httpx.HTTPError):
        await send(hub.url, "owner/far", "hold on", hub.mint("alice", "session"))


async def _true(what: list[str]) -> bool:
    return bool(what)


async def v1(url: str, token: str, method: str, params: Json) -> Json:
    """One call of A2A 1.0 to the agent; its result."""
    call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    async with web(url) as client:
        answer = await client.post(
            "/api/a2a/v1/agents/owner/far", json=call, headers=bearer(token) | {"A2A-Version": "1.0"}
        )
    body: Json = answer.json()
    assert "error" not in body, body
    result: Json = body["result"]
    return result


def message(text: str, **ids: str) -> Json:
    """Params of SendMessage."""
    parts = [{"text": text}]
    return {"message": {"messageId": unguessable(), "role": "ROLE_USER", "parts": parts, **ids}}


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
async def test_a_task_continues_and_ends_through_the_hub(
    home: HubStorage, start_hub: StartHub, binding: str
) -> None:
    hub = start_hub(home, processes=1 if home.name == "embedded" else 2, **ENV)
    alice = hub.mint("alice", "session")
    async with sdk_server(binding) as far:
        await publish(hub, far)
        asked = (await v1(hub.urls[0], alice, "SendMessage", message("ask me")))["task"]
        assert asked["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        assert "which one?" in words(asked["status"])
        ids = {"taskId": asked["id"], "contextId": asked["contextId"]}
        done = (await v1(hub.urls[-1], alice, "SendMessage", message("the red one", **ids)))["task"]
        assert (done["id"], done["status"]["state"]) == (asked["id"], "TASK_STATE_COMPLETED")
        assert "echo: the red one" in words(done["artifacts"])
        assert len(set(far.seen.tasks)) == 1
        later = (await v1(hub.url, alice, "SendMessage", message("more", contextId=asked["contextId"])))["task"]
        assert later["id"] != asked["id"]
        assert len(set(far.seen.contexts)) == 1
        filed = (await v1(hub.url, alice, "SendMessage", message("file please")))["task"]
        assert '"raw": "YWJj"' in words(filed["artifacts"])


async def test_a_cancel_goes_through_the_hub(home: HubStorage, start_hub: StartHub) -> None:
    hub = start_hub(home, processes=1 if home.name == "embedded" else 2, **ENV)
    alice = hub.mint("alice", "session")
    async with sdk_server() as far:
        await publish(hub, far)
        params = message("hold on") | {"configuration": {"returnImmediately": True}}
        task = (await v1(hub.urls[0], alice, "SendMessage", params))["task"]
        await eventually(lambda: _true(far.seen.texts), "it is asked")
        canceled = await v1(hub.urls[-1], alice, "CancelTask", {"id": task["id"]})
        assert canceled["status"]["state"] == "TASK_STATE_CANCELED"
        await eventually(lambda: _true(far.seen.canceled), "the cancel")
        assert far.seen.canceled == far.seen.tasks


async def test_a_hub_asks_a_hub(make_storage: Any, start_hub: StartHub) -> None:
    """Hub to hub by the card as it is published, with a token of the far one."""
    far = start_hub(make_storage("embedded"))
    near = start_hub(make_storage("embedded"), **ENV)
    async with Echo(far.url, far.mint("owner", "channel")) as agent:
        await publish_session(far, agent.session_id)
        card = f"{far.url}/api/a2a/v1/agents/owner/echo/agent-card.json"
        auth = {"scheme": "Bearer", "credentials": far.mint("alice", "session")}
        place = {"cardUrl": card, "auth": auth}
        made = await publish(near, Remote(card, Seen()), remote=place)
        assert made["online"] is True
        task = await send(near.url, "owner/far", "who is there", near.mint("bob", "session"))
        assert "echo: who is there" in words(task)
        asked = await agent.heard("prompt")
        assert asked["askerUser"] == "alice"


async def publish_session(hub: HubProcess, session_id: str) -> None:
    """An agent of a session, `owner/echo`."""
    body = {"name": "Echo", "slug": "echo", "status": "published", "sessionId": session_id}
    async with web(hub.url) as client:
        response = await client.post("/api/v1/agents", json=body, headers=bearer(hub.mint("owner", "session")))
    assert response.status_code == 201, response.text
