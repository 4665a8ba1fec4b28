"""Behaviours 17 to 23: what is decided before an agent is asked."""

import json

import pytest

from lab.agents import Echo, online
from lab.callers import Json, bearer, envelope, rpc_path, web
from lab.hub_process import HubProcess
from tests.openclaw.caller import caller_of, message, text

FILE: Json = {"kind": "file", "file": {"uri": "https://example.com/a.png", "mimeType": "image/png"}}
BODY_LIMIT = 1_048_576


async def raw(hub: HubProcess, handle: str, token: str, body: bytes | str) -> tuple[int, Json]:
    """The answer to these very bytes."""
    headers = bearer(token) | {"Content-Type": "application/json"}
    async with web(hub.url) as client:
        response = await client.post(rpc_path(handle), content=body, headers=headers)
    return response.status_code, response.json()


async def test_17_push_configs_are_no_method(hub: HubProcess, subtests: pytest.Subtests) -> None:
    async with caller_of(hub, Echo) as (agent, caller):
        for verb in ("set", "get", "list", "delete"):
            with subtests.test(verb=verb):
                refusal = await caller.refusal(
                    f"tasks/pushNotificationConfig/{verb}", {"id": "task-x", "taskId": "task-x"}
                )
                assert refusal["code"] == -32601
        assert agent.prompts == []
        address = {"pushNotificationConfig": {"url": "http://127.0.0.1/"}, "blocking": True}
        assert (await caller.send("hello", address))["kind"] == "message"  # an address in a send is not heeded


async def test_19_a_batch_or_an_id_of_another_type_is_one_error_without_an_id(hub: HubProcess, alice: str) -> None:
    asked = {"message": message("hello")}
    batches = [[envelope("message/send", asked, 7)] * count for count in range(3)]
    async with online(hub, Echo) as agent:
        for body in (*batches, *(envelope("message/send", asked, rpc_id) for rpc_id in (1.5, {}, [1], True))):
            status, answer = await raw(hub, agent.handle, alice, json.dumps(body))
            assert (status, answer["id"], answer["error"]["code"]) == (200, None, -32600), body
        assert agent.prompts == []


async def test_21_a_file_anywhere_is_refused_and_nothing_is_asked(hub: HubProcess) -> None:
    async with caller_of(hub, Echo) as (agent, caller):
        for place in range(3):
            parts = [text("a"), text("b")]
            parts.insert(place, FILE)
            sent = {"message": message(parts)}
            for refusal in (
                await caller.refusal("message/send", sent),
                await caller.refusal("message/send", sent | {"configuration": {"blocking": False}}),
                await caller.streamed_error("message/stream", sent),
            ):
                assert refusal["code"] == -32602
                assert f"message.parts[{place}].kind=file" in refusal["message"]
        assert agent.prompts == []


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
