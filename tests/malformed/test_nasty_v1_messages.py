"""Rows 17 to 24 of the hostile-input table (`wire/a2a.md` section 6) in A2A 1.0: messages, tasks, both ways.

Joins (22), late messages and cancels (23) and dropped streams are in tests/v1, push addresses in tests/pushes.
"""

import asyncio
import json

import pytest

from lab.callers import rpc_path
from lab.hub_process import HubProcess
from tests.http_json import V1
from tests.malformed.bindings import BindingClient, message

pytestmark = pytest.mark.asyncio(loop_scope="session")  # as the agent that all share
NO_TASK = "TASK_NOT_FOUND"


async def test_row_17_a_message_without_parts_is_refused(way: BindingClient) -> None:
    for parts in [[], ..., None, "hello", {}, {"text": "x"}]:
        await way.refuse_message(parts=parts)


BAD_PARTS = [{}, {"video": "x"}, {"kind": "text"}, {"text": "a", "data": {}}, {"raw": "YQ==", "url": "b"}]


async def test_row_17_a_part_holds_exactly_one_content(way: BindingClient) -> None:
    for part in BAD_PARTS:
        await way.refuse_message("message.parts[1]", parts=[{"text": "hello"}, part])


WRONG = [
    {"text": 5},
    {"text": ["a"]},
    {"raw": "not base64!"},
    {"raw": "YQ"},
    {"raw": 5},
    {"text": "a", "metadata": 5},
]


async def test_row_18_a_content_of_the_wrong_type_is_refused(way: BindingClient) -> None:
    for part in WRONG:
        seen = await way.post(way.wrap(json.dumps(message(parts=[{"text": "hello"}, part]))))
        assert "error" in seen.json(), seen.text
        assert way.reached == 0, part


async def test_row_18_metadata_must_be_an_object(way: BindingClient) -> None:
    for metadata in ["x", 5, []]:
        await way.refuse_message(metadata=metadata)
        answer = await way.post(way.wrap(json.dumps(message() | {"metadata": metadata})))
        way.refused(answer, "INVALID_PARAMS")


async def test_row_19_only_a_user_asks(way: BindingClient) -> None:
    for role in ["ROLE_AGENT", "user", "agent", "", None, ..., {}, 2, 0, True, "1"]:
        await way.refuse_message(role=role)


async def test_row_19_a_role_may_be_its_number(way: BindingClient) -> None:
    assert (await way.ask(message(role=1)))["history"][0]["role"] == "ROLE_USER"


async def test_row_20_a_message_needs_a_fair_id(way: BindingClient) -> None:
    for message_id in ["", ..., None, 5, "m" * 10_000]:
        await way.refuse_message(messageId=message_id)


async def test_row_21_another_version_is_refused(way: BindingClient) -> None:
    for version in ["99.0", "abc", "0.5", "1.7", "1.0, 1.0", "0.3,1.0"]:
        answer = await way.post(way.wrap(json.dumps(message())), A2A_Version=version)
        way.refused(answer, "VERSION_NOT_SUPPORTED")
        assert way.reached == 0, version


@pytest.mark.parametrize(("versions", "is_good"), [(["1.0", "1.0"], True), (["1.0", "0.3"], False)])
async def test_row_21_a_repeated_version_must_be_the_same(
    way: BindingClient, versions: list[str], is_good: bool
) -> None:
    headers = [(name, value) for name, value in way.headers.items() if name not in V1]
    named = [*headers, *(("A2A-Version", version) for version in versions)]
    path = rpc_path(way.agent.handle) + ("" if way.is_rpc else "/message:send")
    answer = await way.client.post(path, content=way.wrap(json.dumps(message())), headers=named)
    assert ("error" not in answer.json()) is is_good
    assert way.reached == is_good


async def test_row_21_a_patch_of_1_0_is_1_0(way: BindingClient) -> None:
    assert way.result(await way.post(way.wrap(json.dumps(message())), A2A_Version="1.0.1"))["task"]


async def test_row_23_of_two_cancels_at_once_each_is_answered_and_the_task_ends_once(
    way_apart: BindingClient,
) -> None:
    asked = await way_apart.ask(message(parts=[{"text": "ask which?"}]))
    both = await asyncio.gather(*(way_apart.call("CancelTask", {"id": asked["id"]}) for _ in range(2)))
    canceled = [answer for answer in both if "error" not in answer.json()]
    assert canceled
    for answer in canceled:
        assert way_apart.result(answer)["status"]["state"] == "TASK_STATE_CANCELED"
    for answer in both:
        if answer not in canceled:
            way_apart.refused(answer, "TASK_NOT_CANCELABLE")


TASK_IDS = ["..x", "task-" + "x" * 10_000, "task-\u00fc", "task-' OR 1=1 --", "*", "task-" + "0" * 32]


async def test_row_24_an_odd_task_id_is_simply_not_found(way: BindingClient, embedded_hub: HubProcess) -> None:
    mine = await way.ask(message(parts=[{"text": "ask which?"}]))
    binding = "JSON-RPC" if way.is_rpc else "HTTP+JSON"
    bob = BindingClient(binding, way.agent, embedded_hub.mint("bob", "session"), way.client)
    for task_id in TASK_IDS:
        for method in ("GetTask", "CancelTask", "SubscribeToTask"):
            foreign = await bob.call(method, {"id": mine["id"]})
            way.refused(foreign, NO_TASK, 404)
            assert (await way.call(method, {"id": task_id})).content == foreign.content, task_id[:20]
        told = await way.call("SendMessage", message(taskId=task_id))
        assert told.content == (await bob.call("SendMessage", message(taskId=mine["id"]))).content, task_id[:20]
        way.refused(told, NO_TASK, 404)


async def test_a_history_length_may_be_text_but_never_a_fraction(way: BindingClient) -> None:
    task = await way.ask(message())
    for length in ("0", 0):
        assert "history" not in way.result(await way.call("GetTask", {"id": task["id"], "historyLength": length}))
    for length in (1.5, "1.5", -1, "x", 2**31):
        answer = await way.call("GetTask", {"id": task["id"], "historyLength": length})
        way.refused(answer, "INVALID_PARAMS")


async def test_tasks_are_not_listed_by_a_state_that_is_none(way: BindingClient) -> None:
    for status in ["WORKING", "working", "TASK_STATE_NOPE", "99"]:
        way.refused(await way.call("ListTasks", {"status": status}), "INVALID_PARAMS")
