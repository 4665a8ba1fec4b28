"""A question that never left the hub may be sent again with the same key or id, and is asked then."""

from typing import Any

import pytest

from lab.callers import Json, bearer, web
from lab.hub_process import HubProcess
from lab.processes import free_port
from tests.gateway.client import GatewayClient
from tests.remote.servers import Remote, Seen, sdk_app, serving
from tests.remote.test_hubs import publish, words
from tests.v1.caller import Caller, message, texts

OFFLINE = "agent channel offline"
CHAT = "/v1/chat/completions"


async def complete(hub: HubProcess, token: str, key: str) -> tuple[int, Json]:
    """A chat completion with an Idempotency-Key: the status and the body."""
    asked = {"model": "agent/quinn/far", "messages": [{"role": "user", "content": "hi"}]}
    async with web(hub.url, headers=bearer(token) | {"Idempotency-Key": key}) as client:
        answer = await client.post(CHAT, json=asked)
    return answer.status_code, answer.json()


@pytest.mark.parametrize("near", ["embedded"], indirect=True)
async def test_a_question_that_found_no_server_is_asked_when_it_comes_again(near: HubProcess) -> None:
    hub = near
    alice, port = hub.mint("alice", "session"), free_port()
    far = Remote(f"http://127.0.0.1:{port}", Seen())
    app = sdk_app(far.url, far.seen)
    caller, asked = Caller(hub.url, "quinn/far", alice), {"message": message("hi")}
    gateway_message: Json = {
        "content": {"role": "user", "content": "hi"},
        "agent": "@quinn/far",
        "id": "m-1",
        "metadata": {"requiresResponse": True, "correlationId": "c-1"},
    }

    async def ask_all(client: GatewayClient) -> tuple[Json, tuple[int, Json], Json]:
        """One question by each surface that remembers questions."""
        task: Json = (await caller.call("SendMessage", asked, Idempotency_Key="k-1"))["task"]
        seen = len(client.frames)
        await client.send("message", **gateway_message)
        answered = await client.find_any(
            lambda one: one.get("metadata", {}).get("correlationId") == "c-1", after=seen
        )
        return task, await complete(hub, alice, "k-2"), answered

    async with GatewayClient(hub.url, alice) as client:
        await client.find("auth-response")
        async with serving(app, port):
            await publish(hub, far, "quinn")
        task, (status, _), error = await ask_all(client)
        assert texts(task["status"]["message"]["parts"]) == OFFLINE
        assert (status, error["type"]) == (424, "error")
        async with serving(app, port):
            task, (status, completed), reply = await ask_all(client)
            assert "echo: hi" in words(task)
            assert (status, completed["choices"][0]["message"]["content"]) == (200, "echo: hi")
            assert reply["content"]["content"] == "echo: hi"
            again, (_, completed_again), reply_again = await ask_all(client)
            assert (again, completed_again["id"], reply_again["id"]) == (task, completed["id"], reply["id"])
            assert far.seen.texts == ["hi"] * 3


async def test_a_further_message_that_found_no_server_leaves_its_task_waiting(near: HubProcess) -> None:
    hub = near
    caller, port = Caller(hub.url, "wanda/far", hub.mint("alice", "session")), free_port()
    far = Remote(f"http://127.0.0.1:{port}", Seen())
    app = sdk_app(far.url, far.seen)
    async with serving(app, port):
        await publish(hub, far, "wanda")
        task = await caller.send("ask me")
    answer: dict[str, Any] = {"message": message("the red one", taskId=task["id"], contextId=task["contextId"])}
    refused = await caller.refusal("SendMessage", answer, Idempotency_Key="k-3")
    assert (refused["code"], refused["message"]) == (-32015, OFFLINE)
    waiting = await caller.call("GetTask", {"id": task["id"]})
    assert waiting["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert waiting["status"]["message"] == task["status"]["message"]
    async with caller.open("SendStreamingMessage", answer, Idempotency_Key="k-4") as events:
        seen = [event async for event in events]
    assert seen[-1].state == "INPUT_REQUIRED"
    async with serving(app, port):
        done = (await caller.call("SendMessage", answer, Idempotency_Key="k-3"))["task"]
        assert done["status"]["state"] == "TASK_STATE_COMPLETED"
        assert (await caller.call("SendMessage", answer, Idempotency_Key="k-3"))["task"] == done
