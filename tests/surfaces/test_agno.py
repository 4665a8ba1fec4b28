"""The answers to Agno's client at `v1/message:send` and `v1/message:stream`: a Task of messages, or messages."""

import json
from typing import Any

import httpx
import pytest

from lab.agents import TaskPeer, online
from lab.callers import Json, bearer, envelope, rpc_path, web
from lab.hub_process import HubProcess
from tests.v1.caller import Caller as V1Caller


def params(text: str, **more: str) -> Json:
    """As Agno sends them: the message has no `kind`."""
    return {"message": {"messageId": "m1", "role": "user", "parts": [{"kind": "text", "text": text}], **more}}


async def post(hub: HubProcess, handle: str, token: str, path: str, body: Any) -> httpx.Response:
    """To the last process of the hub; its agents are at the first."""
    async with web(hub.urls[-1], headers=bearer(token)) as client:
        return await client.post(f"{rpc_path(handle)}/{path}", json=body)


async def ask(hub: HubProcess, agent: TaskPeer, token: str, text: str, **more: str) -> Json:
    """The Task of an envelope that asks."""
    body = envelope("message/send", params(text, **more))
    answer = await post(hub, agent.handle, token, "v1/message:send", body)
    assert answer.status_code == 200, answer.text
    shown: Json = answer.json()
    assert (shown["jsonrpc"], shown["id"], shown["result"]["kind"]) == ("2.0", "client-1", "task")
    task: Json = shown["result"]
    return task


async def stream(hub: HubProcess, agent: TaskPeer, token: str, text: str, **more: str) -> list[Json]:
    body = envelope("message/stream", params(text, **more))
    answer = await post(hub, agent.handle, token, "v1/message:stream", body)
    assert answer.headers["content-type"] == "text/event-stream"
    lines = [line for line in answer.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line.removeprefix("data: "))["result"] for line in lines]


def said(messages: list[Json]) -> list[str]:
    """The texts of an agent's messages."""
    return [one["parts"][0]["text"] for one in messages if one.get("role") == "agent"]


async def test_an_answer_is_a_message_of_its_tasks_history(hub: HubProcess, alice: str) -> None:
    async with online(hub, TaskPeer) as agent:
        task = await ask(hub, agent, alice, 'note reading | text a one | data b {"pages": 2} | say three')
        assert task["status"]["state"] == "completed"
        assert [one["role"] for one in task["history"]] == ["user", "agent"]
        assert said(task["history"]) == ['one\n\n{"pages": 2}\n\nthree']
        assert "artifacts" not in task
        plain = await ask(hub, agent, alice, "hello")
    assert said(plain["history"]) == ["echo: hello"]


async def test_a_file_is_an_artifact_with_its_url_or_bytes(hub: HubProcess, alice: str) -> None:
    async with online(hub, TaskPeer) as agent:
        task = await ask(hub, agent, alice, "raw f bytes | url g https://files.example/b.png | say done")
    shown = [(one["name"], one["mimeType"], one["uri"]) for one in task["artifacts"]]
    assert shown == [
        ("f.txt", "text/plain", "data:text/plain;base64,Ynl0ZXM="),
        ("g", "application/octet-stream", "https://files.example/b.png"),
    ]
    assert said(task["history"]) == ["done"]


async def test_a_message_in_a_context_continues_the_task_that_waits_there(hub: HubProcess, alice: str) -> None:
    async with online(hub, TaskPeer) as agent:
        asked = await ask(hub, agent, alice, "ask which one?")
        assert (asked["status"]["state"], said(asked["history"])) == ("input-required", ["which one?"])
        context = asked["contextId"]
        answered = await ask(hub, agent, alice, "the second", contextId=context)
        assert (answered["id"], said(answered["history"])) == (asked["id"], ["you said: the second"])
        after = await ask(hub, agent, alice, "another", contextId=context)
    assert (after["contextId"], after["id"] == asked["id"]) == (context, False)
    assert said(after["history"]) == ["echo: another"]


async def test_a_later_task_of_the_context_does_not_hide_the_one_that_waits(hub: HubProcess, alice: str) -> None:
    async with online(hub, TaskPeer) as agent:
        asked = await ask(hub, agent, alice, "ask which one?")
        other = await V1Caller(hub.url, agent.handle, alice).send("say done", contextId=asked["contextId"])
        answered = await ask(hub, agent, alice, "the second", contextId=asked["contextId"])
    assert (answered["id"], other["id"] == asked["id"]) == (asked["id"], False)
    assert said(answered["history"]) == ["you said: the second"]


async def test_words_before_a_question_are_not_repeated_after_its_answer(hub: HubProcess, alice: str) -> None:
    async with online(hub, TaskPeer) as agent:
        asked = await ask(hub, agent, alice, "say one moment | ask which one?")
        assert said(asked["history"]) == ["one moment\n\nwhich one?"]
        told = await stream(hub, agent, alice, "say or | ask that?", contextId=asked["contextId"])
        assert said(told) == ["or", "\n\nthat?"]
        answered = await ask(hub, agent, alice, "yes", contextId=asked["contextId"])
    assert {one["taskId"] for one in told} == {asked["id"]} == {answered["id"]}
    assert said(answered["history"]) == ["you said: yes"]


@pytest.mark.parametrize("steps", ["complete done", "note on it | complete done", "reply done", "say do | say ne"])
async def test_a_stream_has_the_same_words_as_a_task(hub: HubProcess, alice: str, steps: str) -> None:
    async with online(hub, TaskPeer) as agent:
        told, task = await stream(hub, agent, alice, steps), await ask(hub, agent, alice, steps)
    assert ("".join(said(told)), said(task["history"])) == ("done", ["done"])


async def test_a_turn_without_a_reply_gets_a_sentence_of_the_hub(hub: HubProcess, alice: str) -> None:
    async with online(hub, TaskPeer) as agent:
        told, task = await stream(hub, agent, alice, "note on it"), await ask(hub, agent, alice, "note on it")
    words = "The agent completed without a user-visible reply."
    assert (said(told), said(task["history"])) == ([words], [words])


async def test_a_refusal_is_the_last_message(hub: HubProcess, alice: str) -> None:
    async with online(hub, TaskPeer, agent={"dailyBudgetQueries": 0}) as agent:
        task = await ask(hub, agent, alice, "hello")
        told = await stream(hub, agent, alice, "hello")
    words = f"agent @{agent.handle} hit its daily budget (0)"
    assert (task["status"]["state"], said(task["history"])) == ("failed", [words])
    assert (said(told), told[-1]["status"]["state"], told[-1]["final"]) == ([words], "failed", True)


async def test_a_stream_has_messages_and_ends_with_a_final_state(hub: HubProcess, alice: str) -> None:
    async with online(hub, TaskPeer) as agent:
        told = await stream(hub, agent, alice, "note reading | say a | say b | text c three | fail out of ink")
    assert said(told) == ["a", "b", "\n\nthree", "\n\nout of ink"]
    states = [(one["status"]["state"], one["final"]) for one in told if one["kind"] == "status-update"]
    assert states[-1] == ("failed", True)
    assert not any(final for _, final in states[:-1])
    assert {one["kind"] for one in told} == {"message", "status-update"}


async def test_a_stream_without_a_task_ends_in_an_answer(hub: HubProcess, alice: str) -> None:
    async with online(hub, TaskPeer) as agent:
        told = await stream(hub, agent, alice, "hello")
    assert said(told) == ["echo: hello"]
    assert (told[-1]["status"]["state"], told[-1]["final"]) == ("completed", True)


async def test_an_invalid_request_has_an_http_status(hub: HubProcess, alice: str) -> None:
    async with online(hub, TaskPeer) as agent:
        other = envelope("tasks/get", {"id": "task-1"})
        broken = envelope("message/send", {"message": {"role": "user"}})
        for body, status in ((other, 404), (broken, 400)):
            answer = await post(hub, agent.handle, alice, "v1/message:send", body)
            assert (answer.status_code, "error" in answer.json()) == (status, True)
        refused = await post(hub, agent.handle, "cw_sess_" + "0" * 32, "v1/message:send", other)
        assert refused.status_code == 401
        bare = await post(hub, agent.handle, alice, "v1/message:send", params("hello"))
        assert bare.json()["error"]["message"].startswith("want A2A-Version: 1.0")


async def test_the_task_of_another_caller_is_not_continued(hub: HubProcess, alice: str, bob: str) -> None:
    async with online(hub, TaskPeer) as agent:
        asked = await ask(hub, agent, alice, "ask which one?")
        other = await ask(hub, agent, bob, "the second", contextId=asked["contextId"])
    assert (other["id"] == asked["id"], said(other["history"])) == (False, ["echo: the second"])
