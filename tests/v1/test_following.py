"""Streams that break, and SubscribeToTask: who comes back sees what it missed, once, and asks nothing again."""

import asyncio

import pytest

from lab.agents import Chunker, Echo, TaskPeer, online
from lab.hub_process import HubProcess
from tests.v1.caller import Caller, Event, message, texts, told


async def test_a_subscriber_sees_the_task_and_then_what_happens(hub: HubProcess, alice: str) -> None:
    async with online(hub, TaskPeer) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        task = await caller.begin("say one | hold | say two")
        await agent.heard("prompt")
        async with caller.open("SubscribeToTask", {"id": task["id"]}) as events:
            first = await anext(events)
            agent.release.set()
            rest = [event async for event in events]
    assert first.kind == "task"
    assert first.content["status"]["state"] in ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING")
    assert rest[-1].state == "COMPLETED"
    seqs = [event.seq for event in (first, *rest)]
    assert seqs == list(range(seqs[0], seqs[0] + len(seqs)))


async def test_subscribers_see_the_same_frames_and_one_that_leaves_disturbs_no_other(
    hub: HubProcess, alice: str
) -> None:
    async with online(hub, TaskPeer) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        task = await caller.begin("hold | say a | note b | text c d")
        seen: list[list[Event]] = [[], [], []]
        ready = [asyncio.Event() for _ in seen]

        async def follow(number: int) -> None:
            async with caller.open("SubscribeToTask", {"id": task["id"]}) as events:
                async for event in events:
                    if event.state == "SUBMITTED":
                        continue
                    seen[number].append(event)
                    ready[number].set()
                    if number == 2:
                        return

        following = [asyncio.create_task(follow(number)) for number in range(3)]
        await asyncio.gather(*(one.wait() for one in ready))
        agent.release.set()
        await asyncio.gather(*following)
    first, second = ([(one.id, one.content) for one in each if one.kind != "task"] for each in seen[:2])
    shared = min(len(first), len(second))
    assert first[-shared:] == second[-shared:]
    assert shared >= 4


async def test_a_stream_that_breaks_is_taken_up_where_it_broke(hub: HubProcess, alice: str) -> None:
    async with online(hub, TaskPeer) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        asked = {"message": message("say one | say two | hold | say three | note four")}
        seen = []
        async with caller.open("SendStreamingMessage", asked) as events:
            async for event in events:
                seen.append(event)
                if event.kind == "artifactUpdate" and texts(event.content["artifact"]["parts"]) == "one":
                    break
        agent.release.set()
        async with caller.open("SendStreamingMessage", asked, Last_Event_ID=seen[-1].id) as events:
            rest = [event async for event in events]
        assert len(agent.prompts) == 1
    task_id = seen[0].content["id"]
    assert [event.id for event in (*seen, *rest)] == [f"{task_id}.{seq}" for seq in range(len(seen) + len(rest))]
    pieces = [texts(one.content["artifact"]["parts"]) for one in (*seen, *rest) if one.kind == "artifactUpdate"]
    assert pieces == ["one", "two", "three", "onetwothree"]
    assert rest[-1].state == "COMPLETED"


async def test_a_send_that_is_taken_up_closes_when_the_agent_asks_and_a_subscription_stays(
    hub: HubProcess, alice: str
) -> None:
    async with online(hub, TaskPeer) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        asked = {"message": message("say one | hold | ask which?")}
        async with caller.open("SendStreamingMessage", asked) as events:
            seen = await anext(events)
        task_id = seen.content["id"]
        async with (
            asyncio.timeout(30),
            caller.open("SubscribeToTask", {"id": task_id}, Last_Event_ID=seen.id) as follows,
        ):
            async with caller.open("SendStreamingMessage", asked, Last_Event_ID=seen.id) as sends:
                agent.release.set()
                sent = [event async for event in sends]
            await caller.send("red", taskId=task_id)
            followed = [event async for event in follows]
    assert sent[-1].state == "INPUT_REQUIRED"
    assert followed[-1].state == "COMPLETED"


async def test_an_ended_task_is_replayed_but_not_followed(hub: HubProcess, alice: str) -> None:
    async with online(hub, Chunker, pieces=["a", "b"]) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        whole = await caller.stream("?")
        task_id = whole[0].content["id"]
        assert (await caller.refusal("SubscribeToTask", {"id": task_id}))["code"] == -32004
        for seq in (0, 3, 4):
            async with caller.open("SubscribeToTask", {"id": task_id}, Last_Event_ID=f"{task_id}.{seq}") as events:
                again = [event async for event in events]
            assert [(one.id, one.content) for one in again] == [(one.id, one.content) for one in whole[seq + 1 :]]


async def test_only_the_callers_own_task_is_replayed_and_nothing_is_asked(
    hub: HubProcess, alice: str, bob: str, subtests: pytest.Subtests
) -> None:
    async with online(hub, Echo) as agent:
        mine, theirs = Caller(hub.url, agent.handle, alice), Caller(hub.url, agent.handle, bob)
        task_id = (await mine.stream("hi"))[0].content["id"]
        asked = len(agent.prompts)
        for seen in (f"{task_id}.1", "task-unknown.1", "rubbish", f"{task_id}.x", f"{task_id}.99999999999"):
            error = await theirs.refusal("SendStreamingMessage", {"message": message("hi")}, Last_Event_ID=seen)
            with subtests.test(seen=seen):
                assert error["code"] == -32001
        assert len(agent.prompts) == asked


async def test_two_callers_streams_do_not_mix(hub: HubProcess, alice: str) -> None:
    async with online(hub, Chunker, pieces=["x", "y"], cwd="/work/mix") as agent:
        caller = Caller(hub.url, agent.handle, alice)
        streams = await asyncio.gather(*(caller.stream(f"q{number}") for number in range(4)))
    assert len({stream[0].content["id"] for stream in streams}) == 4
    assert {tuple(told(stream)) for stream in streams} == {tuple(told(streams[0]))}
