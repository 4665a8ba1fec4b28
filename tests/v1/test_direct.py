"""Agents that answer with a message: no task is shown and none is kept, the turn and its audit row are."""

from typing import Any

from lab.agents import TaskPeer, online
from lab.callers import Json, inbound
from lab.hub_process import HubProcess
from tests.v1.caller import Caller, message, reply_of, texts

WORDS = "no task was needed"


class Direct(TaskPeer):
    """Answers `direct` with a message, anything else as `TaskPeer` does."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"features": ["direct_message"]} | options)

    async def answer(self, prompt: Json) -> None:
        if not prompt["text"].endswith("direct"):
            await super().answer(prompt)
            return
        for name, _, words in [step.partition(" ") for step in prompt["text"].split(" | ")[:-1]]:
            await self._step(prompt, name, words)
        payload = {"chatId": prompt["chatId"], "text": WORDS, "direct": True}
        await self.send(type="chat_event", eventType="reply", payload=payload, ts=None)


def check_message(shown: Json, context_id: str) -> None:
    assert shown.keys() == {"messageId", "contextId", "role", "parts"}
    assert (shown["contextId"], shown["role"], shown["parts"]) == (context_id, "ROLE_AGENT", [{"text": WORDS}])


async def test_an_answer_is_a_message_and_no_task_is_kept(hub: HubProcess, alice: str) -> None:
    async with online(hub, Direct, at=-1) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        sent = await caller.call("SendMessage", {"message": message("direct", contextId="c1")})
        check_message(sent["message"], "c1")
        [event] = await caller.stream("direct", contextId="c2")
        assert event.kind == "message"
        check_message(event.content, "c2")
        assert (await caller.call("ListTasks", {}))["tasks"] == []
        task_id = agent.prompts[0]["taskId"]
        assert (await caller.refusal("GetTask", {"id": task_id}))["code"] == -32001
        log = await inbound(hub.url, agent.agent["id"], hub.mint("owner", "session"))
        assert [one["ok"] for one in log["recent"]] == [True, True]


async def test_a_repeated_send_gets_the_message_again(hub: HubProcess, alice: str) -> None:
    async with online(hub, Direct) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        params = {"message": message("direct")}
        first, second = [
            await caller.call("SendMessage", params, Idempotency_Key="once-" + agent.handle) for _ in range(2)
        ]
        assert first == second
        assert first["message"]["parts"] == [{"text": WORDS}]
        assert len(agent.prompts) == 1


async def test_what_has_begun_as_a_task_stays_one(hub: HubProcess, alice: str) -> None:
    async with online(hub, Direct) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        assert reply_of(await caller.send("note thinking | direct")) == WORDS
        begun = await caller.begin("hold | direct")
        async with caller.open("SubscribeToTask", {"id": begun["id"]}) as events:
            assert (await anext(events)).kind == "task"
            agent.release.set()
            [*_, last] = [event async for event in events]
        assert last.state == "COMPLETED"
        first, *_, last = await caller.stream("note thinking | direct")
        assert (first.kind, last.state) == ("task", "COMPLETED")
        assert reply_of(await caller.send("hello")) == "echo: hello"


async def test_a_stream_of_an_agent_that_did_not_say_so_begins_with_its_task(hub: HubProcess, alice: str) -> None:
    async with online(hub, Direct, features=[]) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        async with caller.open("SendStreamingMessage", {"message": message("hold | direct")}) as events:
            assert (await anext(events)).kind == "task"
            agent.release.set()
            [*_, last] = [event async for event in events]
        assert last.state == "COMPLETED"
        sent = await caller.call("SendMessage", {"message": message("direct")})
        assert texts(sent["message"]["parts"]) == WORDS
