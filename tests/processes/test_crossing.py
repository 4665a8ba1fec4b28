"""Every step may land on another process than the one before, and than the agent's: nothing is sticky."""

import asyncio

import httpx
import pytest

from lab.agents import Echo, TaskPeer, online
from lab.callers import bearer, envelope, failed_text, question, rpc_path, send, web
from lab.hub_process import HubProcess, StartHub
from lab.hub_storage import MakeStorage
from lab.receivers import receiving
from lab.waiting import eventually
from tests.http_json import Client
from tests.processes.conftest import callers
from tests.pushes.client import CREATE, heard, states
from tests.v1.caller import message, reply_of

pytestmark = [pytest.mark.slow, pytest.mark.distributed]
RATE = 20
ASKS = 40


@pytest.mark.parametrize("at", [0, 1])
async def test_a_broken_stream_goes_on_elsewhere_with_every_event_once(
    two_process_hub: HubProcess, at: int
) -> None:
    async with online(two_process_hub, TaskPeer, at=at) as agent:
        here, there = callers(two_process_hub, agent.handle)
        asked = {"message": message("note one | text a chapter | hold | say more | say and more")}
        seen = []
        async with here.open("SendStreamingMessage", asked) as events:
            async for event in events:
                seen.append(event)
                if event.kind == "artifactUpdate":
                    break
        async with there.open("SendStreamingMessage", asked, Last_Event_ID=seen[-1].id) as events:
            agent.release.set()
            seen += [event async for event in events]
        assert [event.seq for event in seen] == list(range(len(seen)))
        assert seen[-1].state == "COMPLETED"
        async with here.open("SendStreamingMessage", asked, Last_Event_ID=seen[0].id) as events:
            again = [event async for event in events]
        assert [(event.seq, event.content) for event in again] == [(one.seq, one.content) for one in seen[1:]]
        assert len(agent.prompts) == 1


@pytest.mark.parametrize("at", [0, 1])
async def test_a_task_is_read_listed_followed_and_canceled_elsewhere(two_process_hub: HubProcess, at: int) -> None:
    alice = two_process_hub.mint("alice", "session")
    async with (
        online(two_process_hub, TaskPeer, at=at) as agent,
        web(two_process_hub.urls[0]) as a,
        web(two_process_hub.urls[1]) as b,
    ):
        here, there = Client(a, agent.handle, alice), Client(b, agent.handle, alice)
        task = await here.send("note reading | wait", now=True)
        assert (await there.get(f"tasks/{task['id']}"))["id"] == task["id"]
        assert task["id"] in [one["id"] for one in (await there.get("tasks"))["tasks"]]
        async with there.stream("POST", f"tasks/{task['id']}:subscribe") as events:
            told = aiter(events)
            following = [await anext(told)]
            canceled = await there.post(f"tasks/{task['id']}:cancel")
            following += [event async for event in told]
        assert canceled["status"]["state"] == "TASK_STATE_CANCELED"
        assert following[-1][1]["statusUpdate"]["status"]["state"] == "TASK_STATE_CANCELED"
        await agent.heard("cancel")
        assert (await here.get(f"tasks/{task['id']}"))["status"]["state"] == "TASK_STATE_CANCELED"


async def test_a_question_back_is_answered_elsewhere(two_process_hub: HubProcess) -> None:
    async with online(two_process_hub, TaskPeer, at=0) as agent:
        here, there = callers(two_process_hub, agent.handle)
        task = await there.send("ask which one?")
        assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        first, second = await asyncio.gather(
            *(one.post("SendMessage", {"message": message("red", taskId=task["id"])}) for one in (here, there))
        )
        answers = [first.json(), second.json()]
        (answered,) = [one["result"]["task"] for one in answers if "result" in one]
        (refused,) = [one["error"]["code"] for one in answers if "error" in one]
        assert (reply_of(answered), refused) == ("you said: red", -32004)
        assert len(agent.prompts) == 2


async def test_an_address_kept_elsewhere_is_told_by_the_worker(worked_hub: HubProcess) -> None:
    with receiving() as receiver:
        async with online(worked_hub, TaskPeer, at=1) as agent:
            here, there = callers(worked_hub, agent.handle)
            task = await here.begin("hold | text a chapter")

            async def is_working() -> bool:
                return (await there.get(task["id"]))["status"]["state"] == "TASK_STATE_WORKING"

            await eventually(is_working, "the task is not only submitted")  # else the address is told of that, too
            await there.call(CREATE, {"taskId": task["id"], "url": receiver.url})
            agent.release.set()
            assert states(await heard(receiver, 2)) == ["a", "COMPLETED"]


async def test_a_webhook_hears_of_a_question_on_any_process(worked_hub: HubProcess) -> None:
    owner, alice = worked_hub.mint("owner", "session"), worked_hub.mint("alice", "session")
    with receiving() as receiver:
        async with online(worked_hub, Echo, at=0) as agent, web(worked_hub.urls[0]) as client:
            body = {"url": receiver.url, "events": ["chat.event"]}
            made = await client.post("/api/v1/webhooks", json=body, headers=bearer(owner))
            assert made.status_code == 201, made.text
            await send(worked_hub.urls[1], agent.handle, "tell the receiver", alice)
            await asyncio.to_thread(receiver.heard, 2)
            await client.delete(f"/api/v1/webhooks/{made.json()['id']}", headers=bearer(owner))
    assert any(b"tell the receiver" in one.body for one in receiver.received)


async def test_a_callers_rate_holds_over_processes(make_storage: MakeStorage, start_hub: StartHub) -> None:
    hub = start_hub(make_storage("grown"), processes=2, CALLER_RATE_PER_MINUTE=RATE)
    alice, bob = hub.mint("alice", "session"), hub.mint("bob", "session")
    async with (
        online(hub, Echo, at=0, agent={"concurrencyCap": 20}) as agent,
        web(hub.urls[0]) as a,
        web(hub.urls[1]) as b,
    ):

        async def ask(client: httpx.AsyncClient) -> str:
            body = envelope("SendMessage", question("within?"))
            task = (await client.post(rpc_path(agent.handle), json=body, headers=bearer(alice))).json()["result"]
            return "" if task["status"]["state"] == "COMPLETED" else failed_text(task)

        for url in hub.urls:  # each has asked Redis before
            assert await send(url, agent.handle, "another caller", bob)
        answers: list[str] = []
        while len(answers) < ASKS:  # not all at once: Redis, which is asked each time, must answer within a second
            answers += await asyncio.gather(*(ask([a, b][number % 2]) for number in range(RATE)))
        passed = [text for text in answers if not text.startswith("over your rate limit")]
        assert RATE <= len(passed) <= RATE + 1
