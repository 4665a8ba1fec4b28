"""Running hubs that call remote servers: every surface, two processes, and a process that dies."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from lab.agents import Echo
from lab.callers import Json, bearer, inbound, send, web
from lab.hub_process import HubProcess, StartHub
from lab.hub_storage import MakeStorage
from lab.pictures import PIXEL
from lab.waiting import eventually
from tests.remote.caller import far_body
from tests.remote.servers import Remote, Seen, has_come, sdk_server
from tests.v1.caller import Caller, message


async def publish(hub: HubProcess, far: Remote, owner: str, **details: Any) -> Json:
    """The server as an agent of the owner's, `far`."""
    body = {**far_body(far.url), **details}
    async with web(hub.url) as client:
        response = await client.post("/api/v1/agents", json=body, headers=bearer(hub.mint(owner, "session")))
    assert response.status_code == 201, response.text
    agent: Json = response.json()
    return agent


def words(task: Json) -> str:
    """The text a caller reads of a task, wherever its dialect puts it."""
    return json.dumps(task)


async def test_every_surface_and_process_reaches_it(near: HubProcess) -> None:
    async with sdk_server() as far:
        agent = await publish(near, far, "olga")
        for url in near.urls:
            task = await send(url, "olga/far", "hello", near.mint("alice", "session"))
            assert "echo: hello" in words(task)
            async with web(url) as client:
                routed = await client.post(
                    "/api/v1/peers/@olga%2Ffar/route",
                    json={"prompt": "over the route", "mode": "ask"},
                    headers=bearer(near.mint("alice", "session")),
                )
                card = (await client.get("/api/a2a/v1/agents/olga/far/agent-card.json")).text
                page = (await client.get("/agents?online=1")).text
            assert routed.json()["reply"] == "echo: over the route", routed.text
            assert far.url not in card
            assert "olga/far" in page
        log = await inbound(near.url, agent["id"], near.mint("olga", "session"))
        asked = ["over the route", "hello"] * len(near.urls)
        assert sorted(one["question"] for one in log["recent"]) == sorted(asked)
        assert all(one["ok"] for one in log["recent"])


async def test_a_breaker_that_opens_in_one_process_is_open_in_all(near: HubProcess) -> None:
    async with sdk_server() as far:
        await publish(near, far, "bruno")
    for _ in range(5):
        await send(near.url, "bruno/far", "hello", near.mint("alice", "session"))
    for url in near.urls:
        task = await send(url, "bruno/far", "hello", near.mint("alice", "session"))
        assert "agent channel offline" in words(task)
        async with web(url) as client:
            seen = await client.get(
                "/api/v1/agents/by-handle/bruno/far", headers=bearer(near.mint("bruno", "session"))
            )
        assert seen.json()["online"] is False
        assert seen.json()["remote"]["breaker"] == "open"
        assert seen.json()["queriesToday"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("near", ["embedded"], indirect=True)
async def test_what_a_dead_process_was_asking_ends(near: HubProcess) -> None:
    hub = near
    async with sdk_server() as far:
        agent = await publish(hub, far, "dora")
        asking = asyncio.create_task(_ask_and_break(hub))
        await eventually(lambda: has_come(far.seen.texts), "it is asked")
        await asyncio.to_thread(hub.kill9)
        await asking
        await asyncio.to_thread(hub.serve, 0)
        task = await send(hub.url, "dora/far", "again", hub.mint("bob", "session"))
        assert "echo: again" in words(task)
        log = await inbound(hub.url, agent["id"], hub.mint("dora", "session"))
        assert {one["question"]: one["deniedReason"] for one in log["recent"]} == {
            "again": None,
            "hold on": "process_died",
        }


async def _ask_and_break(hub: HubProcess) -> None:
    with pytest.raises(httpx.HTTPError):
        await send(hub.url, "dora/far", "hold on", hub.mint("alice", "session"))


@pytest.mark.parametrize(("binding", "owner"), [("JSONRPC", "rita"), ("HTTP+JSON", "hans")])
async def test_a_task_continues_and_ends_through_the_hub(near: HubProcess, binding: str, owner: str) -> None:
    alice = near.mint("alice", "session")
    first, last = (Caller(url, f"{owner}/far", alice) for url in (near.urls[0], near.urls[-1]))
    async with sdk_server(binding) as far:
        await publish(near, far, owner)
        asked = await first.send("ask me")
        assert asked["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        assert "which one?" in words(asked["status"])
        done = await last.send("the red one", taskId=asked["id"], contextId=asked["contextId"])
        assert (done["id"], done["status"]["state"]) == (asked["id"], "TASK_STATE_COMPLETED")
        assert "echo: the red one" in words(done["artifacts"])
        assert len(set(far.seen.tasks)) == 1
        later = await first.send("more", contextId=asked["contextId"])
        assert later["id"] != asked["id"]
        assert len(set(far.seen.contexts)) == 1
        assert '"raw": "YWJj"' in words((await first.send("file please"))["artifacts"])


async def test_a_cancel_goes_through_the_hub(near: HubProcess) -> None:
    first, last = (
        Caller(url, "carla/far", near.mint("alice", "session")) for url in (near.urls[0], near.urls[-1])
    )
    async with sdk_server() as far:
        await publish(near, far, "carla")
        task = await first.begin("hold on")
        await eventually(lambda: has_come(far.seen.texts), "it is asked")
        canceled = await last.call("CancelTask", {"id": task["id"]})
        assert canceled["status"]["state"] == "TASK_STATE_CANCELED"
        await eventually(lambda: has_come(far.seen.canceled), "the cancel")
        assert far.seen.canceled == far.seen.tasks


@pytest.mark.parametrize("near", ["embedded"], indirect=True)
async def test_a_hub_asks_a_hub(make_storage: MakeStorage, start_hub: StartHub, near: HubProcess) -> None:
    """Hub to hub by each address of the far agent, with a token of the far hub."""
    far = start_hub(make_storage("embedded"))
    auth = {"scheme": "Bearer", "credentials": far.mint("farcaller", "session")}
    async with Echo(far.url, far.mint("farowner", "channel")) as agent:
        await publish_session(far, agent.session_id)
        for below in ("/agent-card.json", "/.well-known/agent-card.json", "", "/"):
            card = f"{far.url}/api/a2a/v1/agents/farowner/echo{below}"
            slug = f"far{len(agent.prompts)}"
            place = {"cardUrl": card, "auth": auth}
            made = await publish(near, Remote(card, Seen()), "owner", slug=slug, remote=place)
            assert made["online"] is True
            task = await send(near.url, f"owner/{slug}", "who is there", near.mint("bob", "session"))
            assert "echo: who is there" in words(task)
        assert [prompt["askerUser"] for prompt in agent.prompts] == ["farcaller"] * 4


async def publish_session(hub: HubProcess, session_id: str) -> None:
    """An agent of a session, `farowner/echo`."""
    body = {"name": "Echo", "slug": "echo", "status": "published", "sessionId": session_id}
    async with web(hub.url) as client:
        response = await client.post("/api/v1/agents", json=body, headers=bearer(hub.mint("farowner", "session")))
    assert response.status_code == 201, response.text


async def test_a_server_elsewhere_gets_the_bytes_of_files_that_the_hub_keeps(near: HubProcess) -> None:
    async with sdk_server() as far:
        takes = {"defaultInputModes": ["text/plain", "image/png"]}
        await publish(near, far, "fiona", **takes)
        token = near.mint("alice", "session")
        async with web(near.url) as client:
            form = {"file": ("a.png", PIXEL, "image/png")}
            kept = (await client.post("/api/v1/files", files=form, headers=bearer(token))).json()
        parts = [
            {"text": "files"},
            {"url": kept["url"]},
            {"url": "https://elsewhere.example/b.png", "mediaType": "image/png"},
        ]
        caller = Caller(near.url, "fiona/far", token)
        task = (await caller.call("SendMessage", {"message": message("", parts=parts)}))["task"]
        [_, sent, linked] = far.seen.parts[-1]
        assert (sent.raw, sent.filename, sent.media_type) == (PIXEL, "a.png", "image/png")
        assert linked.url == "https://elsewhere.example/b.png"
        assert [part.get("url") for part in task["history"][0]["parts"]] == [None, kept["url"], linked.url]
