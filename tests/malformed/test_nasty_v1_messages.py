"""Rows 17 to 25 of the hostile-input table (`wire/a2a.md` section 6) in A2A 1.0: messages, tasks, both ways.

Row 25's push addresses are in the tests of pushes.
"""

import asyncio
import json

import pytest

from lab.callers import rpc_path
from lab.hub_process import HubProcess
from lab.waiting import eventually
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


async def test_row_22_an_identical_message_joins_while_it_is_answered_and_is_new_later(
    way_apart: BindingClient,
) -> None:
    asked = message(messageId="same", parts=[{"text": "hold | reply done"}])
    asking = asyncio.create_task(way_apart.ask(asked))
    await way_apart.agent.heard("prompt")
    joined = await way_apart.ask(asked | {"configuration": {"returnImmediately": True}})
    way_apart.agent.release.set()
    first = await asking
    assert joined["id"] == first["id"]
    assert way_apart.reached == 1
    later, other = await way_apart.ask(asked), await way_apart.ask(message(messageId="same"))
    assert len({first["id"], later["id"], other["id"]}) == 3


async def test_row_23_of_two_messages_to_a_waiting_task_one_goes_on(way_apart: BindingClient) -> None:
    asked = await way_apart.ask(message(parts=[{"text": "ask which?"}]))
    texts = ["hold | reply one", "hold | reply two"]
    both = [
        asyncio.create_task(way_apart.call("SendMessage", message(taskId=asked["id"], parts=[{"text": text}])))
        for text in texts
    ]
    await way_apart.agent.heard("prompt", count=2)
    done, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    way_apart.refused(done.pop().result(), "UNSUPPORTED_OPERATION")
    way_apart.agent.release.set()
    answers = [answer.json() for answer in await asyncio.gather(*both)]
    assert len([one for one in answers if "error" in one]) == 1
    assert way_apart.reached == 2


async def test_row_23_a_cancel_that_comes_late_is_refused(way: BindingClient) -> None:
    done = await way.ask(message())
    way.refused(await way.call("CancelTask", {"id": done["id"]}), "TASK_NOT_CANCELABLE")
    assert way.result(await way.call("GetTask", {"id": done["id"]})) == done


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


async def test_row_25_a_caller_who_drops_a_stream_does_not_stop_the_task(way_apart: BindingClient) -> None:
    asked = message(parts=[{"text": "hold | reply done"}])
    body = way_apart.wrap(json.dumps(asked), "SendStreamingMessage")
    path = rpc_path(way_apart.agent.handle) + ("" if way_apart.is_rpc else "/message:stream")
    async with way_apart.client.stream("POST", path, content=body, headers=way_apart.headers) as response:
        async for line in response.aiter_lines():
            if line.startswith("data: "):
                first = json.loads(line[6:])
                break
        await way_apart.agent.heard("prompt")
    task = (first["result"] if way_apart.is_rpc else first)["task"]
    way_apart.agent.release.set()

    async def ended() -> bool:
        state: str = way_apart.result(await way_apart.call("GetTask", {"id": task["id"]}))["status"]["state"]
        return state == "TASK_STATE_COMPLETED"

    await eventually(ended, "the task completes")


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
