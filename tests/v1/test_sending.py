"""SendMessage and SendStreamingMessage of A2A 1.0."""

import asyncio
import re

import pytest

from lab.agents import Chunker, Echo, Held, TaskPeer, gone, online
from lab.callers import Json, question
from lab.hub_process import HubProcess
from tests.openclaw.caller import message as v03_message
from tests.v1.caller import Caller, message, reply_of, texts, told


async def test_a_question_gets_a_completed_task_whose_reply_is_an_artifact(hub: HubProcess, alice: str) -> None:
    async with online(hub, Echo) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        task = await caller.send("hi", messageId="m-1", contextId="our-context")
        assert "parts" not in agent.prompts[0]
        assert reply_of(task) == "echo: hi"
        assert task["contextId"] == "our-context"
        assert set(task) == {"id", "contextId", "status", "artifacts", "history"}
        (asked,) = task["history"]
        assert asked["messageId"] == "m-1"
        assert asked["role"] == "ROLE_USER"
        assert asked["taskId"] == task["id"]
        assert await caller.get(task["id"]) == task


async def test_without_a_context_the_hub_makes_one_for_each_task(hub: HubProcess, alice: str) -> None:
    async with online(hub, Echo) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        tasks = [await caller.send("hi") for _ in range(2)]
    assert tasks[0]["contextId"] != tasks[1]["contextId"]


async def test_proto_json_spellings_are_understood(hub: HubProcess, alice: str) -> None:
    async with online(hub, Echo) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        twice = {"messageId": "s-1", "message_id": "s-2", "role": 1, "parts": [{"text": "hi"}]}
        error = await Caller(hub.url, agent.handle, alice).refusal("SendMessage", {"message": twice})
        assert error["code"] == -32602
        snake = {"message_id": "s-1", "role": 1, "context_id": "snake", "parts": [{"text": "hi"}], "task_id": None}
        params = {"message": snake, "configuration": {"history_length": "1", "return_immediately": False}}
        task = (await caller.call("SendMessage", params))["task"]
    assert task["contextId"] == "snake"
    assert reply_of(task) == "echo: hi"


async def test_the_history_is_as_long_as_asked_for(hub: HubProcess, alice: str) -> None:
    async with online(hub, Echo) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        task = await caller.send("hi", {"historyLength": 0})
        assert "history" not in task
        assert "history" not in await caller.call("GetTask", {"id": task["id"], "historyLength": 0})
        assert len((await caller.call("GetTask", {"id": task["id"], "historyLength": "5"}))["history"]) == 1


async def test_data_reaches_the_agent_as_text_and_as_parts(hub: HubProcess, alice: str) -> None:
    async with online(hub, Echo) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        parts = [{"text": "look"}, {"data": {"b": 1, "a": [True]}}]
        task = await caller.send("", parts=parts, messageId="asked-1")
        prompt = agent.prompts[0]
    assert prompt["parts"] == parts
    assert prompt["messageId"] == "asked-1"
    assert prompt["taskId"] == task["id"]
    assert prompt["text"].startswith("look\n\ndata (part 2)")
    assert '"b": 1' in prompt["text"]


async def test_an_agent_knows_the_conversations_of_each_caller_by_names_of_their_own(
    hub: HubProcess, alice: str, bob: str
) -> None:
    async with online(hub, Echo) as agent, online(hub, Echo) as other:
        for asked, token, context_id in (
            (agent, alice, "plans"),
            (agent, alice, "plans"),
            (agent, alice, "other plans"),
            (agent, bob, "plans"),
            (other, alice, "plans"),
        ):
            task = await Caller(hub.urls[-1], asked.handle, token).send("hi", contextId=context_id)
            assert task["contextId"] == context_id
        seen = [prompt["contextId"] for prompt in (*agent.prompts, *other.prompts)]
    assert seen[0] == seen[1]
    assert len({*seen}) == 4
    assert all(re.fullmatch("[0-9a-f]{32}", one) for one in seen)


async def test_who_does_not_wait_gets_the_task_at_once_and_reads_its_end(hub: HubProcess, alice: str) -> None:
    async with online(hub, Held) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        task = await caller.begin("hi")
        assert task["status"]["state"] in ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING")
        agent.release.set()
        async with asyncio.timeout(30):
            while (ended := await caller.get(task["id"]))["status"]["state"] != "TASK_STATE_COMPLETED":
                await asyncio.sleep(0.05)
    assert reply_of(ended) == "echo: hi"


async def test_a_stream_tells_the_task_then_each_event_then_closes(hub: HubProcess, alice: str) -> None:
    async with online(hub, Chunker, pieces=["a ", "b ", "c"]) as agent:
        events = await Caller(hub.url, agent.handle, alice).stream("?")
    assert told(events) == ["SUBMITTED", "WORKING", "reply-1", "reply-1", "reply-1", "reply-1", "COMPLETED"]
    assert [event.kind for event in events[:2]] == ["task", "statusUpdate"]
    pieces = [event.content for event in events[2:5]]
    assert [texts(piece["artifact"]["parts"]) for piece in pieces] == ["a ", "b ", "c"]
    assert [piece.get("append", False) for piece in pieces] == [False, True, True]
    assert not any("lastChunk" in piece for piece in pieces)
    whole = events[5].content
    assert texts(whole["artifact"]["parts"]) == "a b c"
    assert (whole.get("append", False), whole["lastChunk"]) == (False, True)
    task_id = events[0].content["id"]
    assert [event.id for event in events] == [f"{task_id}.{seq}" for seq in range(7)]
    assert {event.content["contextId"] for event in events} == {events[0].content["contextId"]}


async def test_notes_and_artifacts_come_in_the_order_they_were_made(hub: HubProcess, alice: str) -> None:
    steps = (
        'note reading | text ch one | last ch two | data facts {"a": 1} | url pic https://x.example/p | say done'
    )
    async with online(hub, TaskPeer) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        events = await caller.stream(steps)
        task = await caller.get(events[0].content["id"])
    assert told(events)[:6] == ["SUBMITTED", "WORKING", "WORKING", "ch", "ch", "facts"]
    assert told(events)[6:] == ["pic", "reply-1", *("facts", "pic", "reply-1"), "COMPLETED"]  # the three left open
    assert texts(events[2].content["status"]["message"]["parts"]) == "reading"
    made = {one["artifactId"]: one for one in task["artifacts"]}
    assert texts(made["ch"]["parts"]) == "onetwo"
    assert made["facts"]["parts"][0]["data"] == {"a": 1}
    assert made["pic"]["parts"][0]["url"] == "https://x.example/p"
    assert reply_of(task) == "done"
    assert [one["role"] for one in task["history"]] == ["ROLE_USER", "ROLE_AGENT"]


async def test_an_agent_may_fail_or_refuse_in_its_own_words(hub: HubProcess, alice: str) -> None:
    async with online(hub, TaskPeer) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        tasks = [await caller.send(f"{step} no paper left") for step in ("fail", "reject")]
    assert [one["status"]["state"] for one in tasks] == ["TASK_STATE_FAILED", "TASK_STATE_REJECTED"]
    assert {texts(one["status"]["message"]["parts"]) for one in tasks} == {"no paper left"}


async def test_a_refused_ask_is_a_failed_task(hub: HubProcess, alice: str) -> None:
    async with online(hub, Echo) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        await agent.leave()
        await gone(hub, agent)
        task = await caller.send("hi")
        events = await caller.stream("hi")
        await agent.connect()
    assert task["status"]["state"] == "TASK_STATE_FAILED"
    assert texts(task["status"]["message"]["parts"]) == "agent channel offline"
    assert task["status"]["message"]["metadata"] == {"reason": "offline"}
    assert events[-1].content["status"]["message"]["metadata"] == {"reason": "offline"}
    assert told(events) == ["FAILED"]


BROKEN: list[tuple[Json, int, str]] = [
    ({"role": "user"}, -32602, "message.role"),
    ({"messageId": ""}, -32602, "message.messageId"),
    ({"parts": [{"text": "a", "data": 1}]}, -32602, "message.parts[0]"),
    ({"parts": [{"text": " "}]}, -32602, "message.parts"),
    ({"parts": [{"raw": "aGk=", "mediaType": "image/png"}]}, -32005, ""),
    ({"parts": [{"raw": "no base64!", "mediaType": "image/png"}]}, -32602, "message.parts[0].raw"),
    ({"parts": [{"text": "hi"}, {"text": "<b>", "mediaType": "text/html"}]}, -32005, ""),
    ({"parts": [{"data": {}, "mediaType": "application/xml"}]}, -32005, ""),
    ({"taskId": "task-unknown"}, -32001, ""),
]


async def test_a_broken_message_is_refused_and_says_where(
    embedded_hub: HubProcess, subtests: pytest.Subtests
) -> None:
    async with online(embedded_hub, Echo) as agent:
        caller = Caller(embedded_hub.url, agent.handle, embedded_hub.mint("alice", "session"))
        for members, code, field in BROKEN:
            with subtests.test(members=members):
                error = await caller.refusal("SendMessage", {"message": message("hi", **members)})
                assert error["code"] == code, (members, error)
                assert error["data"][0]["@type"] == "type.googleapis.com/google.rpc.ErrorInfo"
                if field:
                    assert error["data"][1]["fieldViolations"][0]["field"] == field
        assert agent.prompts == []
        for media_type in ("text/plain", "TEXT/Plain; charset=utf-8", "application/json", ""):
            task = await caller.send("", parts=[{"text": "hi", "mediaType": media_type}])
            assert reply_of(task) == "echo: hi", media_type


async def test_output_modes_the_agent_does_not_have_are_refused(embedded_hub: HubProcess) -> None:
    async with online(embedded_hub, Echo) as agent:
        caller = Caller(embedded_hub.url, agent.handle, embedded_hub.mint("alice", "session"))
        params = {"message": message("hi"), "configuration": {"acceptedOutputModes": ["image/png"]}}
        assert (await caller.refusal("SendMessage", params))["code"] == -32005
        assert reply_of(await caller.send("hi", {"acceptedOutputModes": []})) == "echo: hi"
        assert reply_of(await caller.send("hi", {"acceptedOutputModes": ["image/png", "text/*"]})) == "echo: hi"


async def test_extensions_the_card_has_are_active_others_are_ignored(embedded_hub: HubProcess) -> None:
    ours = f"{embedded_hub.url}/extensions/agent-info/v1"
    async with online(embedded_hub, Echo) as agent:
        caller = Caller(embedded_hub.url, agent.handle, embedded_hub.mint("alice", "session"))
        asked = {"message": message("hi")}
        both = await caller.post("SendMessage", asked, A2A_Extensions=f"https://else.example/x, {ours}")
        none = await caller.post("SendMessage", asked, A2A_Extensions="https://else.example/x")
        older = await caller.post("SendMessage", asked, X_A2A_Extensions=ours)
    assert both.headers["a2a-extensions"] == ours
    assert "a2a-extensions" not in none.headers
    assert older.headers["x-a2a-extensions"] == ours
    exposed = older.headers["access-control-expose-headers"].split(", ")  # to pages of other origins
    assert {"A2A-Extensions", "X-A2A-Extensions"} <= set(exposed)


async def test_a_response_names_the_version_that_answers(embedded_hub: HubProcess) -> None:
    async with online(embedded_hub, Echo) as agent:
        caller = Caller(embedded_hub.url, agent.handle, embedded_hub.mint("alice", "session"))
        asked, old = {"message": message("hi")}, {"message": v03_message("hi")}
        answers = [
            await caller.post("SendMessage", asked, A2A_Version="1"),
            await caller.post("SendStreamingMessage", asked),
            await caller.post("GetTask", {"id": "task-none"}),
            await caller.post("message/send", old, A2A_Version="0.3.0"),
            await caller.post("message/send", old, A2A_Version=""),
            await caller.post("SendMessage", question("hi"), A2A_Version=""),
        ]
    assert [one.headers.get("a2a-version") for one in answers] == ["1.0", "1.0", "1.0", "0.3", "0.3", None]
    assert "A2A-Version" in answers[0].headers["access-control-expose-headers"].split(", ")
