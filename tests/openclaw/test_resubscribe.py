"""Behaviours 46 to 48, 60 and 61: following a task."""

import asyncio

import pytest

from lab.agents import Chunker, TaskPeer, online
from lab.callers import Json
from lab.hub_process import HubProcess
from lab.waiting import eventually
from tests.openclaw.caller import TASK_GENERATING, Caller, artifacts_of, caller_of, message, state_of, texts, told

FIRST = "assistant-output-0001"


async def said(caller: Caller, task_id: str, content: str) -> Json:
    """The task, once that much of its reply is in it."""

    async def look() -> Json | None:
        task = await caller.get(task_id)
        return task if artifacts_of(task).get(FIRST) == content else None

    return await eventually(look, f"{content!r} in {task_id}")


async def test_46_a_snapshot_comes_first_and_then_what_happens_later(hub: HubProcess, alice: str) -> None:
    async with caller_of(hub, TaskPeer) as (agent, caller):
        task = await caller.begin("say one | hold | say two")
        snapshot = await said(caller, task["id"], "one")
        other = Caller(hub.urls[-1], agent.handle, alice)
        async with other.open("tasks/resubscribe", {"id": task["id"]}) as events:
            first = await anext(events)
            agent.release.set()
            later = [event async for event in events]
    assert first | {"history": []} == snapshot
    assert [texts(one["parts"]) for one in first["history"]] == ["say one | hold | say two"]
    assert told(later) == [f"artifact-update {FIRST}"] * 2 + ["status-update completed"]
    assert texts(later[0]["artifact"]["parts"]) == "two"
    assert later[-1]["final"] is True
    assert "message" not in later[-1]["status"]


async def test_46_nothing_is_replayed_to_one_who_names_a_frame(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with caller_of(hub, TaskPeer) as (agent, caller):
        task = await caller.send("note hm | say done")
        named = {"Last-Event-ID": f"{task['id']}.1"}
        again = await caller.streamed("tasks/resubscribe", {"id": task["id"]}, **named)
        asked_anew = await caller.streamed("message/stream", {"message": message("hello")}, **named)
        assert len(agent.prompts) == 2
    assert again == [task]
    assert [one["kind"] for one in asked_anew] == ["message"]


async def test_47_a_task_that_rests_is_one_event(embedded_hub: HubProcess, subtests: pytest.Subtests) -> None:
    hub, alice, bob = embedded_hub, embedded_hub.mint("alice", "session"), embedded_hub.mint("bob", "session")
    async with online(hub, TaskPeer) as agent:
        caller, other = Caller(hub.url, agent.handle, alice), Caller(hub.url, agent.handle, bob)
        for steps, state in {
            "note hm | say done": "completed",
            "fail no": "failed",
            "reject no": "rejected",
            "ask which?": "input-required",
            "login first": "auth-required",
        }.items():
            task = await caller.send(steps)
            with subtests.test(steps=steps):
                assert await caller.streamed("tasks/resubscribe", {"id": task["id"]}) == [task]
                assert state_of(task) == state
        for task_id in (task["id"], "task-unknown"):  # another caller's task is as absent as none
            assert (await other.streamed_error("tasks/resubscribe", {"id": task_id}))["code"] == -32001


async def test_48_nothing_is_lost_between_the_snapshot_and_the_tail(hub: HubProcess) -> None:
    pieces = [f"{number} " for number in range(300)]
    async with caller_of(hub, Chunker, pieces=pieces, agent=TASK_GENERATING) as (_, caller):
        task = await caller.begin("count")

        async def follow() -> str:
            first, *later = await caller.streamed("tasks/resubscribe", {"id": task["id"]})
            shown = artifacts_of(first).get(FIRST, "")
            for one in later:
                if one["kind"] == "artifact-update":
                    shown = (shown if one.get("append") else "") + texts(one["artifact"]["parts"])
            return shown

        seen = await asyncio.gather(*(follow() for _ in range(12)))
    assert set(seen) == {"".join(pieces)}


async def test_61_a_stream_that_is_dropped_does_not_stop_the_turn(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with caller_of(hub, TaskPeer) as (agent, caller):
        async with caller.open("message/stream", {"message": message("note hm | hold | say done")}) as events:
            task = await anext(events)
        agent.release.set()
        ended = await caller.ended(task["id"])
    assert (state_of(ended), artifacts_of(ended)) == ("completed", {FIRST: "done"})
