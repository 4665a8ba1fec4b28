"""Sends that may be repeated: `Idempotency-Key`, identical messages, and what is neither."""

import asyncio

import httpx
import pytest

from lab.agents import Echo, Held, TaskPeer, gone, online
from lab.callers import bearer, envelope, rpc_path, web
from lab.hub_process import HubProcess
from tests.v1.caller import Caller, message, reply_of, texts


async def test_a_key_gets_the_same_answer_again_and_asks_once(hub: HubProcess, alice: str) -> None:
    async with online(hub, Echo) as agent:
        asked = {"message": message("hi")}
        callers = [Caller(url, agent.handle, alice) for url in (hub.urls[0], hub.urls[-1], hub.urls[0])]
        tasks = [(await one.call("SendMessage", asked, Idempotency_Key="k-1"))["task"] for one in callers]
        assert tasks[0] == tasks[1] == tasks[2]
        assert len(agent.prompts) == 1
        async with callers[1].open("SendStreamingMessage", asked, Idempotency_Key="k-1") as events:
            (shown,) = [event async for event in events]
        assert shown.content == tasks[0]


async def test_sends_with_one_key_at_once_are_one_ask(hub: HubProcess, alice: str) -> None:
    async with online(hub, Held) as agent:
        asked = {"message": message("hi")}
        callers = [Caller(url, agent.handle, alice) for url in (hub.urls[0], hub.urls[-1]) * 2]
        sending = asyncio.gather(*(one.call("SendMessage", asked, Idempotency_Key="k-2") for one in callers))
        await agent.heard("prompt")
        agent.release.set()
        tasks = [one["task"] for one in await sending]
        assert len(agent.prompts) == 1
    assert {one["id"] for one in tasks} == {tasks[0]["id"]}
    assert {reply_of(one) for one in tasks} == {"echo: hi"}


async def test_a_key_belongs_to_one_message_of_one_caller_to_one_agent(
    hub: HubProcess, alice: str, bob: str
) -> None:
    async with online(hub, Echo) as agent, online(hub, Echo) as another:
        mine, theirs = Caller(hub.url, agent.handle, alice), Caller(hub.url, agent.handle, bob)
        first = (await mine.call("SendMessage", {"message": message("hi")}, Idempotency_Key="k-3"))["task"]
        error = await mine.refusal("SendMessage", {"message": message("other")}, Idempotency_Key="k-3")
        assert error["code"] == -32016
        ids = {first["id"]}
        for caller in (theirs, Caller(hub.url, another.handle, alice)):
            task = (await caller.call("SendMessage", {"message": message("hi")}, Idempotency_Key="k-3"))["task"]
            ids.add(task["id"])
        assert len(ids) == 3
        assert len(agent.prompts) == 2


async def test_refused_sends_with_one_key_at_once_are_each_told(hub: HubProcess, alice: str) -> None:
    """The key is taken and let go of between one's look and another's insert."""
    async with online(hub, Echo) as agent:
        pass
    headers = bearer(alice) | {"A2A-Version": "1.0", "Idempotency-Key": "k-5"}
    body = envelope("SendMessage", {"message": message("hi")})

    async def repeat(client: httpx.AsyncClient) -> set[int]:
        sends = [await client.post(rpc_path(agent.handle), json=body, headers=headers) for _ in range(15)]
        return {one.status_code for one in sends}

    async with web(hub.urls[0]) as here, web(hub.urls[-1]) as there:
        for seen in await asyncio.gather(*(repeat(client) for client in [here, there] * 6)):
            assert seen <= {200, 503}


async def test_sends_at_once_that_are_refused_are_all_told_so(hub: HubProcess, alice: str) -> None:
    """Those that waited for the first of them may be told to ask again: nothing was sent, and the key is free."""
    async with online(hub, Echo) as agent:
        callers = [Caller(url, agent.handle, alice) for url in (hub.urls[0], hub.urls[-1]) * 8]
        asked = {"message": message("hi")}
        await agent.leave()
        await gone(hub, agent)
        sending = (one.post("SendMessage", asked, Idempotency_Key="k-6") for one in callers)
        answers = [response.json() for response in await asyncio.gather(*sending)]
        refusals = [one["result"]["task"] for one in answers if "result" in one]
        assert {texts(one["status"]["message"]["parts"]) for one in refusals} == {"agent channel offline"}
        assert {one["error"]["code"] for one in answers if "error" in one} <= {-32013}
        await agent.connect()
        assert reply_of((await callers[0].call("SendMessage", asked, Idempotency_Key="k-6"))["task"]) == "echo: hi"


async def test_a_key_makes_an_answer_to_a_task_repeatable(hub: HubProcess, alice: str) -> None:
    async with online(hub, TaskPeer) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        task = await caller.send("ask which?")
        answer = {"message": message("red", taskId=task["id"])}
        first = (await caller.call("SendMessage", answer, Idempotency_Key="k-5"))["task"]
        again = (await caller.call("SendMessage", answer, Idempotency_Key="k-5"))["task"]
        assert len(agent.prompts) == 2
    assert first == again


async def test_a_key_that_is_none_is_refused(embedded_hub: HubProcess) -> None:
    async with online(embedded_hub, Echo) as agent:
        caller = Caller(embedded_hub.url, agent.handle, embedded_hub.mint("alice", "session"))
        error = await caller.refusal("SendMessage", {"message": message("hi")}, Idempotency_Key="x" * 256)
        assert error["code"] == -32602
        assert agent.prompts == []


async def test_an_identical_message_joins_while_it_is_answered_and_asks_anew_later(
    hub: HubProcess, alice: str
) -> None:
    async with online(hub, Held) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        asked = {"message": message("hi")}
        sending = asyncio.create_task(caller.call("SendMessage", asked))
        await agent.heard("prompt")
        at_once = asked | {"configuration": {"returnImmediately": True}}
        shown = [(await caller.call("SendMessage", at_once))["task"] for _ in range(2)]
        async with caller.open("SendStreamingMessage", asked) as events:
            seen = [await anext(events)]
            agent.release.set()
            seen += [event async for event in events]
        task = (await sending)["task"]
        assert len(agent.prompts) == 1
        assert {task["id"], *(one["id"] for one in shown)} == {seen[0].content["id"]}
        assert seen[-1].state == "COMPLETED"
        later = (await caller.call("SendMessage", asked))["task"]
        assert later["id"] != task["id"]
        other = (await caller.call("SendMessage", {"message": asked["message"] | {"parts": [{"text": "ho"}]}}))[
            "task"
        ]
        assert other["id"] != later["id"]
        assert len(agent.prompts) == 3


async def test_other_metadata_or_output_modes_make_another_send(hub: HubProcess, alice: str) -> None:
    async with online(hub, Held) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        asked = {"message": message("hi")}
        others = [
            asked | {"metadata": {"n": 1}},
            asked | {"metadata": {"n": 2}},
            asked | {"configuration": {"acceptedOutputModes": ["text/plain"]}},
        ]
        sending = asyncio.gather(*(caller.call("SendMessage", one) for one in (asked, *others)))
        await agent.heard("prompt", count=4)
        agent.release.set()
        assert len({one["task"]["id"] for one in await sending}) == 4
        await caller.call("SendMessage", asked, Idempotency_Key="k-8")
        for other in others:
            assert (await caller.refusal("SendMessage", other, Idempotency_Key="k-8"))["code"] == -32016


@pytest.mark.parametrize("headers", [{}, {"Idempotency_Key": "k-7"}], ids=["identical", "by its key"])
async def test_a_stream_that_is_sent_again_closes_when_the_agent_asks(
    hub: HubProcess, alice: str, headers: dict[str, str]
) -> None:
    async with online(hub, TaskPeer) as agent:
        asked = {"message": message("hold | ask which?")}
        first, second = (Caller(url, agent.handle, alice) for url in (hub.urls[0], hub.urls[-1]))
        async with first.open("SendStreamingMessage", asked, **headers) as events:
            await anext(events)
            await agent.heard("prompt")
            async with second.open("SendStreamingMessage", asked, **headers) as again, asyncio.timeout(30):
                seen = [await anext(again)]
                agent.release.set()
                seen += [event async for event in again]
        assert len(agent.prompts) == 1
    assert seen[-1].state == "INPUT_REQUIRED"
