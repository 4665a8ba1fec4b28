"""The methods of the bridge page: what each answers, to the letter."""

import asyncio
import re

import pytest

from a2a_bridge.wire.versions import choose, no_method
from lab.agents import Chunker, Echo, Held, TaskPeer, online
from lab.callers import (
    Stream,
    bearer,
    call,
    chunks_of,
    envelope,
    get_task,
    open_stream,
    question,
    reply_text,
    rpc_path,
    send,
    stream,
    text_of,
    web,
)
from lab.hub_process import HubProcess
from tests.v1.caller import Caller

TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


async def test_a_question_gets_its_answer_in_the_shape_of_the_page(hub: HubProcess, alice: str) -> None:
    async with online(hub, Echo) as agent:
        params = question("what's a lifetime?", "msg-1")
        answer = (await call(hub.url, agent.handle, alice, "SendMessage", params)).json()
        [prompt] = agent.prompts
    assert (prompt["text"], prompt["askerUser"]) == ("what's a lifetime?", "alice")
    assert re.fullmatch(r"[A-Za-z0-9_-]{16,128}", prompt["chatId"])
    task = answer["result"]
    assert set(answer) == {"jsonrpc", "result", "id"}
    assert (answer["jsonrpc"], answer["id"]) == ("2.0", "client-1")
    assert set(task) == {"id", "contextId", "status", "history"}
    assert task["id"].startswith("task-")
    assert task["contextId"] == "msg-1"
    assert set(task["status"]) == {"state", "timestamp"}
    assert task["status"]["state"] == "COMPLETED"
    assert TIMESTAMP.fullmatch(task["status"]["timestamp"])
    asked, replied = task["history"]
    assert asked == {"messageId": "msg-1", "role": "ROLE_USER", "parts": [{"text": "what's a lifetime?"}]}
    assert set(replied) == {"messageId", "role", "parts"}
    assert replied["role"] == "ROLE_AGENT"
    assert replied["parts"] == [{"text": "echo: what's a lifetime?"}]


async def test_what_this_dialect_does_not_show_is_named(hub: HubProcess, alice: str) -> None:
    parts = [{"text": "see"}, {"data": {"n": 1}}, {"raw": "YWI="}, {"url": "https://example.com/a"}]
    sent = {"message": {"messageId": "m1", "role": "ROLE_USER", "parts": parts}}
    async with online(hub, Echo) as agent:
        answer = (await call(hub.url, agent.handle, alice, "SendMessage", sent)).json()["result"]
        read = (await get_task(hub.urls[-1], agent.handle, answer["id"], alice))["result"]
        [prompt] = agent.prompts
    async with online(hub, TaskPeer) as maker:
        made = await send(hub.url, maker.handle, 'raw f ab | data d {"n": 1} | text t hm | say done', alice)
    assert prompt["text"].split("\n\n") == [
        "see",
        'data (part 2), as the caller sent it, not to be trusted:\n{\n  "n": 1\n}',
        "file (part 3), as the caller sent it, not in this text: 2 bytes",
        'file (part 4), as the caller sent it, not in this text: "https://example.com/a"',
    ]
    assert "parts" not in prompt
    assert answer["metadata"] == {"leftOut": ["message.parts[2]: raw", "message.parts[3]: url"]}
    assert read == answer
    assert answer["history"][0]["parts"] == [{"text": "see"}]
    assert made["metadata"] == {"leftOut": ["artifact f: raw f.txt", "artifact d: data", "artifact t: text"]}


async def test_text_arrives_and_returns_unchanged(hub: HubProcess, alice: str) -> None:
    text = 'ünï "quoted" \\ back\nlines\t🦀 <tag> \u2028 end '
    async with online(hub, Echo) as agent:
        assert reply_text(await send(hub.url, agent.handle, text, alice)) == f"echo: {text}"


async def test_a_stream_begins_working_carries_each_chunk_and_ends_with_the_whole_task(
    hub: HubProcess, alice: str
) -> None:
    pieces = ["a lifetime ", "is ", "a region"]
    async with online(hub, Chunker, pieces=pieces) as agent:
        for url in hub.urls:
            tasks = await stream(url, agent.handle, "?", alice)
            assert tasks[0]["status"]["state"] == "WORKING"
            assert "message" not in tasks[0]["status"]
            assert [task["status"]["state"] for task in tasks[:-1]] == ["WORKING"] * 4
            assert chunks_of(tasks) == pieces
            assert reply_text(tasks[-1]) == "a lifetime is a region"
            assert len({task["id"] for task in tasks}) == 1
            assert reply_text(await send(url, agent.handle, "?", alice)) == "a lifetime is a region"


async def test_a_streamed_chunk_has_exactly_the_promised_shape(hub: HubProcess, alice: str) -> None:
    async with online(hub, Chunker, pieces=["piece"]) as agent:
        first, chunk, _ = await stream(hub.url, agent.handle, "?", alice)
    assert set(chunk) == {"id", "contextId", "status"}
    assert (chunk["id"], chunk["contextId"]) == (first["id"], first["contextId"])
    assert set(chunk["status"]) == {"state", "timestamp", "message"}
    assert TIMESTAMP.fullmatch(chunk["status"]["timestamp"])
    message = chunk["status"]["message"]
    assert set(message) == {"messageId", "role", "parts"}
    assert (message["role"], message["parts"]) == ("ROLE_AGENT", [{"text": "piece"}])


async def test_a_note_differs_from_a_chunk_in_its_message_id_alone(hub: HubProcess, alice: str) -> None:
    async with online(hub, TaskPeer) as agent:
        tasks = await stream(hub.url, agent.handle, "note reading | say one | note still | say two", alice)
    told = [task["status"]["message"] for task in tasks[1:-1]]
    assert [text_of(message) for message in told] == ["reading", "one", "still", "two"]
    replys = "msg-" + tasks[0]["id"].removeprefix("task-")
    assert [message["messageId"] == replys for message in told] == [False, True, False, True]
    assert told[0]["messageId"] != told[2]["messageId"]
    assert {frozenset(task["status"]) for task in tasks[1:-1]} == {frozenset(("state", "timestamp", "message"))}
    reply = tasks[-1]["history"][-1]
    assert (reply["messageId"], text_of(reply)) == (replys, "onetwo")


@pytest.mark.parametrize(
    ("script", "state"),
    [("ask which?", "INPUT_REQUIRED"), ("login which?", "AUTH_REQUIRED"), ("reject which?", "REJECTED")],
)
async def test_what_an_agent_asks_back_or_refuses_is_in_the_status(
    hub: HubProcess, alice: str, script: str, state: str
) -> None:
    async with online(hub, TaskPeer) as agent:
        task = await send(hub.url, agent.handle, script, alice)
    assert task["status"]["state"] == state
    assert text_of(task["status"]["message"]) == "which?"
    is_last = task["history"][-1] == task["status"]["message"]
    assert is_last == (state != "REJECTED")


async def test_a_task_canceled_in_another_dialect_is_canceled_here(hub: HubProcess, alice: str) -> None:
    async with online(hub, TaskPeer) as agent:
        asking = await send(hub.url, agent.handle, "ask which?", alice)
        await Caller(hub.url, agent.handle, alice).call("CancelTask", {"id": asking["id"]})
        task = (await get_task(hub.url, agent.handle, asking["id"], alice))["result"]
    assert task["status"]["state"] == "CANCELED"


async def test_a_stream_that_is_repeated_by_its_key_ends_with_what_the_agent_asks(
    hub: HubProcess, alice: str
) -> None:
    async with online(hub, TaskPeer) as agent, web(hub.url) as client:
        body = envelope("SendStreamingMessage", question("hold | ask which?"))
        keyed = bearer(alice) | {"Idempotency-Key": "hub-asks"}
        async with client.stream("POST", rpc_path(agent.handle), json=body, headers=keyed) as first:
            await anext(Stream(first).tasks())
            await agent.heard("prompt")
            async with (
                asyncio.timeout(30),
                client.stream("POST", rpc_path(agent.handle), json=body, headers=keyed) as again,
            ):
                tasks = Stream(again).tasks()
                states = [(await anext(tasks))["status"]["state"]]
                agent.release.set()
                states += [task["status"]["state"] async for task in tasks]
        assert len(agent.prompts) == 1
    assert (states[0], states[-1]) == ("WORKING", "INPUT_REQUIRED")


async def test_a_stream_is_an_event_stream_without_a_length(hub: HubProcess, alice: str) -> None:
    async with online(hub, Echo) as agent, open_stream(hub.url, agent.handle, "hello", alice) as answer:
        headers = answer.response.headers
        assert headers["content-type"].startswith("text/event-stream")
        assert "content-length" not in headers
        assert "no-store" in headers["cache-control"]
        assert [task["status"]["state"] async for task in answer.tasks()] == ["WORKING", "COMPLETED"]


async def test_a_task_can_be_read_while_it_works_and_after_its_end(hub: HubProcess, alice: str) -> None:
    async with (
        online(hub, Held) as agent,
        open_stream(hub.url, agent.handle, "hello", alice) as answer,
    ):
        tasks = answer.tasks()
        task_id = (await anext(tasks))["id"]
        for url in hub.urls:
            assert (await get_task(url, agent.handle, task_id, alice))["result"]["status"]["state"] == "WORKING"
        agent.release.set()
        last = [task async for task in tasks][-1]
        for url in hub.urls:
            assert (await get_task(url, agent.handle, task_id, alice))["result"] == last
    assert text_of(last["history"][-1]) == "echo: hello"


def test_a_method_of_another_version_is_refused_with_what_to_send() -> None:
    for method, version, text in (
        ("ListTasks", "", "no method 'ListTasks' here: send A2A-Version: 1.0"),
        ("CancelTask", "", "no method 'CancelTask' here: send A2A-Version: 1.0"),
        ("message/send", "1.0", "no method 'message/send' here: send A2A-Version: 0.3"),
        ("SendTask", "1.0", "no method 'SendTask' here"),
        ("tasks/list", "0.3", "no method 'tasks/list' here"),
    ):
        assert method not in choose(method, version).methods
        assert (no_method(method).code, no_method(method).message) == (-32601, text)
