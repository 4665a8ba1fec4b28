"""Behaviours 24 to 39: what a message becomes, a message or a task, and how it is told."""

import asyncio
import json
import re

import pytest

from lab.agents import Chunker, Echo, TaskPeer, online
from lab.callers import Json
from lab.hub_process import HubProcess
from tests.openclaw.caller import (
    TASK_GENERATING,
    Caller,
    artifacts_of,
    caller_of,
    message,
    reply_of,
    state_of,
    text,
    texts,
    told,
    words_of,
)
from tests.v1.caller import Caller as V1Caller

OPENING = ["task submitted", "status-update submitted", "status-update working"]
FIRST = "assistant-output-0001"
NOT_TAKEN = "The request contained no supported text or data parts."


async def tasks_of(hub: HubProcess, handle: str, token: str) -> list[Json]:
    """All tasks that the caller has there."""
    found: list[Json] = (await V1Caller(hub.url, handle, token).call("ListTasks", {}))["tasks"]
    return found


async def test_24_hybrid_blocking_simple_reply_is_a_message(hub: HubProcess, alice: str) -> None:
    async with caller_of(hub, TaskPeer) as (agent, caller):
        answer = await caller.send("hello", contextId="talk-1")
        assert set(answer) == {"kind", "messageId", "role", "parts", "contextId"}
        assert (answer["kind"], answer["role"], answer["contextId"]) == ("message", "agent", "talk-1")
        assert answer["parts"] == [{"kind": "text", "text": "echo: hello"}]
        first, second = await caller.send("hello"), await caller.send("hello")
        assert first["contextId"]  # without a context the message gets one
        assert first["contextId"] != second["contextId"]
        assert first["messageId"] != second["messageId"]
        assert await tasks_of(hub, agent.handle, alice) == []


def in_short(answers: list[Json]) -> str:
    """The last answer to a caller: a message, or the state of a task, its words, and the text of its reply."""
    last = answers[-1]
    if last["kind"] == "message":
        return f"message: {texts(last['parts'])}"
    said = words_of(last) if "message" in last["status"] else ""
    reply = ""
    for one in answers:
        if artifact := one.get("artifact"):
            reply = (reply if one.get("append") else "") + texts(artifact["parts"])
        reply = artifacts_of(one).get(FIRST, reply)
    return f"{state_of(last)}: {said}{reply}"


SHOWN = {  # what an agent does, and what its caller is shown: at once (24 to 27), as a task (28 to 31), its end
    "hybrid": {
        "hello": "message: echo: hello",
        "say one | say two": "message: onetwo",
        "say one | say two | reply onetwo": "message: onetwo",
        "note reading | say done": "completed: done",
        'data d1 {"a":1} | say done': "completed: done",
        "fail the disk is full": "failed: the disk is full",
        "reject the disk is full": "rejected: the disk is full",
        "ask may I delete it?": "input-required: may I delete it?",
    },
    "task-generating": {
        "hello": "completed: echo: hello",
        "say Alpha | say  Beta": "completed: Alpha Beta",
        "say Alpha | reply Alpha Beta": "completed: Alpha Beta",
        "say Alpha | say  Beta | reply Alpha Beta": "completed: Alpha Beta",
    },
}


@pytest.mark.parametrize("style", SHOWN)
async def test_25_what_an_agent_does_is_shown_as_a_message_or_a_task(
    hub: HubProcess, style: str, subtests: pytest.Subtests
) -> None:
    async with caller_of(hub, TaskPeer, agent={"agentStyle": style}) as (_, caller):
        for steps, expected in SHOWN[style].items():
            answer, events = await caller.send(steps), await caller.stream(steps)
            with subtests.test(steps=steps):
                assert (in_short([answer]), in_short(events)) == (expected, expected)
                if answer["kind"] == "message":
                    assert ([one["kind"] for one in events], "taskId" in events[0]) == (["message"], False)
                    continue
                assert events[-1]["final"] is (state_of(answer) != "input-required")
                assert answer.pop("history")
                read = await caller.get(answer["id"])
                assert (read.pop("history"), read) == ([], answer)


async def test_no_visible_reply_is_a_task_that_says_so(hub: HubProcess) -> None:
    async with caller_of(hub, Chunker, pieces=[]) as (_, caller):
        task = await caller.send("hello")
    assert (task["kind"], state_of(task)) == ("task", "completed")
    assert "without a user-visible reply" in words_of(task)


@pytest.mark.slow
async def test_26_a_reply_that_is_not_whole_in_10_s_is_told_as_it_comes(embedded_hub: HubProcess) -> None:
    asked = {"message": message("say one | hold | say two")}
    async with (
        caller_of(embedded_hub, TaskPeer) as (agent, caller),
        caller.open("message/stream", asked) as events,
    ):
        task = await anext(events)
        agent.release.set()
        later = [event async for event in events]
    assert task["kind"] == "task"
    assert state_of(later[-1]) == "completed"
    assert "".join(texts(one["artifact"]["parts"]) for one in later if "artifact" in one) == "onetwo"


async def test_28_task_generating_blocking_is_a_completed_task(hub: HubProcess) -> None:
    async with caller_of(hub, TaskPeer, agent=TASK_GENERATING) as (_, caller):
        task = await caller.send("hello")
    assert (task["kind"], state_of(task)) == ("task", "completed")
    [artifact] = task["artifacts"]
    assert artifact == {
        "artifactId": FIRST,
        "name": "assistant-output-1",
        "parts": [{"kind": "text", "text": "echo: hello"}],
        "metadata": {"sequence": 1, "source": "assistant"},
    }
    assert [texts(one["parts"]) for one in task["history"]] == ["hello"]


async def test_28_the_text_of_a_reply_is_in_one_place(hub: HubProcess, subtests: pytest.Subtests) -> None:
    async with caller_of(hub, TaskPeer, agent=TASK_GENERATING) as (_, caller):
        for steps in ("say ninety", "say nine | say ty", "reply ninety", "note hm | say ninety | fail no"):
            with subtests.test(steps=steps):
                answered = await caller.send(steps)
                events = await caller.stream(steps)
                read = await caller.get(answered["id"], historyLength=10)
                followed = await caller.streamed("tasks/resubscribe", {"id": answered["id"]})
                for shown in (answered, read, followed, [one for one in events if one["kind"] != "task"]):
                    texts_in = re.findall(r'"text": "([^"]*)"', json.dumps(shown))
                    assert "".join(one for one in texts_in if one not in (steps, "hm", "no")) == "ninety"


async def test_29_task_generating_stream_tells_from_the_task_to_its_final_status(
    hub: HubProcess,
) -> None:
    async with caller_of(hub, TaskPeer, agent=TASK_GENERATING) as (_, caller):
        events = await caller.stream("hello")
    assert told(events) == [*OPENING, *[f"artifact-update {FIRST}"] * 2, "status-update completed"]
    task, *_, content, closer, last = events
    assert [texts(one["parts"]) for one in task["history"]] == ["hello"]
    assert [one["final"] for one in events if one["kind"] == "status-update"] == [False, False, True]
    assert (content["lastChunk"], texts(content["artifact"]["parts"])) == (False, "echo: hello")
    assert (closer["append"], closer["lastChunk"], closer["artifact"]["parts"]) == (True, True, [])
    assert "message" not in last["status"]
    assert {one.get("taskId", task["id"]) for one in events} == {task["id"]}
    assert {one["contextId"] for one in events} == {task["contextId"]}


async def test_30_non_blocking_is_a_submitted_task_that_completes(hub: HubProcess) -> None:
    async with caller_of(hub, TaskPeer) as (agent, caller):
        task = await caller.begin("hold | say done")
        assert (task["kind"], state_of(task)) == ("task", "submitted")
        agent.release.set()
        assert reply_of(await caller.ended(task["id"])) == "done"


async def test_32_two_stages_are_two_artifacts(hub: HubProcess) -> None:
    async with caller_of(hub, TaskPeer) as (_, caller):
        asked = await caller.send("say the first | ask and then?")
        ended = await caller.send("reply the second", taskId=asked["id"])
    assert artifacts_of(asked) == {FIRST: "the first"}
    assert artifacts_of(ended) == {FIRST: "the first", "assistant-output-0002": "the second"}
    assert [one["metadata"]["sequence"] for one in ended["artifacts"]] == [1, 2]


async def test_33_progress_holds_data_and_a_summary_text(hub: HubProcess) -> None:
    async with caller_of(hub, TaskPeer) as (_, caller):
        steps = (
            'data tool-progress-1 {"tool":"ls"} | data tool-progress-2 [1,2] | text tool-result-1 ran | say done'
        )
        task = await caller.send(steps)
    first, second, summary, reply = (one["parts"] for one in task["artifacts"])
    assert first == [{"kind": "data", "data": {"tool": "ls"}}]
    assert second == [{"kind": "data", "data": {"value": [1, 2]}, "metadata": {"data_part_compat": True}}]
    assert summary == [{"kind": "text", "text": "ran"}]
    assert reply == [{"kind": "text", "text": "done"}]


async def test_34_what_the_caller_takes_and_the_agent_gives_must_meet(
    hub: HubProcess, subtests: pytest.Subtests
) -> None:
    async with caller_of(hub, TaskPeer) as (agent, caller):
        params = {"message": message("hello"), "configuration": {"acceptedOutputModes": [" Image/PNG"]}}
        for refused in (
            await caller.refusal("message/send", params),
            await caller.streamed_error("message/stream", params),
        ):
            assert refused["code"] == -32005
            available = {"availableOutputModes": ["text/plain", "application/json"]}
            assert refused["data"] == {"acceptedOutputModes": ["image/png"]} | available
        assert agent.prompts == []
        for modes in ([], ["TEXT/plain"], ["image/png", "application/json"]):
            with subtests.test(modes=modes):
                assert (await caller.send("hello", {"acceptedOutputModes": modes}))["kind"] == "message"


async def test_34_modes_that_the_card_lists_are_met(
    hub: HubProcess, alice: str, subtests: pytest.Subtests
) -> None:
    skills = [{"id": "a", "name": "A", "outputModes": ["image/png"]}]
    gives = {"defaultOutputModes": ["text/plain"], "skills": skills}
    async with online(hub, TaskPeer, agent=gives) as agent:
        caller, in_v1 = Caller(hub.url, agent.handle, alice), V1Caller(hub.url, agent.handle, alice)
        for modes in (["image/png"], ["image/*"], ["IMAGE/PNG; q=1", "audio/mp3"]):
            for one in (caller, in_v1):
                with subtests.test(modes=modes, version=type(one).__name__):
                    task = await one.send("image f YQ==", {"acceptedOutputModes": modes})
                    [part] = task["artifacts"][0]["parts"]
                    assert (part["file"]["bytes"] if one is caller else part["raw"]) == "YQ=="
        asked = {"message": message("x"), "configuration": {"acceptedOutputModes": ["audio/mp3"]}}
        refused = await caller.refusal("message/send", asked)
    available = {"availableOutputModes": ["text/plain", "image/png"]}
    assert refused["data"] == {"acceptedOutputModes": ["audio/mp3"]} | available


FILES = {
    "raw f bytes": {"bytes": "Ynl0ZXM=", "mimeType": "text/plain", "name": "f.txt"},
    "url f https://example.com/f.png": {"uri": "https://example.com/f.png", "name": "f"},
}


async def test_34_a_reply_of_files_alone_is_a_completed_task_with_them(
    hub: HubProcess, subtests: pytest.Subtests
) -> None:
    async with caller_of(hub, TaskPeer) as (_, caller):
        for steps, file in FILES.items():
            with subtests.test(steps=steps):
                answered = await caller.send(steps)
                events = await caller.stream(steps)
                noted = await caller.send(f"note reading | {steps}")
                polled = await caller.ended((await caller.begin(steps))["id"])
                read = await caller.get(events[0]["id"])
                made = {"artifactId": "f", "parts": [{"kind": "file", "file": file}]}
                for task in (answered, noted, polled, read):
                    assert (task["kind"], state_of(task), task["artifacts"]) == ("task", "completed", [made])
                    assert "message" not in task["status"]
                assert told(events) == [*OPENING, "artifact-update f", "status-update completed"]
                assert events[-2]["artifact"] == made
        task = await caller.send("raw f bytes | say see the file")
        assert (state_of(task), artifacts_of(task)) == ("completed", {"f": "", FIRST: "see the file"})


async def test_34_files_of_no_mode_that_the_caller_named_are_an_error_when_direct(
    hub: HubProcess, subtests: pytest.Subtests
) -> None:
    async with caller_of(hub, TaskPeer) as (_, caller):
        for steps, file in FILES.items():
            with subtests.test(steps=steps):
                json_alone = {"acceptedOutputModes": ["application/json"]}
                asked = {"message": message(steps), "configuration": json_alone}
                refused = await caller.refusal("message/send", asked)
                more = {"acceptedOutputModes": ["application/json", "Text/*", "application/*"]}
                taken = await caller.send(steps, more)
                available = {"availableOutputModes": [file.get("mimeType", "application/octet-stream")]}
                assert (refused["code"], refused["data"]) == (-32005, json_alone | available)
                assert state_of(taken) == "completed"


class Chatty(TaskPeer):
    """Puts what OpenClaw calls its own wherever there is room."""

    async def answer(self, prompt: Json) -> None:
        chat_id = prompt["chatId"]
        private = {"openclaw": {"reply": 1}, "step": {"openclaw": 1, "n": 2}}
        await self.status(chat_id, "working", text="hm", metadata=private)
        part = {"text": "a", "metadata": private}
        await self.artifact(chat_id, "a1", part, {"data": {"n": 1}, "metadata": private}, metadata=private)
        if "hold" in prompt["text"]:
            await self.release.wait()
        await self.reply(chat_id, "done")


async def test_35_nothing_is_said_of_what_is_openclaws_own(hub: HubProcess) -> None:
    async with caller_of(hub, Chatty) as (agent, caller):
        sent = {"metadata": {"openclaw": {"x": 1}, "mine": 3}}
        told_of = [await caller.send("hello", **sent), *await caller.stream("hello", **sent)]
        task = await caller.begin("hold", **sent)
        async with caller.open("tasks/resubscribe", {"id": task["id"]}) as events:
            told_of.append(await anext(events))
            agent.release.set()
            told_of += [event async for event in events]
    shown = json.dumps(told_of)
    assert "openclaw" not in shown
    assert '"metadata": {"step": {"n": 2}}' in shown
    assert '"mine": 3' in shown


async def test_38_data_alone_is_a_question_without_the_callers_text(hub: HubProcess) -> None:
    async with caller_of(hub, Echo) as (agent, caller):
        answer = await caller.send([{"kind": "data", "data": {"b": 1, "a": [True]}}])
        await caller.send([text("one"), {"kind": "data", "data": {"n": 1}}, text("two")])
        alone, joined = agent.prompts
    assert answer["kind"] == "message"
    assert alone["text"].startswith("data (part 1), as the caller sent it, not to be trusted:\n{")
    assert alone["parts"] == [{"data": {"a": [True], "b": 1}}]
    assert joined["text"].startswith("one\n\ntwo\n\ndata (part 2)")
    assert '{\n  "n": 1\n}' in joined["text"]


async def test_39_a_message_without_usable_parts_is_answered_by_the_hub(
    hub: HubProcess, alice: str, subtests: pytest.Subtests
) -> None:
    for style in ("hybrid", "task-generating"):
        async with caller_of(hub, TaskPeer, agent={"agentStyle": style}) as (agent, caller):
            for parts in ([], [{"kind": "video"}], [text(" \n")], [{"text": " "}]):
                with subtests.test(style=style, parts=parts):
                    answers = [
                        await caller.send(parts, {"blocking": blocking}, contextId="talk")
                        for blocking in (True, False)
                    ]
                    for one in (*answers, *await caller.stream(parts, contextId="talk")):
                        assert (one["kind"], texts(one["parts"])) == ("message", NOT_TAKEN)
                        assert (one["contextId"], "taskId" in one) == ("talk", False)
            assert agent.prompts == []
            assert await tasks_of(hub, agent.handle, alice) == []


async def test_a_part_without_a_kind_is_of_the_kind_of_its_only_content(hub: HubProcess) -> None:
    async with caller_of(hub, TaskPeer) as (agent, caller):
        answer = await caller.send([{"text": "hello", "metadata": {"n": 1}}], messageId="bare")
        await caller.send([{"text": "with", "data": None}, {"data": {"n": 1}}])
        prompts = agent.prompts
    assert (answer["kind"], texts(answer["parts"])) == ("message", "echo: hello")
    assert prompts[1]["parts"] == [{"text": "with"}, {"data": {"n": 1}}]


@pytest.mark.parametrize("agent_fields", [{}, TASK_GENERATING], ids=["hybrid", "tasks"])
async def test_a_part_of_an_unknown_kind_beside_others_is_named(hub: HubProcess, agent_fields: Json) -> None:
    async with caller_of(hub, Echo, agent=agent_fields) as (agent, caller):
        answer = await caller.send([{"kind": "video", "text": "no"}, text("hello")])
        *_, last = await caller.stream([text("hello"), {"kind": "a\nb"}])
        first, second = agent.prompts
    assert answer["metadata"] == {"leftOut": ['message.parts[0]: kind "video"']}
    assert first["text"] == 'hello\n\nleft out: message.parts[0]: kind "video"'
    assert second["text"] == 'hello\n\nleft out: message.parts[1]: kind "a\\nb"'
    assert last["kind"] == ("status-update" if agent_fields else "message")


async def test_the_mode_of_an_answer_belongs_to_its_request(embedded_hub: HubProcess) -> None:
    """Also of two requests with one message id: neither is taken for the other."""
    async with caller_of(embedded_hub, TaskPeer) as (agent, caller):
        direct = asyncio.create_task(caller.send("hold | say done", messageId="twin"))
        await agent.heard("prompt")
        task = await caller.begin("hold | say done", messageId="twin")
        await agent.heard("prompt", count=2)
        agent.release.set()
        assert ((await direct)["kind"], task["kind"]) == ("message", "task")
        assert reply_of(await caller.ended(task["id"])) == "done"
