"""kill -9 of a hub whose tasks are in the database: they are there afterwards, as far as any caller was told."""

import asyncio

import httpx
import pytest

from lab.agents import TaskPeer, online
from lab.callers import web
from lab.hub_process import StartHub
from lab.hub_storage import MakeStorage
from lab.waiting import eventually
from tests.v1.caller import Caller, Event, message, texts

pytestmark = pytest.mark.slow

WITHIN_S = 60
PIECES = [f"piece {number}" for number in range(40)]


async def until_failed(caller: Caller, task_id: str) -> None:
    async def ended() -> bool:
        return bool((await caller.get(task_id))["status"]["state"] == "TASK_STATE_FAILED")

    await eventually(ended, "the task has failed", within_s=WITHIN_S, every_s=0.5)


async def test_a_task_whose_hub_died_is_failed_with_what_was_told_of_it(
    make_storage: MakeStorage, start_hub: StartHub
) -> None:
    """The stream is cut anywhere: what came before is there again, each frame once, and nothing is made up."""
    hub = start_hub(make_storage("embedded"), TASK_STORE="journal")
    async with online(hub, TaskPeer) as agent:
        caller = Caller(hub.url, agent.handle, hub.mint("alice", "session"))
        kept = await caller.send("hello")
        question = " | ".join(f"say {piece}" for piece in PIECES) + " | hold"
        seen: list[Event] = []
        try:
            async with caller.open("SendStreamingMessage", {"message": message(question)}) as events:
                async for event in events:
                    seen.append(event)
                    if len(seen) == 20:
                        hub.kill9(0)
        except httpx.TransportError:
            pass
        assert len(seen) >= 20
        await agent.closed.wait()
        await asyncio.to_thread(hub.serve, 0)
        task_id = seen[0].content["id"]
        await until_failed(caller, task_id)
        task = await caller.get(task_id)
        async with caller.open("SubscribeToTask", {"id": task_id}, Last_Event_ID=seen[0].id) as again:
            replayed = [event async for event in again]
        assert await caller.get(kept["id"]) == kept

    assert [event.id for event in replayed] == [f"{task_id}.{seq}" for seq in range(1, len(replayed) + 1)]
    before = len(seen) - 1
    assert [(one.id, one.content) for one in replayed[:before]] == [(one.id, one.content) for one in seen[1:]]
    assert replayed[-1].content["status"] == task["status"]
    assert [one.state for one in replayed[1:]] == [""] * (len(replayed) - 2) + ["FAILED"]
    pieces = [texts(one.content["artifact"]["parts"]) for one in replayed if one.kind == "artifactUpdate"]
    assert pieces == PIECES[: len(pieces)]
    assert texts(task["artifacts"][0]["parts"]) == "".join(pieces)
    assert len(agent.prompts) == 2


async def test_an_ask_that_waited_for_its_agent_has_failed_and_what_was_in_memory_is_gone(
    make_storage: MakeStorage, start_hub: StartHub
) -> None:
    hub = start_hub(make_storage("embedded"), TASK_STORE="journal")
    alice, bob = hub.mint("alice", "session"), hub.mint("bob", "session")
    async with (
        online(hub, TaskPeer, agent={"queueing": {"max": 2}}) as agent,
        online(hub, TaskPeer, agent={"taskStore": "memory"}) as forgetful,
    ):
        elsewhere = Caller(hub.url, forgetful.handle, alice)
        forgotten = await elsewhere.send("hello")
        await Caller(hub.url, agent.handle, alice).begin("hold")
        await agent.heard("prompt")
        caller = Caller(hub.url, agent.handle, bob)
        waits = await caller.begin("never asked")
        async with web(hub.url) as client:
            metrics = (await client.get("/metrics")).text
        assert "\nclawbridge_queued_asks 1.0\n" in metrics
        assert await elsewhere.get(forgotten["id"]) == forgotten
        hub.kill9(0)
        await agent.closed.wait()
        await asyncio.to_thread(hub.serve, 0)
        await until_failed(caller, waits["id"])
        assert (await elsewhere.refusal("GetTask", {"id": forgotten["id"]}))["code"] == -32001
    assert [prompt["text"] for prompt in agent.prompts] == ["hold"]
