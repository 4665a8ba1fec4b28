"""Tasks of several turns: an agent asks, its caller answers, the task goes on; or its caller ends it."""

import asyncio

import pytest

from lab.agents import Echo, TaskPeer, gone, online
from lab.callers import inbound
from lab.hub_process import HubProcess
from lab.waiting import eventually
from tests.v1.caller import Caller, message, reply_of, texts, told


async def test_an_agent_asks_back_and_the_answer_goes_on_with_the_task(hub: HubProcess, alice: str) -> None:
    async with online(hub, TaskPeer) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        task = await caller.send("ask which one?")
        assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        assert texts(task["status"]["message"]["parts"]) == "which one?"
        ended = await caller.send("the red one", taskId=task["id"])
    assert ended["id"] == task["id"]
    assert ended["contextId"] == task["contextId"]
    assert texts(ended["artifacts"][-1]["parts"]) == "you said: the red one"
    assert [texts(one["parts"]) for one in ended["history"]] == ["ask which one?", "which one?", "the red one"]
    assert [one["taskId"] for one in agent.prompts] == [task["id"]] * 2
    log = await inbound(hub.url, agent.agent["id"], hub.mint("owner", "session"))
    assert log["summary"]["ok"] == 2


async def test_a_stream_ends_with_the_question_and_a_subscriber_stays_for_the_rest(
    hub: HubProcess, alice: str
) -> None:
    async with online(hub, TaskPeer) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        asked = await caller.stream("note hm | login please")
        task_id = asked[0].content["id"]
        assert told(asked) == ["SUBMITTED", "WORKING", "WORKING", "AUTH_REQUIRED"]
        other = Caller(hub.urls[-1], agent.handle, alice)
        async with other.open("SubscribeToTask", {"id": task_id}) as events:
            seen = [await anext(events)]
            answered = await caller.stream("here", taskId=task_id)
            seen += [event async for event in events]
    assert seen[0].state == "AUTH_REQUIRED"
    assert told(seen) == ["AUTH_REQUIRED", "WORKING", "reply-2", "COMPLETED"]
    assert answered[0].kind == "task"
    assert answered[0].content["id"] == task_id
    assert answered[-1].state == "COMPLETED"


async def test_the_same_answer_sent_again_meanwhile_gets_the_same_end_by_any_process(
    hub: HubProcess, alice: str
) -> None:
    async with online(hub, TaskPeer) as agent:
        caller, there = (Caller(url, agent.handle, alice) for url in (hub.urls[0], hub.urls[-1]))
        task = await caller.send("ask which?")
        again = message("hold | reply red it is", taskId=task["id"])
        first = asyncio.create_task(caller.call("SendMessage", {"message": again}))
        await eventually_asked(agent, 2)
        second = asyncio.create_task(caller.call("SendMessage", {"message": again}))
        other = await caller.refusal("SendMessage", {"message": message("blue", taskId=task["id"])})
        assert other["code"] == -32004
        async with there.open("SendStreamingMessage", {"message": again}) as events:
            seen = [await anext(events)]
            agent.release.set()
            seen += [event async for event in events]
        ends = [(await one)["task"] for one in (first, second)]
        assert len(agent.prompts) == 2
    assert ends[0] == ends[1]
    assert (seen[0].content["id"], seen[-1].state) == (task["id"], "COMPLETED")
    assert texts(ends[0]["artifacts"][-1]["parts"]) == "red it is"
    said = [texts(one["parts"]) for one in ends[0]["history"]]
    assert said == ["ask which?", "which?", "hold | reply red it is"]


async def eventually_asked(agent: TaskPeer, times: int) -> None:
    async def asked() -> bool:
        return len(agent.prompts) == times

    await eventually(asked, f"asked {times} times")


async def test_an_answer_that_is_refused_leaves_the_task_asking(hub: HubProcess, alice: str) -> None:
    async with online(hub, TaskPeer) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        task = await caller.send("ask which?")
        await agent.leave()
        await gone(hub, agent)
        error = await caller.refusal("SendMessage", {"message": message("red", taskId=task["id"])})
        assert (error["code"], error["message"]) == (-32015, "agent channel offline")
        asking = await caller.get(task["id"])
        assert asking["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        assert texts(asking["status"]["message"]["parts"]) == "which?"
        assert asking["history"] == task["history"]
        await agent.connect()
        ended = await caller.send("red", taskId=task["id"])
    assert ended["status"]["state"] == "TASK_STATE_COMPLETED"


async def test_what_does_not_ask_takes_no_message(hub: HubProcess, alice: str, bob: str) -> None:
    async with online(hub, TaskPeer) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        ended = await caller.send("hi")
        assert (await caller.refusal("CancelTask", {"id": ended["id"]}))["code"] == -32002
        running = await caller.begin("hold")
        for task in (ended, running):
            error = await caller.refusal("SendMessage", {"message": message("more", taskId=task["id"])})
            assert error["code"] == -32004
        asking = await caller.send("ask which?")
        params = {"message": message("x", taskId=asking["id"], contextId="another")}
        assert (await caller.refusal("SendMessage", params))["code"] == -32602
        params = {"message": message("x", taskId=asking["id"])}
        stranger = Caller(hub.url, agent.handle, bob)
        assert (await stranger.refusal("SendMessage", params))["code"] == -32001
        agent.release.set()


async def test_canceling_ends_the_task_tells_the_agent_and_frees_it(hub: HubProcess, alice: str, bob: str) -> None:
    async with online(hub, TaskPeer) as agent:
        caller = Caller(hub.urls[-1], agent.handle, alice)
        task = await Caller(hub.url, agent.handle, alice).begin("say half | wait | say late")
        await agent.heard("prompt")
        canceled = await caller.call("CancelTask", {"id": task["id"]})
        assert canceled["status"]["state"] == "TASK_STATE_CANCELED"
        await agent.heard("cancel")
        assert (await caller.get(task["id"]))["status"]["state"] == "TASK_STATE_CANCELED"
        assert (await caller.refusal("CancelTask", {"id": task["id"]}))["code"] == -32002
        async with asyncio.timeout(30):
            other = Caller(hub.url, agent.handle, bob)
            while (await other.send("hi"))["status"]["state"] != "TASK_STATE_COMPLETED":
                await asyncio.sleep(0.1)


@pytest.mark.parametrize("features", [[], ["cancel"]])
async def test_a_stream_shows_that_its_task_was_canceled(hub: HubProcess, alice: str, features: list[str]) -> None:
    async with online(hub, TaskPeer, features=features) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        async with caller.open("SendStreamingMessage", {"message": message("say a | hold")}) as events:
            task_id = (await anext(events)).content["id"]
            await agent.heard("prompt")
            await caller.call("CancelTask", {"id": task_id})
            rest = [event async for event in events]
        agent.release.set()
        assert [frame["type"] for frame in agent.frames if frame["type"] == "cancel"] == features
    assert rest[-1].state == "CANCELED"


async def test_a_task_that_asks_is_canceled_at_once(hub: HubProcess, alice: str) -> None:
    async with online(hub, TaskPeer) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        task = await caller.send("ask which?")
        canceled = await caller.call("CancelTask", {"id": task["id"], "metadata": {"why": "bored"}})
        assert canceled["status"]["state"] == "TASK_STATE_CANCELED"
        error = await caller.refusal("SendMessage", {"message": message("red", taskId=task["id"])})
    assert error["code"] == -32004


async def test_tasks_are_listed_newest_first_page_by_page_and_filtered(
    hub: HubProcess, alice: str, bob: str
) -> None:
    async with online(hub, TaskPeer) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        made = [await caller.send(f"q{number}", contextId=f"c{number % 2}") for number in range(5)]
        asking = await caller.send("ask which?", contextId="c0")
        made.append(asking)
        listed, token = [], ""
        while True:
            page = await caller.call("ListTasks", {"pageSize": 4, "pageToken": token})
            assert (page["pageSize"], page["totalSize"]) == (4, 6)
            listed += page["tasks"]
            if not (token := page["nextPageToken"]):
                break
        assert [one["id"] for one in listed] == [one["id"] for one in reversed(made)]
        assert all("artifacts" not in one for one in listed)
        found = await caller.call("ListTasks", {"contextId": "c0", "includeArtifacts": True, "historyLength": 0})
        assert [one["id"] for one in found["tasks"]] == [made[i]["id"] for i in (5, 4, 2, 0)]
        assert reply_of(found["tasks"][1]) == "echo: q4"
        assert all("history" not in one for one in found["tasks"])
        waiting = await caller.call("ListTasks", {"status": "TASK_STATE_INPUT_REQUIRED"})
        assert [one["id"] for one in waiting["tasks"]] == [asking["id"]]
        since = await caller.call("ListTasks", {"statusTimestampAfter": made[4]["status"]["timestamp"]})
        assert {made[4]["id"], asking["id"]} <= {one["id"] for one in since["tasks"]}
        empty = await Caller(hub.url, agent.handle, bob).call("ListTasks", None)
        assert empty == {"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0}


async def test_a_list_asked_for_wrongly_is_refused(embedded_hub: HubProcess) -> None:
    wrong = {"pageSize": 0, "pageToken": "?", "status": "WORKING", "statusTimestampAfter": "x"}
    async with online(embedded_hub, Echo) as agent:
        caller = Caller(embedded_hub.url, agent.handle, embedded_hub.mint("alice", "session"))
        for name, value in (*wrong.items(), ("pageSize", 101)):
            error = await caller.refusal("ListTasks", {name: value})
            assert error["code"] == -32602, name
            assert error["data"][1]["fieldViolations"][0]["field"] == name
