"""A message that is sent again while it is answered, to another process: one task, one question, one answer."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

import pytest

from lab.agents import Held, TaskPeer, online
from lab.callers import Json, Stream, bearer, call, envelope, question, reply_text, rpc_path, web
from lab.hub_process import HubProcess
from lab.waiting import eventually
from tests.processes.conftest import callers
from tests.v1.caller import Caller, message, reply_of

pytestmark = [pytest.mark.slow, pytest.mark.distributed]
ROUNDS = 8
Answer = TypeVar("Answer")


async def joining(caller: Caller, sending: Coroutine[None, None, Answer]) -> "asyncio.Task[Answer]":
    """Send again, and return once it has joined: until then the task of a send that waits is not shown."""

    async def shown() -> Json | None:
        tasks: list[Json] = (await caller.call("ListTasks", {}))["tasks"]
        return tasks[0] if tasks else None

    assert await shown() is None
    sent = asyncio.create_task(sending)
    await eventually(shown, "the task that was joined")
    return sent


@pytest.mark.parametrize("at", [0, 1])
async def test_a_send_joins_a_send_on_the_other_process(two_process_hub: HubProcess, at: int) -> None:
    async with online(two_process_hub, Held, at=at) as agent:
        here, there = callers(two_process_hub, agent.handle)
        asked = {"message": message("hi")}
        first = asyncio.create_task(here.call("SendMessage", asked))
        await agent.heard("prompt")
        second = await joining(here, there.call("SendMessage", asked))
        begun = (await there.call("SendMessage", asked | {"configuration": {"returnImmediately": True}}))["task"]
        async with there.open("SendStreamingMessage", asked) as events:
            seen = [await anext(events)]
            agent.release.set()
            seen += [event async for event in events]
        tasks = [(await one)["task"] for one in (first, second)]
        assert tasks[0] == tasks[1]
        assert reply_of(tasks[0]) == "echo: hi"
        assert {begun["id"], seen[0].content["id"], tasks[0]["id"]} == {tasks[0]["id"]}
        assert seen[-1].state == "COMPLETED"
        assert len(agent.prompts) == 1
        later = (await there.call("SendMessage", asked))["task"]
        assert later["id"] != tasks[0]["id"]
        assert len(agent.prompts) == 2


async def test_the_hubs_own_dialect_joins_too(two_process_hub: HubProcess) -> None:
    alice = two_process_hub.mint("alice", "session")
    async with online(two_process_hub, Held, at=1) as agent:
        params = question("hi", "hub-join")
        sends = [call(url, agent.handle, alice, "SendMessage", params) for url in two_process_hub.urls]
        first = asyncio.create_task(sends[0])
        await agent.heard("prompt")
        second = await joining(callers(two_process_hub, agent.handle)[0], sends[1])
        body, path = envelope("SendStreamingMessage", params), rpc_path(agent.handle)
        async with (
            web(two_process_hub.urls[1]) as client,
            client.stream("POST", path, json=body, headers=bearer(alice)) as response,
        ):
            events = Stream(response).tasks()
            told = [await anext(events)]
            agent.release.set()
            told += [task async for task in events]
        assert told[-1]["status"]["state"] == "COMPLETED"
        tasks = [(await one).json()["result"] for one in (first, second)]
        assert [reply_text(one) for one in tasks] == ["echo: hi"] * 2
        assert tasks[0]["id"] == tasks[1]["id"]
        assert len(agent.prompts) == 1


async def test_an_older_client_that_takes_a_message_gets_it(two_process_hub: HubProcess) -> None:
    alice = two_process_hub.mint("alice", "session")
    params = {
        "message": {
            "messageId": "old-join",
            "role": "user",
            "kind": "message",
            "parts": [{"kind": "text", "text": "hi"}],
        }
    }

    async def send(url: str) -> Json:
        async with web(url) as client:
            body = envelope("message/send", params)
            answer = await client.post(rpc_path(agent.handle), json=body, headers=bearer(alice))
            result: Json = answer.json()["result"]
            return result

    async with online(two_process_hub, Held, at=0) as agent:
        first = asyncio.create_task(send(two_process_hub.urls[0]))
        await agent.heard("prompt")
        second = await joining(callers(two_process_hub, agent.handle)[0], send(two_process_hub.urls[1]))
        agent.release.set()
        answers = [await first, await second]
        assert [one["kind"] for one in answers] == ["message", "message"]
        assert answers[0]["parts"] == answers[1]["parts"]
        assert len(agent.prompts) == 1


async def test_of_identical_messages_at_one_moment_one_is_asked(two_process_hub: HubProcess) -> None:
    """The agent answers when all messages are one task: a message after an answer asks anew."""
    async with online(two_process_hub, Held, agent={"dailyBudgetQueries": ROUNDS}) as agent:
        both = callers(two_process_hub, agent.handle) * 2
        for number in range(ROUNDS):
            agent.release.clear()
            asked = {"message": message(f"round {number}"), "configuration": {"returnImmediately": True}}
            begun = await asyncio.gather(*(one.call("SendMessage", asked) for one in both))
            (task_id,) = {one["task"]["id"] for one in begun}
            async with both[number % 2].open("SubscribeToTask", {"id": task_id}) as events:
                agent.release.set()
                last = [event async for event in events][-1]
            assert last.state == "COMPLETED"
            assert reply_of(await both[1].get(task_id)) == f"echo: round {number}"
        assert len(agent.prompts) == ROUNDS


async def test_another_callers_message_of_the_same_id_joins_nothing(two_process_hub: HubProcess) -> None:
    async with online(two_process_hub, Held, at=0) as agent:
        asked = {"message": message("hi")}
        alice = Caller(two_process_hub.urls[0], agent.handle, two_process_hub.mint("alice", "session"))
        bob = Caller(two_process_hub.urls[1], agent.handle, two_process_hub.mint("bob", "session"))
        first = asyncio.create_task(alice.call("SendMessage", asked))
        await agent.heard("prompt")
        refused = (await bob.call("SendMessage", asked))["task"]
        assert refused["status"]["state"] == "TASK_STATE_FAILED"
        agent.release.set()
        assert (await first)["task"]["id"] != refused["id"]


async def test_a_question_back_is_told_to_both(two_process_hub: HubProcess) -> None:
    async with online(two_process_hub, TaskPeer, at=0) as agent:
        here, there = callers(two_process_hub, agent.handle)
        asked = {"message": message("hold | ask which one?")}
        first = asyncio.create_task(here.call("SendMessage", asked))
        await agent.heard("prompt")
        second = await joining(here, there.call("SendMessage", asked))
        agent.release.set()
        tasks = [(await one)["task"] for one in (first, second)]
        assert tasks[0] == tasks[1]
        assert tasks[0]["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        answered = await there.send("the red one", taskId=tasks[0]["id"])
        assert reply_of(answered) == "you said: the red one"


async def test_a_stream_that_broke_is_joined_on_the_other_process(two_process_hub: HubProcess) -> None:
    async with online(two_process_hub, Held, at=0) as agent:
        here, there = callers(two_process_hub, agent.handle)
        asked = {"message": message("again")}
        async with here.open("SendStreamingMessage", asked) as events:
            begun = await anext(events)
        async with there.open("SendStreamingMessage", asked) as events:
            seen = [await anext(events)]
            agent.release.set()
            seen += [event async for event in events]
        assert {begun.content["id"], seen[0].content["id"]} == {begun.content["id"]}
        assert seen[-1].state == "COMPLETED"
        assert len(agent.prompts) == 1
