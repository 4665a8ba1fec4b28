"""Follow-ups of an agent: how its caller gets them, and which are refused (docs/adr/0174)."""

from typing import Any

from lab.agents import Echo, TaskPeer, online
from lab.callers import Json
from lab.hub_process import HubProcess
from lab.hub_storage import MakeStorage
from lab.receivers import receiving
from lab.waiting import eventually
from tests.channel.agents import agent, asking, events_of
from tests.openclaw.caller import Caller as OldCaller
from tests.openclaw.caller import artifacts_of
from tests.pushes.client import SETTINGS, client, heard, states
from tests.surfaces.test_cards import patch
from tests.v1.caller import Caller


async def errors(peer: Any, code: str, count: int = 1) -> None:
    """Wait until the hub refused so many frames of that agent with this code."""

    async def told() -> bool:
        return sum(one["type"] == "error" and one["code"] == code for one in peer.frames) >= count

    await eventually(told, f"{count} times {code}, not {peer.frames}")


async def listed(caller: Caller, context_id: str, count: int) -> list[Json]:
    """The caller's tasks in a context, the newest first, once there are so many."""

    async def look() -> list[Json] | None:
        tasks = (await caller.call("ListTasks", {"contextId": context_id, "includeArtifacts": True}))["tasks"]
        return tasks if len(tasks) == count else None

    return await eventually(look, f"{count} tasks in {context_id}")


async def followed_up(peer: TaskPeer, caller: Caller) -> Json:
    """A task of the caller, once it has one follow-up."""
    task = await caller.send("say done")
    await peer.reply(peer.prompts[0]["chatId"], "one thing more")
    await listed(caller, task["contextId"], 2)
    return task


def texts_of(task: Json) -> list[str]:
    return ["".join(part["text"] for part in one["parts"]) for one in task.get("artifacts", [])]


async def test_a_follow_up_is_a_new_task_in_the_same_context(hub: HubProcess) -> None:
    alice, bob = hub.mint("alice", "session"), hub.mint("bob", "session")
    async with online(hub, TaskPeer) as peer:
        caller = Caller(hub.urls[-1], peer.handle, alice)
        task = await caller.send("say done")
        chat_id = peer.prompts[0]["chatId"]
        await peer.reply(chat_id, "one\0more")
        newest, first = await listed(caller, task["contextId"], 2)
        assert await caller.get(task["id"]) == task, "a task that has ended changed"
        assert texts_of(await caller.get(newest["id"])) == texts_of(newest)
        stranger = Caller(hub.url, peer.handle, bob)
        assert (await stranger.refusal("GetTask", {"id": newest["id"]}))["code"] == -32001

        async def kept() -> bool:
            replies = [payload for _, type_, payload in events_of(hub, peer) if type_ == "reply"]
            return {"text": "one\ufffdmore", "chatId": chat_id, "followUp": True} in replies

        await eventually(kept, "the follow-up is an event of the transcript")
    assert first["id"] == task["id"]
    assert (newest["status"]["state"], texts_of(newest)) == ("TASK_STATE_COMPLETED", ["one\ufffdmore"])
    assert newest["metadata"] == {"source": "queued-reply", "followsTaskId": task["id"]}


class SaysMore(Echo):
    """Answers, and says more at once."""

    async def answer(self, prompt: Json) -> None:
        await super().answer(prompt)
        await self.reply(prompt["chatId"], "one thing more")


async def test_a_follow_up_may_come_before_the_end_of_its_turn_is_stored(hub: HubProcess) -> None:
    async with online(hub, SaysMore) as peer:
        caller = Caller(hub.urls[-1], peer.handle, hub.mint("alice", "session"))
        for number in range(10):
            task = await caller.send("hello", contextId=f"at-once-{number}")
            await listed(caller, task["contextId"], 2)


async def test_the_next_ask_in_the_context_is_given_a_follow_up_once(hub: HubProcess) -> None:
    alice = hub.mint("alice", "session")
    async with online(hub, TaskPeer) as peer:
        caller = Caller(hub.url, peer.handle, alice)
        task = await caller.send("say done")
        for said in ("one thing more", "and another"):
            await peer.reply(peer.prompts[0]["chatId"], said)
        await listed(caller, task["contextId"], 3)
        elsewhere = await caller.send("say other")
        following = await caller.send("say next", contextId=task["contextId"])
        after = await caller.send("say last", contextId=task["contextId"])
    assert texts_of(elsewhere) == ["other"]
    assert texts_of(following) == ["one thing more", "and another", "next"]
    assert [one["name"] for one in following["artifacts"][:2]] == ["Queued follow-up reply"] * 2
    assert following["artifacts"][0]["metadata"] == {"source": "queued-reply", "followsTaskId": task["id"]}
    assert texts_of(after) == ["last"]


async def test_a_refused_ask_leaves_the_follow_up_for_the_next(embedded_hub: HubProcess) -> None:
    hub, alice = embedded_hub, embedded_hub.mint("alice", "session")
    async with online(hub, TaskPeer) as peer:
        caller = Caller(hub.url, peer.handle, alice)
        task = await followed_up(peer, caller)
        await patch(hub, peer.agent["id"], dailyBudgetQueries=1)
        refused = await caller.send("say next", contextId=task["contextId"])
        assert (refused["status"]["state"], texts_of(refused)) == ("TASK_STATE_FAILED", [])
        await patch(hub, peer.agent["id"], dailyBudgetQueries=9)
        events = await caller.stream("say next", contextId=task["contextId"])
        assert texts_of(events[0].content) == ["one thing more"]  # a stream begins with it
        assert events[-1].state == "COMPLETED"


async def test_a_caller_of_03_finds_a_follow_up_in_the_task_that_it_follows(embedded_hub: HubProcess) -> None:
    """As the reference server of 0.3 shows a queued reply."""
    hub, alice = embedded_hub, embedded_hub.mint("alice", "session")
    async with online(hub, TaskPeer) as peer:
        caller = OldCaller(hub.url, peer.handle, alice)
        task = await caller.send("note hm | say done")
        await peer.reply(peer.prompts[0]["chatId"], "one thing more")

        async def look() -> Json | None:
            now = await caller.get(task["id"])
            return now if len(now["artifacts"]) == 2 else None

        now = await eventually(look, "the follow-up is in the task")
        [snapshot] = await caller.streamed("tasks/resubscribe", {"id": task["id"]})
    assert now["status"] == task["status"]
    assert [*artifacts_of(now).values()] == ["done", "one thing more"]
    assert now["artifacts"][1]["name"] == "Queued follow-up reply"
    assert snapshot["artifacts"] == now["artifacts"]


async def test_a_message_without_a_task_is_followed_up_in_its_context(embedded_hub: HubProcess) -> None:
    hub, alice = embedded_hub, embedded_hub.mint("alice", "session")
    async with online(hub, Echo) as peer:
        caller = OldCaller(hub.url, peer.handle, alice)
        answer = await caller.send("hello", contextId="talk-1")
        assert answer["kind"] == "message"
        await peer.reply(peer.prompts[0]["chatId"], "one thing more")
        await listed(Caller(hub.url, peer.handle, alice), "talk-1", 1)
        following = await caller.send("again", contextId="talk-1")
    assert following["kind"] == "task"
    assert [*artifacts_of(following).values()] == ["one thing more", "echo: again"]


async def test_a_follow_up_is_sent_to_the_push_addresses_of_the_task(make_storage: MakeStorage) -> None:
    hub = HubProcess.start(make_storage("embedded"), **SETTINGS)
    try:
        with receiving() as receiver:
            async with online(hub, TaskPeer) as peer:
                asker = client(hub, peer)
                task = await asker.asked("say done", {"url": receiver.url, "token": "tok-1"})
                await heard(receiver, 3)
                await peer.reply(peer.prompts[0]["chatId"], "one thing more")
                told = (await heard(receiver, 6))[3:]
                begun = told[0]["statusUpdate"]
                assert (await asker.addresses(begun | {"id": begun["taskId"]}))["configs"]
    finally:
        hub.stop()
    assert states(told) == ["WORKING", "reply-1", "COMPLETED"]
    assert told[1]["artifactUpdate"]["artifact"]["parts"] == [{"text": "one thing more"}]
    ids = {(part["taskId"], part["contextId"]) for body in told for part in body.values()}
    assert len(ids) == 1
    assert ids.isdisjoint({(task["id"], task["contextId"])})
    assert receiver.received[-1].headers["x-a2a-notification-token"] == "tok-1"


async def test_a_repeated_text_and_a_follow_up_to_no_turn_of_the_session_are_refused(hub: HubProcess) -> None:
    alice = hub.mint("alice", "session")
    async with online(hub, TaskPeer) as peer, online(hub, TaskPeer) as other:
        caller = Caller(hub.url, peer.handle, alice)
        task = await caller.send("say done")
        chat_id = peer.prompts[0]["chatId"]
        await peer.reply(chat_id, " done\n")
        await errors(peer, "unknown_chat")
        await peer.chunk(chat_id, "a piece", done=True)
        await errors(peer, "unknown_chat", 2)
        await other.reply(chat_id, "mine now")
        await errors(other, "unknown_chat")
        await peer.reply(chat_id, "more")
        await peer.reply(chat_id, "more")
        await errors(peer, "unknown_chat", 3)
        failed = await caller.send("fail no")
        await peer.reply(peer.prompts[1]["chatId"], "after all")
        await errors(peer, "unknown_chat", 4)
        assert len(await listed(caller, task["contextId"], 2)) == 2
        assert len(await listed(caller, failed["contextId"], 1)) == 1


async def test_an_ask_that_was_given_up_in_the_queue_leaves_it_for_the_next(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    alice, bob = hub.mint("alice", "session"), hub.mint("bob", "session")
    async with online(hub, TaskPeer, agent={"queueing": {"max": 3}}) as peer:
        caller = Caller(hub.url, peer.handle, alice)
        task = await followed_up(peer, caller)
        holding = await Caller(hub.url, peer.handle, bob).begin("hold")
        await peer.heard("prompt", count=2)
        waiting = await caller.begin("say never", contextId=task["contextId"])
        await caller.call("CancelTask", {"id": waiting["id"]})
        peer.release.set()
        assert holding

        async def asked() -> Json | None:
            answer = await caller.send("say next", contextId=task["contextId"])
            return answer if answer["status"]["state"] == "TASK_STATE_COMPLETED" else None

        assert texts_of(await eventually(asked, "the agent is free")) == ["one thing more", "next"]


async def test_a_turn_has_at_most_20_follow_ups(embedded_hub: HubProcess) -> None:
    hub, alice = embedded_hub, embedded_hub.mint("alice", "session")
    async with online(hub, TaskPeer) as peer:
        caller = Caller(hub.url, peer.handle, alice)
        task = await caller.send("say done")
        for number in range(21):
            await peer.reply(peer.prompts[0]["chatId"], f"more {number}")
        await errors(peer, "too_many_follow_ups")
        await listed(caller, task["contextId"], 21)
        following = await caller.send("say next", contextId=task["contextId"])
    assert texts_of(following) == [*(f"more {number}" for number in range(20)), "next"]


async def test_an_isolated_agent_follows_up_for_its_present_caller_alone(hub: HubProcess) -> None:
    """Words that one stranger makes an agent say do not reach another stranger."""
    async with agent(hub, "owner") as mine:
        async with asking(hub, "alice", mine) as first:
            await mine.reply(first["chatId"], "done")
            await mine.stop()
        async with asking(hub, "bob", mine) as second:
            await mine.reply(first["chatId"], "bob made me say this")
            await mine.errors("unknown_chat")
            await mine.reply(second["chatId"], "done")
            await mine.reply(second["chatId"], "one thing more, bob")

            async def kept() -> bool:
                replies = [payload for _, type_, payload in events_of(hub, mine) if type_ == "reply"]
                return [one["text"] for one in replies] == ["done", "done", "one thing more, bob"]

            await eventually(kept, "the follow-up of the present caller alone is kept")
