"""Rows of the hostile-input table (`wire/a2a.md` section 6) in the dialect of A2A 1.0, over both bindings.

The hub's own dialect has them in tests/surfaces. Row 25's push addresses are in the tests of pushes.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.callers import Json, bearer, envelope, question, rpc_path, web
from tests.http_json import V1, refusal
from tests.hub_process import HubProcess
from tests.malformed.sound import PATHS
from tests.peers import TaskPeer, online
from tests.waiting import eventually

MIB = 1024 * 1024
NO_TASK = "TASK_NOT_FOUND"


class Way:
    """One agent asked in A2A 1.0 over one binding."""

    def __init__(self, binding: str, agent: TaskPeer, token: str, client: httpx.AsyncClient) -> None:
        self.is_rpc, self.agent, self.client = binding == "JSON-RPC", agent, client
        self.headers = bearer(token) | V1 | {"Content-Type": "application/json"}

    def wrap(self, params: str, method: str = "SendMessage") -> str:
        """A body around params that are JSON already."""
        return f'{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}}}' if self.is_rpc else params

    async def post(self, body: bytes | str, **headers: str) -> httpx.Response:
        """These very bytes as SendMessage."""
        content = body if isinstance(body, bytes) else body.encode()
        sent = self.headers | {name.replace("_", "-"): value for name, value in headers.items()}
        path = rpc_path(self.agent.handle) + ("" if self.is_rpc else "/message:send")
        return await self.client.post(path, content=content, headers=sent)

    async def call(self, method: str, params: Any) -> httpx.Response:
        """A call whose params are an object."""
        if self.is_rpc:
            body = envelope(method, params, 7)
            return await self.client.post(rpc_path(self.agent.handle), json=body, headers=self.headers)
        verb, path = PATHS[method]
        names = {name: value for name, value in params.items() if f"{{{name}}}" in path}
        rest: Json = {name: value for name, value in params.items() if name not in names}
        options: Json = {"json": rest} if verb == "POST" else {"params": rest}
        url = f"{rpc_path(self.agent.handle)}/{path.format_map(names)}"
        return await self.client.request(verb, url, headers=self.headers, **options)

    async def ask(self, params: Json) -> Json:
        """SendMessage; the task."""
        task: Json = self.result(await self.call("SendMessage", params))["task"]
        return task

    def result(self, response: httpx.Response) -> Json:
        assert response.status_code == 200, response.text
        answer: Json = response.json()
        if not self.is_rpc:
            return answer
        assert "result" in answer, answer
        assert answer["id"] == 7
        result: Json = answer["result"]
        return result

    def refused(self, response: httpx.Response, reason: str, status: int = 400, rpc_id: Any = 7) -> Json:
        """The error, if it is that one."""
        if not self.is_rpc:
            return refusal(response, status, reason)
        answer: Json = response.json()
        assert (answer["id"], type(answer["id"])) == (rpc_id, type(rpc_id)), answer
        assert answer["error"]["data"][0]["reason"] == reason, answer
        error: Json = answer["error"]
        return error

    async def refuse(self, body: bytes | str, reason: str, rpc_id: Any = 7, *, over_http: str = "") -> None:
        """These bytes get that error, and nothing reaches the agent."""
        seen = len(self.agent.prompts)
        self.refused(await self.post(body), reason if self.is_rpc else over_http or reason, rpc_id=rpc_id)
        assert len(self.agent.prompts) == seen

    async def refuse_message(self, naming: str = "", **changes: Any) -> None:
        """Such a message gets INVALID_PARAMS."""
        body = json.dumps(message(**changes))
        error = self.refused(await self.post(self.wrap(body)), "INVALID_PARAMS")
        assert naming in error["message"]
        assert self.agent.prompts == []


@pytest.fixture(params=["JSON-RPC", "HTTP+JSON"])
async def way(embedded_hub: HubProcess, request: pytest.FixtureRequest) -> AsyncIterator[Way]:
    async with online(embedded_hub, TaskPeer) as agent, web(embedded_hub.url) as client:
        yield Way(request.param, agent, embedded_hub.mint("alice", "session"), client)


@pytest.fixture
async def rpc(embedded_hub: HubProcess) -> AsyncIterator[Way]:
    async with online(embedded_hub, TaskPeer) as agent, web(embedded_hub.url) as client:
        yield Way("JSON-RPC", agent, embedded_hub.mint("alice", "session"), client)


def message(**changes: Any) -> Json:
    """Sound params with some members of the message replaced, or taken out by `...`."""
    changed = question("hello")["message"] | changes
    return {"message": {name: value for name, value in changed.items() if value is not ...}}


def sending(**changes: Any) -> str:
    """A sound envelope with some members replaced, or taken out by `...`."""
    body = envelope("SendMessage", question("hello"), 7) | changes
    return json.dumps({name: value for name, value in body.items() if value is not ...})


@pytest.mark.parametrize("body", ["[]", "[{}]", f"[{sending()}]", '"x"', "5", "null", "true"])
async def test_row_1_a_batch_or_a_bare_value_is_one_error(way: Way, body: str) -> None:
    await way.refuse(body, "INVALID_REQUEST", None, over_http="INVALID_PARAMS")


@pytest.mark.parametrize("body", ["", " ", "{", "HALF", "x"])
async def test_row_2_an_empty_or_truncated_body_is_a_parse_error(way: Way, body: str) -> None:
    whole = way.wrap(json.dumps(message()))
    await way.refuse(body.replace("HALF", whole[: len(whole) // 2]), "PARSE_ERROR", None)


@pytest.mark.parametrize("literal", [b'"\xff\xfe"', b'"\xc3"', b'"\xed\xa0\x80"', b"NaN", b"Infinity"])
async def test_row_3_bad_utf8_and_nan_are_parse_errors(way: Way, literal: bytes) -> None:
    body = way.wrap(json.dumps(message(contextId="C"))).encode()
    await way.refuse(body.replace(b'"C"', literal), "PARSE_ERROR", None)


async def test_row_4_a_byte_order_mark_is_accepted(way: Way) -> None:
    answer = await way.post(b"\xef\xbb\xbf" + way.wrap(json.dumps(message())).encode())
    assert way.result(answer)["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


async def test_row_5_a_request_without_id_is_not_executed(rpc: Way) -> None:
    await rpc.refuse(sending(id=...), "INVALID_REQUEST", None)


async def test_row_6_a_null_id_is_served_and_echoed(rpc: Way) -> None:
    answer = (await rpc.post(sending(id=None))).json()
    assert answer["id"] is None
    assert answer["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.parametrize("rpc_id", ["true", "1.5", "{}", "[]", "9" * 5000, "1e400", "1e5"])
async def test_row_7_an_id_of_another_type_is_refused(rpc: Way, rpc_id: str) -> None:
    await rpc.refuse(sending(id="ID").replace('"ID"', rpc_id), "INVALID_REQUEST", None)


@pytest.mark.parametrize("rpc_id", [1, "1", 0, "", -5, 2**53, "ünï"])
async def test_row_8_an_id_comes_back_with_its_type_in_every_frame(rpc: Way, rpc_id: int | str) -> None:
    unary = (await rpc.post(sending(id=rpc_id))).json()
    refused = (await rpc.post(sending(id=rpc_id, method="NoSuchMethod"))).json()
    stream = (await rpc.post(sending(id=rpc_id, method="SendStreamingMessage"))).text
    frames = [json.loads(line[6:]) for line in stream.split("\n") if line.startswith("data: ")]
    assert len(frames) > 2
    for one in (unary, refused, *frames):
        assert (one["id"], type(one["id"])) == (rpc_id, type(rpc_id))


@pytest.mark.parametrize("version", [..., "1.0", 2.0, 2, None, "2"])
async def test_row_9_another_jsonrpc_version_is_refused_with_the_id(rpc: Way, version: Any) -> None:
    await rpc.refuse(sending(jsonrpc=version), "INVALID_REQUEST")


@pytest.mark.parametrize("method", [..., None, 5, ["SendMessage"], {}])
async def test_row_10_a_method_that_is_no_string_is_an_invalid_request(rpc: Way, method: Any) -> None:
    await rpc.refuse(sending(method=method), "INVALID_REQUEST")


@pytest.mark.parametrize("method", ["", "NoSuchMethod", "rpc.x", "sendMessage", "message/send", "tasks/get"])
async def test_row_10_a_method_of_another_dialect_or_none_is_not_found(rpc: Way, method: str) -> None:
    await rpc.refuse(sending(method=method), "METHOD_NOT_FOUND")


@pytest.mark.parametrize("params", [[], [question("x")], "x", None, ..., 5])
@pytest.mark.parametrize("method", ["SendMessage", "SendStreamingMessage", "GetTask", "CancelTask"])
async def test_row_11_params_must_be_an_object(rpc: Way, method: str, params: Any) -> None:
    await rpc.refuse(sending(method=method, params=params), "INVALID_PARAMS")


async def test_row_11_listing_needs_no_params(rpc: Way) -> None:
    for params in (..., None, {}):
        assert rpc.result(await rpc.post(sending(method="ListTasks", params=params)))["tasks"] == []


@pytest.mark.parametrize("params", [[], ["x"], "x", 5, {"tenant": 5}])
async def test_row_11_the_cards_params_are_an_object_too(rpc: Way, params: Any) -> None:
    await rpc.refuse(sending(method="GetExtendedAgentCard", params=params), "INVALID_PARAMS")


@pytest.mark.parametrize("params", [..., None, {}, {"tenant": "x"}])
async def test_row_11_the_card_needs_no_params(rpc: Way, params: Any) -> None:
    assert rpc.result(await rpc.post(sending(method="GetExtendedAgentCard", params=params)))["skills"]


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
async def test_row_12_another_media_type_is_415(way: Way, media_type: str) -> None:
    answer = await way.post(way.wrap(json.dumps(message())), Content_Type=media_type)
    assert answer.status_code == 415
    way.refused(answer, "CONTENT_TYPE_NOT_SUPPORTED", 415, None)
    assert way.agent.prompts == []


@pytest.mark.parametrize(
    "media_type", ["application/json; charset=utf-8", "Application/JSON", "application/a2a+json"]
)
async def test_row_12_json_is_accepted_by_all_its_names(way: Way, media_type: str) -> None:
    assert way.result(await way.post(way.wrap(json.dumps(message())), Content_Type=media_type))["task"]


async def test_row_13_a_body_over_the_limit_is_413(way: Way) -> None:
    answer = await way.post(way.wrap(json.dumps(message())) + " " * MIB)
    assert answer.status_code == 413
    way.refused(answer, "INVALID_REQUEST", 413, None)


async def test_row_14_a_key_named_twice_is_refused(way: Way) -> None:
    body = way.wrap(json.dumps(message()))
    await way.refuse(body.replace('"text": "hello"', '"text": "a", "text": "b"'), "INVALID_REQUEST", None)
    await way.refuse(body[:-1] + f",{body[1:]}", "INVALID_REQUEST", None)


@pytest.mark.parametrize("opening", ["[", '{"a":'])
@pytest.mark.parametrize("levels", [65, 200, 50_000])
async def test_row_15_deep_nesting_is_refused(way: Way, opening: str, levels: int) -> None:
    nested = opening * levels + "1" + {"[": "]"}.get(opening, "}") * levels
    await way.refuse(way.wrap(f'{{"message":{nested}}}'), "INVALID_REQUEST", None)


@pytest.mark.parametrize("escape", ["\\u0000", "a\\u0000b", "\\ud800", "\\udc00\\ud800", "\\ud83dx"])
async def test_row_16_nul_and_lone_surrogates_are_refused(way: Way, escape: str) -> None:
    for one in (message(), message(contextId="hello", metadata={"hello": 1})):
        await way.refuse(way.wrap(json.dumps(one)).replace('"hello"', f'"{escape}"'), "INVALID_PARAMS")


async def test_row_16_a_pair_of_surrogates_is_a_character(way: Way) -> None:
    answer = await way.post(way.wrap(json.dumps(message())).replace('"hello"', '"\\ud83e\\udd80"'))
    assert way.result(answer)["task"]["artifacts"][0]["parts"] == [{"text": "echo: 🦀"}]


@pytest.mark.parametrize("parts", [[], ..., None, "hello", {}, {"text": "x"}])
async def test_row_17_a_message_without_parts_is_refused(way: Way, parts: Any) -> None:
    await way.refuse_message(parts=parts)


BAD_PARTS = [{}, {"video": "x"}, {"kind": "text"}, {"text": "a", "data": {}}, {"raw": "YQ==", "url": "b"}]


@pytest.mark.parametrize("part", BAD_PARTS, ids=json.dumps)
async def test_row_17_a_part_holds_exactly_one_content(way: Way, part: Json) -> None:
    await way.refuse_message("message.parts[1]", parts=[{"text": "hello"}, part])


WRONG = [
    {"text": 5},
    {"text": ["a"]},
    {"raw": "not base64!"},
    {"raw": "YQ"},
    {"raw": 5},
    {"text": "a", "metadata": 5},
]


@pytest.mark.parametrize("part", WRONG, ids=json.dumps)
async def test_row_18_a_content_of_the_wrong_type_is_refused(way: Way, part: Json) -> None:
    seen = await way.post(way.wrap(json.dumps(message(parts=[{"text": "hello"}, part]))))
    assert "error" in seen.json(), seen.text
    assert way.agent.prompts == []


@pytest.mark.parametrize("metadata", ["x", 5, []])
async def test_row_18_metadata_must_be_an_object(way: Way, metadata: Any) -> None:
    await way.refuse_message(metadata=metadata)
    answer = await way.post(way.wrap(json.dumps(message() | {"metadata": metadata})))
    way.refused(answer, "INVALID_PARAMS")


@pytest.mark.parametrize("role", ["ROLE_AGENT", "user", "agent", "", None, ..., {}, 2, 0, True, "1"])
async def test_row_19_only_a_user_asks(way: Way, role: Any) -> None:
    await way.refuse_message(role=role)


async def test_row_19_a_role_may_be_its_number(way: Way) -> None:
    assert (await way.ask(message(role=1)))["history"][0]["role"] == "ROLE_USER"


@pytest.mark.parametrize("message_id", ["", ..., None, 5, "m" * 10_000])
async def test_row_20_a_message_needs_a_fair_id(way: Way, message_id: Any) -> None:
    await way.refuse_message(messageId=message_id)


@pytest.mark.parametrize("version", ["99.0", "abc", "0.5", "1.7", "1.0, 1.0", "0.3,1.0"])
async def test_row_21_another_version_is_refused(way: Way, version: str) -> None:
    answer = await way.post(way.wrap(json.dumps(message())), A2A_Version=version)
    way.refused(answer, "VERSION_NOT_SUPPORTED")
    assert way.agent.prompts == []


@pytest.mark.parametrize(("versions", "is_good"), [(["1.0", "1.0"], True), (["1.0", "0.3"], False)])
async def test_row_21_a_repeated_version_must_be_the_same(way: Way, versions: list[str], is_good: bool) -> None:
    headers = [(name, value) for name, value in way.headers.items() if name not in V1]
    named = [*headers, *(("A2A-Version", version) for version in versions)]
    path = rpc_path(way.agent.handle) + ("" if way.is_rpc else "/message:send")
    answer = await way.client.post(path, content=way.wrap(json.dumps(message())), headers=named)
    assert ("error" not in answer.json()) is is_good
    assert len(way.agent.prompts) == is_good


async def test_row_21_a_patch_of_1_0_is_1_0(way: Way) -> None:
    assert way.result(await way.post(way.wrap(json.dumps(message())), A2A_Version="1.0.1"))["task"]


async def test_row_22_an_identical_message_joins_while_it_is_answered_and_is_new_later(way: Way) -> None:
    asked = message(messageId="same", parts=[{"text": "hold | reply done"}])
    both = [asyncio.create_task(way.ask(asked)) for _ in range(2)]
    await way.agent.heard("prompt")
    way.agent.release.set()
    first, second = await asyncio.gather(*both)
    assert first == second
    assert len(way.agent.prompts) == 1
    later, other = await way.ask(asked), await way.ask(message(messageId="same"))
    assert len({first["id"], later["id"], other["id"]}) == 3


async def test_row_23_of_two_messages_to_a_waiting_task_one_goes_on(way: Way) -> None:
    asked = await way.ask(message(parts=[{"text": "ask which?"}]))
    texts = ["hold | reply one", "hold | reply two"]
    both = [
        asyncio.create_task(way.call("SendMessage", message(taskId=asked["id"], parts=[{"text": text}])))
        for text in texts
    ]
    await way.agent.heard("prompt", count=2)
    done, _ = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    way.refused(done.pop().result(), "UNSUPPORTED_OPERATION")
    way.agent.release.set()
    answers = [answer.json() for answer in await asyncio.gather(*both)]
    assert len([one for one in answers if "error" in one]) == 1
    assert len(way.agent.prompts) == 2


async def test_row_23_a_cancel_that_comes_late_is_refused(way: Way) -> None:
    done = await way.ask(message())
    way.refused(await way.call("CancelTask", {"id": done["id"]}), "TASK_NOT_CANCELABLE")
    assert way.result(await way.call("GetTask", {"id": done["id"]})) == done


async def test_row_23_of_two_cancels_at_once_each_is_answered_and_the_task_ends_once(way: Way) -> None:
    asked = await way.ask(message(parts=[{"text": "ask which?"}]))
    both = await asyncio.gather(*(way.call("CancelTask", {"id": asked["id"]}) for _ in range(2)))
    canceled = [answer for answer in both if "error" not in answer.json()]
    assert canceled
    for answer in canceled:
        assert way.result(answer)["status"]["state"] == "TASK_STATE_CANCELED"
    for answer in both:
        if answer not in canceled:
            way.refused(answer, "TASK_NOT_CANCELABLE")


TASK_IDS = ["..x", "task-" + "x" * 10_000, "task-\u00fc", "task-' OR 1=1 --", "*", "task-" + "0" * 32]


@pytest.mark.parametrize("task_id", TASK_IDS, ids=lambda task_id: task_id[:12])
async def test_row_24_an_odd_task_id_is_simply_not_found(way: Way, embedded_hub: HubProcess, task_id: str) -> None:
    mine = await way.ask(message(parts=[{"text": "ask which?"}]))
    binding = "JSON-RPC" if way.is_rpc else "HTTP+JSON"
    bob = Way(binding, way.agent, embedded_hub.mint("bob", "session"), way.client)
    for method in ("GetTask", "CancelTask", "SubscribeToTask"):
        foreign = await bob.call(method, {"id": mine["id"]})
        way.refused(foreign, NO_TASK, 404)
        assert (await way.call(method, {"id": task_id})).content == foreign.content
    told = await way.call("SendMessage", message(taskId=task_id))
    assert told.content == (await bob.call("SendMessage", message(taskId=mine["id"]))).content
    way.refused(told, NO_TASK, 404)


async def test_row_25_a_caller_who_drops_a_stream_does_not_stop_the_task(way: Way) -> None:
    asked = message(parts=[{"text": "hold | reply done"}])
    body = way.wrap(json.dumps(asked), "SendStreamingMessage")
    path = rpc_path(way.agent.handle) + ("" if way.is_rpc else "/message:stream")
    async with way.client.stream("POST", path, content=body, headers=way.headers) as response:
        async for line in response.aiter_lines():
            if line.startswith("data: "):
                first = json.loads(line[6:])
                break
        await way.agent.heard("prompt")
    task = (first["result"] if way.is_rpc else first)["task"]
    way.agent.release.set()

    async def ended() -> bool:
        state: str = way.result(await way.call("GetTask", {"id": task["id"]}))["status"]["state"]
        return state == "TASK_STATE_COMPLETED"

    await eventually(ended, "the task completes")


async def test_a_history_length_may_be_text_but_never_a_fraction(way: Way) -> None:
    task = await way.ask(message())
    for length in ("0", 0):
        assert "history" not in way.result(await way.call("GetTask", {"id": task["id"], "historyLength": length}))
    for length in (1.5, "1.5", -1, "x", 2**31):
        answer = await way.call("GetTask", {"id": task["id"], "historyLength": length})
        way.refused(answer, "INVALID_PARAMS")


@pytest.mark.parametrize("status", ["WORKING", "working", "TASK_STATE_NOPE", "99"])
async def test_tasks_are_not_listed_by_a_state_that_is_none(way: Way, status: str) -> None:
    way.refused(await way.call("ListTasks", {"status": status}), "INVALID_PARAMS")
