"""Rows 1 to 16 of the hostile-input table (`wire/a2a.md` section 6) in A2A 1.0: bodies, over both bindings.

The rest: `test_nasty_v1_messages.py`. The hub's own dialect has them in tests/surfaces.
"""

import json

import pytest

from lab.callers import question
from tests.malformed.bindings import BindingClient, message, sending

pytestmark = pytest.mark.asyncio(loop_scope="session")  # as the agent that all share
MIB = 1024 * 1024


async def test_row_1_a_batch_or_a_bare_value_is_one_error(way: BindingClient) -> None:
    for body in ["[]", "[{}]", f"[{sending()}]", '"x"', "5", "null", "true"]:
        await way.refuse(body, "INVALID_REQUEST", None, over_http="INVALID_PARAMS")


async def test_row_2_an_empty_or_truncated_body_is_a_parse_error(way: BindingClient) -> None:
    whole = way.wrap(json.dumps(message()))
    for body in ["", " ", "{", "HALF", "x"]:
        await way.refuse(body.replace("HALF", whole[: len(whole) // 2]), "PARSE_ERROR", None)


async def test_row_3_bad_utf8_and_nan_are_parse_errors(way: BindingClient) -> None:
    for literal in [b'"\xff\xfe"', b'"\xc3"', b'"\xed\xa0\x80"', b"NaN", b"Infinity"]:
        body = way.wrap(json.dumps(message(contextId="C"))).encode()
        await way.refuse(body.replace(b'"C"', literal), "PARSE_ERROR", None)


async def test_row_4_a_byte_order_mark_is_accepted(way: BindingClient) -> None:
    answer = await way.post(b"\xef\xbb\xbf" + way.wrap(json.dumps(message())).encode())
    assert way.result(answer)["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


async def test_row_5_a_request_without_id_is_not_executed(rpc: BindingClient) -> None:
    await rpc.refuse(sending(id=...), "INVALID_REQUEST", None)


async def test_row_6_a_null_id_is_served_and_echoed(rpc: BindingClient) -> None:
    answer = (await rpc.post(sending(id=None))).json()
    assert answer["id"] is None
    assert answer["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


async def test_row_7_an_id_of_another_type_is_refused(rpc: BindingClient) -> None:
    for rpc_id in ["true", "1.5", "{}", "[]", "9" * 5000, "1e400", "1e5"]:
        await rpc.refuse(sending(id="ID").replace('"ID"', rpc_id), "INVALID_REQUEST", None)


async def test_row_8_an_id_comes_back_with_its_type_in_every_frame(rpc: BindingClient) -> None:
    for rpc_id in [1, "1", 0, "", -5, 2**53, "ünï"]:
        unary = (await rpc.post(sending(id=rpc_id))).json()
        refused = (await rpc.post(sending(id=rpc_id, method="NoSuchMethod"))).json()
        stream = (await rpc.post(sending(id=rpc_id, method="SendStreamingMessage"))).text
        frames = [json.loads(line[6:]) for line in stream.split("\n") if line.startswith("data: ")]
        assert len(frames) > 2, rpc_id
        for one in (unary, refused, *frames):
            assert (one["id"], type(one["id"])) == (rpc_id, type(rpc_id)), rpc_id


async def test_row_9_another_jsonrpc_version_is_refused_with_the_id(rpc: BindingClient) -> None:
    for version in [..., "1.0", 2.0, 2, None, "2"]:
        await rpc.refuse(sending(jsonrpc=version), "INVALID_REQUEST")


async def test_row_10_a_method_that_is_no_string_is_an_invalid_request(rpc: BindingClient) -> None:
    for method in [..., None, 5, ["SendMessage"], {}]:
        await rpc.refuse(sending(method=method), "INVALID_REQUEST")


async def test_row_10_a_method_of_another_dialect_or_none_is_not_found(rpc: BindingClient) -> None:
    for method in ["", "NoSuchMethod", "rpc.x", "sendMessage", "message/send", "tasks/get"]:
        await rpc.refuse(sending(method=method), "METHOD_NOT_FOUND")


async def test_row_11_params_must_be_an_object(rpc: BindingClient) -> None:
    for params in [[], [question("x")], "x", None, ..., 5]:
        for method in ["SendMessage", "SendStreamingMessage", "GetTask", "CancelTask"]:
            await rpc.refuse(sending(method=method, params=params), "INVALID_PARAMS")


async def test_row_11_listing_needs_no_params(rpc_apart: BindingClient) -> None:
    for params in (..., None, {}):
        assert rpc_apart.result(await rpc_apart.post(sending(method="ListTasks", params=params)))["tasks"] == []


async def test_row_11_the_cards_params_are_an_object_too(rpc: BindingClient) -> None:
    for params in [[], ["x"], "x", 5, {"tenant": 5}]:
        await rpc.refuse(sending(method="GetExtendedAgentCard", params=params), "INVALID_PARAMS")


async def test_row_11_the_card_needs_no_params(rpc: BindingClient) -> None:
    for params in [..., None, {}, {"tenant": "x"}]:
        assert rpc.result(await rpc.post(sending(method="GetExtendedAgentCard", params=params)))["skills"], params


async def test_row_12_another_media_type_is_415(way: BindingClient) -> None:
    for media_type in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]:
        answer = await way.post(way.wrap(json.dumps(message())), Content_Type=media_type)
        assert answer.status_code == 415, media_type
        way.refused(answer, "CONTENT_TYPE_NOT_SUPPORTED", 415, None)
        assert way.reached == 0, media_type


async def test_row_12_json_is_accepted_by_all_its_names(way: BindingClient) -> None:
    for media_type in ["application/json; charset=utf-8", "Application/JSON", "application/a2a+json"]:
        assert way.result(await way.post(way.wrap(json.dumps(message())), Content_Type=media_type))["task"], (
            media_type
        )


async def test_row_13_a_body_over_the_limit_is_413(way: BindingClient) -> None:
    answer = await way.post(way.wrap(json.dumps(message())) + " " * MIB)
    assert answer.status_code == 413
    way.refused(answer, "INVALID_REQUEST", 413, None)


async def test_row_14_a_key_named_twice_is_refused(way: BindingClient) -> None:
    body = way.wrap(json.dumps(message()))
    await way.refuse(body.replace('"text": "hello"', '"text": "a", "text": "b"'), "INVALID_REQUEST", None)
    await way.refuse(body[:-1] + f",{body[1:]}", "INVALID_REQUEST", None)


async def test_row_15_deep_nesting_is_refused(way: BindingClient) -> None:
    for opening in ["[", '{"a":']:
        for levels in [65, 200, 50_000]:
            nested = opening * levels + "1" + {"[": "]"}.get(opening, "}") * levels
            await way.refuse(way.wrap(f'{{"message":{nested}}}'), "INVALID_REQUEST", None)


async def test_row_16_nul_and_lone_surrogates_are_refused(way: BindingClient) -> None:
    for escape in ["\\u0000", "a\\u0000b", "\\ud800", "\\udc00\\ud800", "\\ud83dx"]:
        for one in (message(), message(contextId="hello", metadata={"hello": 1})):
            await way.refuse(way.wrap(json.dumps(one)).replace('"hello"', f'"{escape}"'), "INVALID_PARAMS")


async def test_row_16_a_pair_of_surrogates_is_a_character(way: BindingClient) -> None:
    answer = await way.post(way.wrap(json.dumps(message())).replace('"hello"', '"\\ud83e\\udd80"'))
    assert way.result(answer)["task"]["artifacts"][0]["parts"] == [{"text": "echo: 🦀"}]
