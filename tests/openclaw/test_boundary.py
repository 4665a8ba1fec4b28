"""Behaviours 17 to 23: what is decided before an agent is asked."""

import json
from typing import Any

import pytest

from lab.agents import Echo, TaskPeer, online
from lab.callers import Json, bearer, envelope, rpc_path, web
from lab.hub_process import HubProcess
from tests.openclaw.caller import TASK_GENERATING, Caller, message, text

FILE: Json = {"kind": "file", "file": {"uri": "https://example.com/a.png", "mimeType": "image/png"}}
BODY_LIMIT = 1_048_576


async def raw(hub: HubProcess, handle: str, token: str, body: bytes | str) -> tuple[int, Json]:
    """The answer to these very bytes."""
    headers = bearer(token) | {"Content-Type": "application/json"}
    async with web(hub.url) as client:
        response = await client.post(rpc_path(handle), content=body, headers=headers)
    return response.status_code, response.json()


@pytest.mark.parametrize("verb", ["set", "get", "list", "delete"])
async def test_17_push_configs_are_no_method(hub: HubProcess, alice: str, verb: str) -> None:
    async with online(hub, Echo) as agent:
        refusal = await Caller(hub.url, agent.handle, alice).refusal(
            f"tasks/pushNotificationConfig/{verb}", {"id": "task-x", "taskId": "task-x"}
        )
        assert refusal["code"] == -32601
        assert agent.prompts == []


async def test_17_a_push_address_in_a_send_is_not_heeded(hub: HubProcess, alice: str) -> None:
    async with online(hub, Echo) as agent:
        answer = await Caller(hub.url, agent.handle, alice).send(
            "hello", {"pushNotificationConfig": {"url": "http://127.0.0.1/"}, "blocking": True}
        )
    assert answer["kind"] == "message"


async def test_18_streams_answer_as_events(hub: HubProcess, alice: str) -> None:
    async with online(hub, TaskPeer, agent=TASK_GENERATING) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        events = await caller.stream("hello")  # checks the media type
        again = await caller.streamed("tasks/resubscribe", {"id": events[0]["id"]})
    assert again[0]["kind"] == "task"


@pytest.mark.parametrize("count", [0, 1, 2])
async def test_19_a_batch_is_one_error_without_an_id(hub: HubProcess, alice: str, count: int) -> None:
    async with online(hub, Echo) as agent:
        batch = json.dumps([envelope("message/send", {"message": message("hello")}, 7)] * count)
        status, answer = await raw(hub, agent.handle, alice, batch)
        assert agent.prompts == []
    assert (status, answer["id"], answer["error"]["code"]) == (200, None, -32600)


@pytest.mark.parametrize("rpc_id", [1.5, {}, [1], True])
async def test_20_an_id_of_another_type_is_refused(hub: HubProcess, alice: str, rpc_id: Any) -> None:
    async with online(hub, Echo) as agent:
        body = json.dumps(envelope("message/send", {"message": message("hello")}, rpc_id))
        status, answer = await raw(hub, agent.handle, alice, body)
        assert agent.prompts == []
    assert (status, answer["id"], answer["error"]["code"]) == (200, None, -32600)


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("blocking", [True, False])
async def test_21_a_file_anywhere_is_refused_and_nothing_is_asked(
    hub: HubProcess, alice: str, place: int, blocking: bool
) -> None:
    parts = [text("a"), text("b")]
    parts.insert(place, FILE)
    async with online(hub, Echo) as agent:
        refusal = await Caller(hub.url, agent.handle, alice).refusal(
            "message/send", {"message": message(parts), "configuration": {"blocking": blocking}}
        )
        assert agent.prompts == []
    assert refusal["code"] == -32602
    assert f"message.parts[{place}].kind=file" in refusal["message"]


async def test_22_a_refused_stream_is_a_stream_of_one_error(hub: HubProcess, alice: str) -> None:
    async with online(hub, Echo) as agent:
        refusal = await Caller(hub.url, agent.handle, alice).streamed_error(
            "message/stream", {"message": message([FILE])}
        )
        assert agent.prompts == []
    assert refusal["code"] == -32602
    assert "message.parts[0].kind=file" in refusal["message"]


async def test_23_a_body_over_the_limit_is_refused_and_one_at_the_limit_is_not(
    hub: HubProcess, alice: str
) -> None:
    async with online(hub, Echo) as agent:
        body = json.dumps(envelope("message/send", {"message": message("hello")}, 7))
        at_limit = body + " " * (BODY_LIMIT - len(body))
        assert (await raw(hub, agent.handle, alice, at_limit))[1]["result"]["kind"] == "message"
        status, answer = await raw(hub, agent.handle, alice, at_limit + " ")
        assert (status, answer["error"]["code"]) == (413, -32600)
        assert len(agent.prompts) == 1
