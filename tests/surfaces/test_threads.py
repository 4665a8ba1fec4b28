"""Threads: what was asked in one context is found again by its words, read, continued, exported and deleted."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from lab import in_django
from lab.agents import Echo, Held, TaskPeer, online
from lab.callers import Json, bearer, call, question, send, web
from lab.hub_process import HubProcess
from lab.hub_storage import MakeStorage
from lab.waiting import eventually
from tests.v1.caller import Caller

HOMES = ["embedded", pytest.param("grown", marks=[pytest.mark.slow, pytest.mark.distributed])]
THREADS = "/api/v1/threads"


@pytest.fixture(params=HOMES, scope="module")
def hub(request: pytest.FixtureRequest, make_storage: MakeStorage) -> Iterator[HubProcess]:
    """A hub as it is without settings."""
    serving = HubProcess.start(make_storage(request.param))
    yield serving
    serving.stop()


def reader(hub: HubProcess, token: str) -> httpx.AsyncClient:
    return web(hub.url, headers=bearer(token))


async def threads(client: httpx.AsyncClient, **query: Any) -> list[Json]:
    answer = await client.get(THREADS, params=query)
    assert answer.status_code == 200, answer.text
    items: list[Json] = answer.json()["items"]
    return items


def said(detail: Json) -> list[tuple[str, str]]:
    return [(one["by"], one["text"]) for exchange in detail["exchanges"] for one in exchange["said"]]


async def test_a_context_is_a_thread_with_the_questions_and_answers_of_its_tasks(hub: HubProcess) -> None:
    token = hub.mint("ann", "session")
    async with online(hub, TaskPeer) as agent, reader(hub, token) as client:
        caller = Caller(hub.url, agent.handle, token)
        task = await caller.send("say **Paris** is the answer")
        await caller.send("note looking | ask Which one?", contextId=task["contextId"])
        [listed] = await threads(client)
        assert (listed["title"], listed["questions"]) == ("say **Paris** is the answer", 2)
        assert (listed["agent"], listed["contextId"]) == (agent.handle, task["contextId"])
        detail = (await client.get(f"{THREADS}/{listed['id']}")).json()
        assert said(detail) == [
            ("caller", "say **Paris** is the answer"),
            ("agent", "**Paris** is the answer"),
            ("caller", "note looking | ask Which one?"),
            ("agent", "Which one?"),
        ]
        assert [one["state"] for one in detail["exchanges"]] == ["completed", "input_required"]
        assert detail["before"] is None


async def test_the_next_turn_of_a_task_is_part_of_its_exchange(hub: HubProcess) -> None:
    token = hub.mint("fred", "session")
    async with online(hub, TaskPeer) as agent, reader(hub, token) as client:
        caller = Caller(hub.url, agent.handle, token)
        asked = await caller.send("say first | ask Which one?")
        await caller.send("the red one", taskId=asked["id"], contextId=asked["contextId"])
        [listed] = await threads(client)
        detail = (await client.get(f"{THREADS}/{listed['id']}")).json()
        assert [by for by, _ in said(detail)] == ["caller", "agent", "agent", "caller", "agent"]
        assert said(detail)[-1] == ("agent", "you said: the red one")
        assert [one["title"] for one in await threads(client, q="red")] == [listed["title"]]


@pytest.mark.parametrize("version", ["", "0.3"])
async def test_answers_in_every_dialect_are_kept_also_those_that_are_messages(
    hub: HubProcess, version: str
) -> None:
    token = hub.mint(f"dia{len(version)}", "session")
    async with online(hub, Echo) as agent, reader(hub, token) as client:
        params: Json = question("a fiddlehead?")
        if version:
            message = {
                "kind": "message",
                "messageId": "m",
                "role": "user",
                "parts": [{"kind": "text", "text": "a fiddlehead?"}],
            }
            params = {"message": message}
        method = "message/send" if version else "SendMessage"
        answer = (await call(hub.url, agent.handle, token, method, params, version=version)).json()["result"]
        [listed] = await threads(client, q="FIDDLEHEADS")
        detail = (await client.get(f"{THREADS}/{listed['id']}")).json()
        assert said(detail) == [("caller", "a fiddlehead?"), ("agent", "echo: a fiddlehead?")]
        if version:  # whose caller got no task
            assert answer["kind"] == "message"
            tasks = await Caller(hub.url, agent.handle, token).call("ListTasks", {})
            assert tasks["tasks"] == []


async def test_words_are_found_in_questions_answers_and_titles_of_the_caller_alone(hub: HubProcess) -> None:
    tokens = {name: hub.mint(name, "session") for name in ("sara", "otto")}
    async with online(hub, TaskPeer) as agent, reader(hub, tokens["sara"]) as client:
        for name, token in tokens.items():
            await send(hub.url, agent.handle, f"say the recipe of {name} needs tomatoes", token)
        await send(hub.url, agent.handle, "say nothing of it", tokens["sara"])
        [found] = await threads(client, q="tomato recipe")
        assert found["hit"] == {"taskId": found["hit"]["taskId"], "inAnswer": False, "text": found["hit"]["text"]}
        assert "sara needs tomatoes" in found["hit"]["text"]
        assert await threads(client, q="otto") == []
        assert await threads(client, q="tomato absent") == []
        assert [one["id"] for one in await threads(client, q="tom")] == [found["id"]]  # the beginning of a word
        assert len(await threads(client, agent=f"@{agent.handle.upper()}")) == 2
        assert await threads(client, agent="no/agent") == []
        renamed = await client.patch(f"{THREADS}/{found['id']}", json={"title": "Dinner plans"})
        assert renamed.json()["title"] == "Dinner plans"
        assert [one["id"] for one in await threads(client, q="dinner")] == [found["id"]]
        for nasty in ('"', "NEAR(", "a AND", "*", "(", "' OR 1=1 --", "whose:u1x", "\\", "-", "%"):
            assert (await client.get(THREADS, params={"q": nasty})).status_code == 200, nasty
        assert (await client.get(THREADS, params={"q": "x" * 201})).status_code == 400


async def test_archiving_takes_a_thread_out_of_the_list_until_the_next_question(hub: HubProcess) -> None:
    token = hub.mint("archie", "session")
    async with online(hub, Echo) as agent, reader(hub, token) as client:
        caller = Caller(hub.url, agent.handle, token)
        task = await caller.send("hello")
        [one] = await threads(client)
        assert (await client.patch(f"{THREADS}/{one['id']}", json={"archived": True})).json()["archived"] is True
        assert await threads(client) == []
        assert len(await threads(client, state="archived")) == len(await threads(client, state="all")) == 1
        await caller.send("hello again", contextId=task["contextId"])
        [back] = await threads(client)
        assert (back["id"], back["archived"], back["questions"]) == (one["id"], False, 2)


async def test_a_thread_is_continued_after_days(hub: HubProcess) -> None:
    token = hub.mint("dora", "session")
    async with online(hub, Echo) as agent, reader(hub, token) as client:
        caller = Caller(hub.url, agent.handle, token)
        task = await caller.send("remember 7")
        [one] = await threads(client)
        aged = await asyncio.to_thread(
            in_django.call, hub.home.env, "tests.surfaces.thread_rows:age", task["id"], 60
        )
        assert aged == 1
        await caller.send("what was it?", contextId=task["contextId"])
        contexts = [prompt["contextId"] for prompt in agent.prompts]
        assert contexts[0] == contexts[1]
        [still] = await threads(client)
        assert (still["id"], still["questions"]) == (one["id"], 2)


async def test_a_deleted_thread_is_gone_but_not_while_it_is_being_answered(hub: HubProcess) -> None:
    token = hub.mint("dan", "session")
    async with online(hub, Held) as agent, reader(hub, token) as client:
        caller = Caller(hub.url, agent.handle, token)
        agent.release.set()
        task = await caller.send("first secret")
        [one] = await threads(client)
        address = f"{THREADS}/{one['id']}"
        agent.release.clear()
        await caller.begin("second secret", contextId=task["contextId"])
        refused = await client.delete(address)
        assert (refused.status_code, refused.json()["error"]) == (409, "conflict")
        agent.release.set()

        async def is_deleted() -> bool:
            return (await client.delete(address)).status_code == 204

        await eventually(is_deleted, "the thread can be deleted")
        assert (await client.get(address)).status_code == 404
        assert await threads(client, state="all", q="secret") == []
        assert (await caller.call("ListTasks", {}))["tasks"] == []


async def test_a_thread_of_another_caller_is_absent(hub: HubProcess) -> None:
    token, other = hub.mint("mine", "session"), hub.mint("theirs", "session")
    async with online(hub, Echo) as agent, reader(hub, token) as client, reader(hub, other) as stranger:
        await send(hub.url, agent.handle, "hello", token)
        [one] = await threads(client)
        absent = "00000000-0000-4000-8000-000000000000"
        for thread_id in (one["id"], absent, "x", "%00", "1"):
            address = f"{THREADS}/{thread_id}"
            answers = [
                await stranger.get(address),
                await stranger.patch(address, json={"title": "x"}),
                await stranger.delete(address),
                await stranger.get(f"{address}/export"),
            ]
            assert {(answer.status_code, answer.text) for answer in answers} == {
                (404, '{"error":"not_found","message":"no such thread"}')
            }
        assert (await client.get(f"{THREADS}/{one['id']}")).status_code == 200


async def test_wrong_changes_are_named(hub: HubProcess) -> None:
    token = hub.mint("wrong", "session")
    async with online(hub, Echo) as agent, reader(hub, token) as client:
        await send(hub.url, agent.handle, "hello", token)
        [one] = await threads(client)
        address = f"{THREADS}/{one['id']}"
        for body in (
            {"title": ""},
            {"title": "x" * 201},
            {"title": "a\nb"},
            {"title": 1.5e9 * 10**300},
            {"more": 1},
            [],
        ):
            assert (
                await client.patch(address, content=json.dumps(body), headers={"Content-Type": "application/json"})
            ).status_code == 400, body
        for query in ({"before": "x"}, {"limit": 0}, {"limit": 201}, {"before": -1}):
            assert (await client.get(address, params=query)).status_code == 400, query
        assert (await client.get(THREADS, params={"state": "gone"})).status_code == 400
        assert (await client.get(f"{address}/export", params={"form": "pdf"})).status_code == 400
        assert (await client.get(address)).json()["title"] == "hello"


async def test_an_export_has_all_texts_as_markdown_and_all_parts_as_json(hub: HubProcess) -> None:
    token = hub.mint("expo", "session")
    async with online(hub, TaskPeer) as agent, reader(hub, token) as client:
        caller = Caller(hub.url, agent.handle, token)
        task = await caller.send('say done | raw notes hello | data facts {"a": 1}')
        await caller.send("fail", contextId=task["contextId"])
        [one] = await threads(client)
        markdown = await client.get(f"{THREADS}/{one['id']}/export")
        assert markdown.headers["content-type"] == "text/markdown; charset=utf-8"
        assert markdown.headers["content-disposition"] == f'attachment; filename="thread-{one["id"]}.md"'
        for text in (f"# {one['title']}", f"## @{agent.handle}", "done", "*File: notes.txt", "*No answer:"):
            assert text in markdown.text, text
        exported = (await client.get(f"{THREADS}/{one['id']}/export", params={"form": "json"})).json()
        assert (exported["format"], exported["version"]) == ("clawbridge-thread", 1)
        assert [len(each["messages"]) >= 1 for each in exported["tasks"]] == [True, True]
        parts = [part for made in exported["tasks"][0]["artifacts"] for part in made["parts"]]
        assert {"text", "raw", "data"} <= {name for part in parts for name in part}


async def test_a_part_names_the_part_before_it(hub: HubProcess) -> None:
    token = hub.mint("paging", "session")
    async with online(hub, Echo) as agent, reader(hub, token) as client:
        caller = Caller(hub.url, agent.handle, token)
        context = ""
        for number in range(5):
            context = (await caller.send(f"number {number}", **({"contextId": context} if context else {})))[
                "contextId"
            ]
        [one] = await threads(client)
        seen, before = [], None
        while True:
            query = {"limit": 2} | ({"before": before} if before else {})
            detail = (await client.get(f"{THREADS}/{one['id']}", params=query)).json()
            seen = [text for by, text in said(detail) if by == "caller"] + seen
            before = detail["before"]
            if before is None:
                break
        assert seen == [f"number {number}" for number in range(5)]


async def test_a_hub_that_keeps_tasks_in_memory_keeps_no_threads(make_storage: MakeStorage) -> None:
    hub = HubProcess.start(make_storage("embedded"), TASK_STORE="memory")
    try:
        token = hub.mint("ann", "session")
        async with online(hub, Echo) as agent, reader(hub, token) as client:
            await send(hub.url, agent.handle, "hello", token)
            assert await threads(client, state="all") == []
    finally:
        hub.stop()
