"""Questions that wait while an agent is at work for others; on the grown hub they wait in another process."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
import pytest

from lab.agents import Held, online
from lab.callers import Json
from lab.hub_process import HubProcess
from lab.waiting import eventually, on_hub
from tests.channel.agents import eventually_queued
from tests.v1.caller import Caller, message, reply_of, texts, told

BUSY = "agent is processing a turn for another caller"


@asynccontextmanager
async def held(hub: HubProcess, alice: str, **queueing: int) -> AsyncIterator[tuple[Held, asyncio.Task[Json]]]:
    """An agent that is at work for alice, and her question."""
    async with online(hub, Held, agent={"queueing": {"max": 3, **queueing}}) as agent:
        asking = asyncio.create_task(Caller(hub.url, agent.handle, alice).send("first"))
        await agent.heard("prompt")
        yield agent, asking
        agent.release.set()
        await asyncio.wait({asking})


def at_the_last(hub: HubProcess, agent: Held, token: str) -> Caller:
    return Caller(hub.urls[-1], agent.handle, token)


def prompts(agent: Held) -> list[Any]:
    return [prompt["text"] for prompt in agent.prompts]


async def waiting(caller: Caller, text: str) -> Json:
    """A question that waits, of a caller who does not."""
    task = await caller.begin(text)
    assert task["status"]["state"] == "TASK_STATE_SUBMITTED"
    return task


async def state_of(caller: Caller, task: Json) -> str:
    return str((await caller.get(task["id"]))["status"]["state"]).removeprefix("TASK_STATE_")


async def ended(caller: Caller, task: Json, state: str) -> None:
    async def is_so() -> bool:
        return await state_of(caller, task) == state

    await eventually(is_so, f"{task['id']} is {state}")


async def test_questions_of_others_wait_and_are_answered_in_their_order(
    hub: HubProcess, alice: str, bob: str
) -> None:
    async with held(hub, alice) as (agent, asking):
        caller = at_the_last(hub, agent, bob)
        second = await waiting(caller, "second")
        third = asyncio.create_task(Caller(hub.url, agent.handle, hub.mint("carol", "session")).send("third"))
        await eventually_queued(hub, agent, 2)
        assert await state_of(caller, second) == await state_of(Caller(hub.url, agent.handle, bob), second)
        assert (await state_of(caller, second), third.done(), prompts(agent)) == ("SUBMITTED", False, ["first"])
        agent.release.set()
        assert [reply_of(await one) for one in (asking, third)] == ["echo: first", "echo: third"]
        await ended(caller, second, "COMPLETED")
        assert prompts(agent) == ["first", "second", "third"]


async def test_a_stream_that_waits_is_submitted_until_the_agent_is_free(
    hub: HubProcess, alice: str, bob: str
) -> None:
    async with held(hub, alice) as (agent, _):
        streaming = asyncio.create_task(at_the_last(hub, agent, bob).stream("second"))
        await eventually_queued(hub, agent, 1)
        assert (streaming.done(), prompts(agent)) == (False, ["first"])
        agent.release.set()
        events = told(await streaming)
        assert events[0] in ("SUBMITTED", "WORKING")
        assert events[-1] == "COMPLETED"


async def test_who_waits_too_long_is_refused_as_if_at_once(hub: HubProcess, alice: str, bob: str) -> None:
    async with held(hub, alice, waitS=1) as (agent, _):
        caller = at_the_last(hub, agent, bob)
        began = time.monotonic()
        task = await caller.send("second")
        assert 0.9 <= time.monotonic() - began < 20  # else it would wait for alice
        assert (task["status"]["state"], texts(task["status"]["message"]["parts"])) == ("TASK_STATE_FAILED", BUSY)
        assert await caller.get(task["id"]) == task
        events = await caller.stream("third")
        assert told(events) == ["SUBMITTED", "FAILED"]
    assert prompts(agent) == ["first"]


async def test_a_question_that_is_canceled_gives_up_its_place(hub: HubProcess, alice: str, bob: str) -> None:
    async with held(hub, alice, max=1) as (agent, _):
        caller = Caller(hub.url, agent.handle, bob)
        second = await waiting(at_the_last(hub, agent, bob), "second")
        refused = await caller.send("too many")
        assert texts(refused["status"]["message"]["parts"]) == BUSY
        canceled = await caller.call("CancelTask", {"id": second["id"]})
        assert canceled["status"]["state"] == "TASK_STATE_CANCELED"
        third = await waiting(caller, "third")
        agent.release.set()
        await ended(caller, third, "COMPLETED")
        assert await state_of(caller, second) == "CANCELED"
    assert prompts(agent) == ["first", "third"]


@pytest.mark.parametrize("streams", [False, True])
async def test_a_caller_who_leaves_gives_up_their_place(
    hub: HubProcess, alice: str, bob: str, streams: bool
) -> None:
    async with held(hub, alice, max=1) as (agent, _):
        caller = at_the_last(hub, agent, bob)
        if streams:
            async with caller.open("SendStreamingMessage", {"message": message("second")}) as events:
                await anext(events)
        else:
            with suppress(httpx.ReadTimeout):
                async with httpx.AsyncClient(
                    base_url=hub.urls[-1], timeout=on_hub(3, at_least_s=0.75) * 2
                ) as client:
                    body = {"jsonrpc": "2.0", "id": 7, "method": "SendMessage"}
                    body |= {"params": {"message": message("second")}}
                    async with client.stream("POST", caller.path, json=body, headers=caller.headers) as answer:
                        await anext(answer.aiter_raw())

        async def has_room() -> bool:
            return (await caller.begin("third"))["status"]["state"] == "TASK_STATE_SUBMITTED"

        await eventually(has_room, "there is a place again", every_s=0.3)
        agent.release.set()
        await agent.heard("prompt", count=2)
    assert prompts(agent) == ["first", "third"]


async def test_a_key_that_is_repeated_while_its_question_waits_asks_once(
    hub: HubProcess, alice: str, bob: str
) -> None:
    async with held(hub, alice) as (agent, _):
        params = {"message": message("second")}
        callers = [Caller(url, agent.handle, bob) for url in (hub.url, hub.urls[-1])]
        first = asyncio.create_task(callers[0].call("SendMessage", params, Idempotency_Key="k"))
        await eventually_queued(hub, agent, 1)
        repeated = asyncio.create_task(callers[1].call("SendMessage", params, Idempotency_Key="k"))
        agent.release.set()  # whether the key comes before the answer or after it
        assert (await first)["task"]["id"] == (await repeated)["task"]["id"]
    assert prompts(agent) == ["first", "second"]
