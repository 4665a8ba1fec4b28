"""Rows of the hostile-input table (`wire/a2a.md` section 6): whatever a client sends gets the answer given there.

Rows 21 and 23 wait for the other dialects; the transport's rows are in test_nasty_transport.py.
"""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

from lab.agents import Echo, online
from lab.callers import Json, bearer, envelope, get_task, question, rpc_path, send, web
from lab.hub_process import HubProcess

pytestmark = pytest.mark.asyncio(loop_scope="session")  # as the agent
PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, NO_TASK = -32700, -32600, -32601, -32602, -32001


class Target:
    """An agent's endpoint, and a caller's token."""

    def __init__(self, url: str, agent: Echo, token: str, client: httpx.AsyncClient) -> None:
        self.url, self.agent, self.token, self.client = url, agent, token, client

    async def post(self, body: bytes | str) -> Json:
        """The JSON of the answer to these very bytes."""
        content = body if isinstance(body, bytes) else body.encode()
        headers = bearer(self.token) | {"Content-Type": "application/json"}
        response = await self.client.post(rpc_path(self.agent.handle), content=content, headers=headers)
        assert response.status_code == 200, response.text
        answer: Json = response.json()
        assert ("result" in answer) != ("error" in answer)
        return answer

    async def refuse(self, body: bytes | str, code: int, rpc_id: Any = None) -> None:
        """These bytes get that error, and nothing reaches the agent."""
        seen = len(self.agent.prompts)
        answer = await self.post(body)
        assert "error" in answer, answer
        assert answer["error"]["code"] == code, answer
        assert (answer["id"], type(answer["id"])) == (rpc_id, type(rpc_id)), answer
        assert len(self.agent.prompts) == seen

    async def refuse_params(self, params: Any, *, method: str = "SendMessage", naming: str = "") -> None:
        seen = len(self.agent.prompts)
        answer = await self.post(json.dumps(envelope(method, params, 7)))
        assert answer.get("error", {}).get("code") == INVALID_PARAMS, answer
        assert answer["id"] == 7
        assert naming in answer["error"]["message"]
        assert len(self.agent.prompts) == seen


# Of the session, as the hub is: else this module would be a group of its own, with a hub of its own.
@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def target(embedded_hub: HubProcess) -> AsyncIterator[Target]:
    """One agent for all tests: nearly all of them are refused before it is asked."""
    async with online(embedded_hub, Echo, owner="attacked") as agent, web(embedded_hub.url) as client:
        yield Target(embedded_hub.url, agent, embedded_hub.mint("alice", "session"), client)


def sending(**changes: Any) -> str:
    """A sound SendMessage with some members of its envelope replaced, or taken out by `...`."""
    body = envelope("SendMessage", question("hello"), 7) | changes
    return json.dumps({name: value for name, value in body.items() if value is not ...})


def message(**changes: Any) -> Json:
    """Sound params with some members of the message replaced, or taken out by `...`."""
    changed = question("hello")["message"] | changes
    return {"message": {name: value for name, value in changed.items() if value is not ...}}


@pytest.mark.parametrize(
    "body", ["[]", f"[{sending()}]", f"[{sending()},{sending()}]", '"x"', "5", "null", "true"]
)
async def test_row_1_a_batch_or_a_bare_value_is_one_invalid_request(target: Target, body: str) -> None:
    await target.refuse(body, INVALID_REQUEST)


@pytest.mark.parametrize("body", ["", " ", "{", sending()[:-1], sending()[: len(sending()) // 2], sending() + "x"])
async def test_row_2_an_empty_or_truncated_body_is_a_parse_error(target: Target, body: str) -> None:
    await target.refuse(body, PARSE_ERROR)


@pytest.mark.parametrize("number", ["1e999", "-1E400", "9" * 5000])
async def test_row_3_a_number_that_no_float_holds_is_refused(target: Target, number: str) -> None:
    body = sending().replace('"role"', f'"metadata": {{"n": {number}}}, "role"')
    await target.refuse(body, INVALID_REQUEST)


@pytest.mark.parametrize(
    "literal", [b'"\xff\xfe"', b'"\xc3"', b'"\xed\xa0\x80"', b"NaN", b"Infinity", b"-Infinity"]
)
async def test_row_3_bad_utf8_and_nan_are_parse_errors(target: Target, literal: bytes) -> None:
    await target.refuse(sending(id="ID").encode().replace(b'"ID"', literal), PARSE_ERROR)


async def test_row_4_a_byte_order_mark_is_accepted(target: Target) -> None:
    answer = await target.post(b"\xef\xbb\xbf" + sending().encode())
    assert answer["result"]["status"]["state"] == "COMPLETED"


async def test_row_5_a_request_without_id_is_not_executed(target: Target) -> None:
    await target.refuse(sending(id=...), INVALID_REQUEST)


async def test_row_6_a_null_id_is_served_and_echoed(target: Target) -> None:
    answer = await target.post(sending(id=None))
    assert answer["id"] is None
    assert answer["result"]["status"]["state"] == "COMPLETED"


@pytest.mark.parametrize("rpc_id", ["true", "1.5", "{}", "[]", "[1]", '{"a":1}', "9" * 5000, "1e400", "1e5"])
async def test_row_7_an_id_of_another_type_is_refused(target: Target, rpc_id: str) -> None:
    await target.refuse(sending(id="ID").replace('"ID"', rpc_id), INVALID_REQUEST)


@pytest.mark.parametrize("rpc_id", [1, "1", 0, "", -5, 2**53, "ünï"])
async def test_row_8_an_id_comes_back_with_its_type(target: Target, rpc_id: int | str) -> None:
    answer = await target.post(sending(id=rpc_id))
    assert answer["id"] == rpc_id
    assert type(answer["id"]) is type(rpc_id)
    refused = await target.post(sending(id=rpc_id, method="NoSuchMethod"))
    assert refused["id"] == rpc_id
    assert type(refused["id"]) is type(rpc_id)


@pytest.mark.parametrize("version", [..., "1.0", 2.0, 2, None, "2"])
async def test_row_9_another_jsonrpc_version_is_refused_with_the_id(target: Target, version: Any) -> None:
    await target.refuse(sending(jsonrpc=version), INVALID_REQUEST, 7)


@pytest.mark.parametrize("method", [..., None, 5, ["SendMessage"], {}])
async def test_row_10_a_method_that_is_no_string_is_an_invalid_request(target: Target, method: Any) -> None:
    await target.refuse(sending(method=method), INVALID_REQUEST, 7)


@pytest.mark.parametrize(
    "method", ["", "NoSuchMethod", "rpc.discover", "sendMessage", "SENDMESSAGE", "SendMessage "]
)
async def test_row_10_an_unknown_method_is_not_found(target: Target, method: str) -> None:
    await target.refuse(sending(method=method), NO_METHOD, 7)


@pytest.mark.parametrize("params", [[], [question("x")], "x", None, ..., 5])
@pytest.mark.parametrize("method", ["SendMessage", "SendStreamingMessage", "GetTask"])
async def test_row_11_params_must_be_an_object(target: Target, method: str, params: Any) -> None:
    await target.refuse(sending(method=method, params=params), INVALID_PARAMS, 7)


@pytest.mark.parametrize("twin", ['"id":8', '"params":{}', '"method":"GetTask"', '"jsonrpc":"2.0"'])
async def test_row_14_a_key_named_twice_is_refused(target: Target, twin: str) -> None:
    await target.refuse(sending()[:-1] + f",{twin}}}", INVALID_REQUEST)


async def test_row_14_a_key_named_twice_deep_inside_is_refused(target: Target) -> None:
    await target.refuse(sending().replace('"text": "hello"', '"text": "a", "text": "b"'), INVALID_REQUEST)


@pytest.mark.parametrize("opening", ["[", '{"a":'])
@pytest.mark.parametrize("levels", [65, 200, 50_000])
async def test_row_15_deep_nesting_is_refused(target: Target, opening: str, levels: int) -> None:
    nested = opening * levels + "1" + {"[": "]"}.get(opening, "}") * levels
    await target.refuse(sending(params="P").replace('"P"', nested), INVALID_REQUEST)


@pytest.mark.parametrize("escape", ["\\u0000", "a\\u0000b", "\\ud800", "\\udc00", "\\udc00\\ud800", "\\ud83dx"])
async def test_row_16_nul_and_lone_surrogates_are_refused(target: Target, escape: str) -> None:
    await target.refuse(sending().replace('"hello"', f'"{escape}"'), INVALID_PARAMS, 7)


async def test_row_16_a_pair_of_surrogates_is_a_character(target: Target) -> None:
    answer = await target.post(sending().replace('"hello"', '"\\ud83e\\udd80"'))
    assert answer["result"]["history"][-1]["parts"] == [{"text": "echo: 🦀"}]


@pytest.mark.parametrize("parts", [[], ..., None, "hello", {}, {"text": "x"}])
async def test_row_17_a_message_without_parts_is_refused(target: Target, parts: Any) -> None:
    await target.refuse_params(message(parts=parts))


BAD_PARTS = [{}, {"video": "x"}, {"text": "a", "url": "b"}, {"text": "a", "data": {}}, {"raw": "YQ==", "url": "b"}]


@pytest.mark.parametrize("part", BAD_PARTS, ids=json.dumps)
async def test_row_17_a_part_holds_exactly_one_content(target: Target, part: Json) -> None:
    await target.refuse_params(message(parts=[{"text": "hello"}, part]), naming="message.parts[1]")


@pytest.mark.parametrize(
    "parts", [[{"text": ""}], [{"text": " \n"}], [{"url": "https://x.example"}], [{"data": 1}]]
)
async def test_row_17_some_part_must_hold_text(target: Target, parts: list[Json]) -> None:
    await target.refuse_params(message(parts=parts), naming="message.parts")


WRONG_TYPES = [{"text": 5}, {"text": None}, {"text": ["a"]}, {"raw": "not base64!"}, {"raw": "YQ"}, {"raw": 5}]


@pytest.mark.parametrize("part", WRONG_TYPES, ids=json.dumps)
async def test_row_18_a_content_of_the_wrong_type_is_refused(target: Target, part: Json) -> None:
    await target.refuse_params(message(parts=[{"text": "hello"}, part]))


@pytest.mark.parametrize("metadata", ["x", 5, [], None])
async def test_row_18_metadata_must_be_an_object(target: Target, metadata: Any) -> None:
    await target.refuse_params(message(metadata=metadata))
    await target.refuse_params(message(parts=[{"text": "hello", "metadata": metadata}]))


@pytest.mark.parametrize("role", ["ROLE_AGENT", "user", "agent", "", None, ..., {}])
async def test_row_19_only_a_user_asks(target: Target, role: Any) -> None:
    await target.refuse_params(
        message(role=role), naming="role" if role is ... else "message.role: want ROLE_USER"
    )


@pytest.mark.parametrize("message_id", ["", ..., None, 5, "m" * 10_000])
async def test_row_20_a_message_needs_a_fair_id(target: Target, message_id: Any) -> None:
    await target.refuse_params(message(messageId=message_id))


TASK_IDS = ["../x", "..%2fx", "task-" + "x" * 10_000, "", "task-\u00fc", "/etc/passwd", "task-' OR 1=1 --", "*"]


@pytest.mark.parametrize("task_id", TASK_IDS, ids=lambda task_id: task_id[:12])
async def test_row_24_an_odd_task_id_is_simply_not_found(
    target: Target, embedded_hub: HubProcess, task_id: str
) -> None:
    handle = target.agent.handle
    task = await send(target.url, handle, "mine", target.token)
    foreign = await get_task(target.url, handle, task["id"], embedded_hub.mint("bob", "session"))
    assert foreign["error"]["code"] == NO_TASK
    assert await get_task(target.url, handle, task_id, target.token) == foreign


@pytest.mark.parametrize("task_id", [..., None, 5, {}, ["task-x"]])
async def test_row_24_a_task_id_must_be_a_string(target: Target, task_id: Any) -> None:
    await target.refuse_params({} if task_id is ... else {"id": task_id}, method="GetTask")
