"""Behaviours 40 to 45 and 62: further messages, reading, ending."""

import asyncio
import time
from typing import Any

import pytest

from lab.agents import Held, TaskPeer, online
from lab.hub_process import HubProcess, StartHub
from lab.hub_storage import MakeStorage
from tests.openclaw.caller import Caller, artifacts_of, caller_of, message, state_of, text, texts, told, words_of
from tests.openclaw.test_boundary import FILE

GIVES_UP_AFTER_S = 5


async def test_40_a_follow_up_must_fit_its_task(hub: HubProcess, alice: str, bob: str) -> None:
    async with online(hub, TaskPeer) as agent:
        caller, other = Caller(hub.url, agent.handle, alice), Caller(hub.url, agent.handle, bob)
        asking = await caller.send("ask which?")
        ended = await caller.send("note hm | say done")
        before = await caller.get(ended["id"], historyLength=10)
        refusals = [
            (await who.refusal("message/send", {"message": message("this", **named)}))["code"]
            for who, named in (
                (caller, {"taskId": "task-unknown"}),
                (other, {"taskId": asking["id"]}),
                (caller, {"taskId": asking["id"], "contextId": "elsewhere"}),
                (caller, {"taskId": ended["id"]}),
            )
        ]
        assert refusals == [-32001, -32001, -32600, -32600]
        asked = await caller.get(asking["id"], historyLength=10)
        sent = {"message": message([text("this"), FILE], taskId=asking["id"])}
        refusal = await caller.refusal("message/send", sent)  # a file changes nothing
        assert (refusal["code"], "message.parts[1]" in refusal["message"]) == (-32602, True)
        assert await caller.get(asking["id"], historyLength=10) == asked
        streamed = await caller.streamed_error("message/stream", {"message": message("x", taskId=ended["id"])})
        assert streamed["code"] == -32600
        assert await caller.get(ended["id"], historyLength=10) == before
        assert len(agent.prompts) == 2
        at_work = await caller.begin("hold | say done")
        await agent.heard("prompt", count=3)
        refused = await caller.refusal("message/send", {"message": message("and?", taskId=at_work["id"])})
        assert refused["code"] == -32004
        agent.release.set()


async def test_42_a_message_sent_again_is_in_the_history_once(hub: HubProcess) -> None:
    async with caller_of(hub, TaskPeer) as (_, caller):
        asking = await caller.send("ask which?", messageId="m-1")
        again = await caller.send("ask which, please?", messageId="m-2", taskId=asking["id"])
        ended = await caller.send("ask which, please?", messageId="m-2", taskId=asking["id"])
    assert [state_of(one) for one in (asking, again, ended)] == ["input-required"] * 3
    ids = [one["messageId"] for one in ended["history"]]
    assert [one for one in ids if one.startswith("m-")] == ["m-1", "m-2"]


async def test_a_follow_up_stream_begins_with_all_that_was_said(hub: HubProcess) -> None:
    async with caller_of(hub, TaskPeer) as (_, caller):
        asking = await caller.send("say so far | ask which?")
        events = await caller.stream("this", taskId=asking["id"], referenceTaskIds=["task-unknown"])
    task, *_, last = events
    assert told(events)[:3] == ["task submitted", "status-update submitted", "status-update working"]
    assert (task["id"], task["contextId"]) == (asking["id"], asking["contextId"])
    assert [texts(one["parts"]) for one in task["history"]] == ["say so far | ask which?", "which?", "this"]
    assert artifacts_of(task) == {"assistant-output-0001": "so far"}
    assert (state_of(last), last["final"]) == ("completed", True)


async def test_43_a_history_length_gives_the_last_of_it(hub: HubProcess) -> None:
    async with caller_of(hub, TaskPeer) as (_, caller):
        asking = await caller.send("ask one?")
        for answer in ("ask two?", "reply done"):
            await caller.send(answer, taskId=asking["id"])
        said = ["ask one?", "one?", "ask two?", "two?", "reply done"]
        wanted: list[tuple[Any, list[str]]] = [(1, said[-1:]), (2, said[-2:]), (5, said), (100, said), (0, [])]
        unusable = (None, -1, "2", "x", 1.0e99, True, [], {"n": 1})  # these count as left out
        for length, expected in (*wanted, *((one, []) for one in unusable)):
            task = await caller.get(asking["id"], historyLength=length)
            assert [texts(one["parts"]) for one in task["history"]] == expected
        assert (await caller.get(asking["id"]))["history"] == []
        assert len((await caller.cancel(asking["id"]))["history"]) == 5
        for length in unusable[1:]:
            sent = await caller.send("ask which?", {"historyLength": length})
            assert [texts(one["parts"]) for one in sent["history"]] == ["ask which?", "which?"]


async def test_44_a_task_that_ended_is_given_back_as_it_is(
    hub: HubProcess, alice: str, bob: str, subtests: pytest.Subtests
) -> None:
    """And one that asks is canceled at once, by its caller alone."""
    async with online(hub, TaskPeer) as agent:
        caller, other = Caller(hub.url, agent.handle, alice), Caller(hub.url, agent.handle, bob)
        for steps in ("note hm | say done", "fail no"):
            ended = await caller.send(steps)
            assert await caller.cancel(ended["id"]) == ended
        asking = await caller.send("ask which?")
        for task_id in (asking["id"], "task-unknown", "", "../x", "x" * 10_000):
            refusal = await other.refusal("tasks/cancel", {"id": task_id})
            with subtests.test(task_id=task_id):
                assert (refusal["code"], refusal["message"]) == (-32001, "task not found")
        canceled = await caller.cancel(asking["id"])
        assert (state_of(canceled), words_of(canceled)) == ("canceled", "canceled by its caller")
        assert await caller.cancel(asking["id"]) == canceled


@pytest.mark.slow
@pytest.mark.distributed
async def test_44_a_task_whose_process_died_cannot_be_canceled(
    start_hub: StartHub, make_storage: MakeStorage
) -> None:
    hub = start_hub(make_storage("grown"), processes=2)
    alice = hub.mint("alice", "session")
    async with online(hub, TaskPeer, at=1) as agent:
        task = await Caller(hub.urls[0], agent.handle, alice).begin("hold")
        await agent.heard("prompt")
        hub.kill9(0)
        began = time.monotonic()
        refusal = await Caller(hub.urls[1], agent.handle, alice).refusal("tasks/cancel", {"id": task["id"]})
        took_s = time.monotonic() - began
        agent.release.set()
    assert refusal["code"] == -32004
    assert took_s < GIVES_UP_AFTER_S


async def test_45_the_agent_hears_of_a_cancel_before_a_caller_is_told_of_it(hub: HubProcess) -> None:
    async with caller_of(hub, TaskPeer) as (agent, caller):
        async with caller.open(
            "message/stream", {"message": message("say as far as | note hm | wait | say too late")}
        ) as events:
            seen = [await anext(events)]
            while told(seen)[-2:] != ["artifact-update assistant-output-0001", "status-update working"]:
                seen.append(await anext(events))
            canceling = asyncio.create_task(caller.cancel(seen[0]["id"]))
            await agent.heard("cancel")
            seen += [event async for event in events]
            canceled = await canceling
        assert await caller.get(canceled["id"], historyLength=10) == canceled
    assert (state_of(canceled), words_of(canceled)) == ("canceled", "canceled by its caller")
    assert (state_of(seen[-1]), seen[-1]["final"]) == ("canceled", True)
    assert artifacts_of(canceled) == {"assistant-output-0001": "as far as"}


async def test_45_a_canceled_task_that_said_nothing_says_who_ended_it(hub: HubProcess) -> None:
    async with caller_of(hub, Held) as (agent, caller):
        task = await caller.begin("hello")
        canceled = await caller.cancel(task["id"])
        agent.release.set()
    assert (state_of(canceled), words_of(canceled)) == ("canceled", "canceled by its caller")
