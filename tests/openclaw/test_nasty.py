"""Rows of the hostile-input table (docs/reference/errors.md) about what a dialect reads, in that of 0.3."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from lab.agents import Echo, online
from lab.callers import envelope, web
from lab.hub_process import HubProcess
from tests.openclaw.caller import Caller, message, text

METHODS = ("message/send", "message/stream", "tasks/get", "tasks/cancel", "tasks/resubscribe")
STREAMS = ("message/stream", "tasks/resubscribe")


class Target(Caller):
    """A caller, and the agent that must not be asked."""

    agent: Echo

    async def refuse(self, method: str, params: Any, code: int, *, naming: str = "") -> None:
        asked = len(self.agent.prompts)
        error = await (self.streamed_error if method in STREAMS else self.refusal)(method, params)
        assert error["code"] == code, error
        assert naming in error["message"]
        assert len(self.agent.prompts) == asked


@pytest.fixture
async def target(embedded_hub: HubProcess) -> AsyncIterator[Target]:
    async with online(embedded_hub, Echo) as agent:
        made = Target(embedded_hub.url, agent.handle, embedded_hub.mint("alice", "session"))
        made.agent = agent
        yield made


@pytest.mark.parametrize("params", [[], "x", None, 5, {"": 1}, {}, {"message": None, "id": None}])
@pytest.mark.parametrize("method", METHODS)
async def test_row_11_params_must_be_a_sound_object(target: Target, method: str, params: Any) -> None:
    await target.refuse(method, params, -32602)


@pytest.mark.parametrize("method", ["message/sent", "Message/send", "tasks/list", "/", "message/send ", "tasks/"])
async def test_row_10_an_unknown_method_is_not_found(target: Target, method: str) -> None:
    assert (await target.refusal(method, {"id": "x"}))["code"] == -32601


@pytest.mark.parametrize("content", ["a\0b", "\ud800", "a\udfffb"])
@pytest.mark.parametrize("method", ["message/send", "message/stream"])
async def test_row_16_forbidden_text_is_refused(target: Target, method: str, content: str) -> None:
    body = json.dumps(envelope(method, {"message": message([text(content)])}, 7))
    async with web(target.url) as client:
        headers = target.headers | {"Content-Type": "application/json"}
        response = await client.post(target.path, content=body, headers=headers)
    assert response.json()["error"]["code"] == -32602
    assert target.agent.prompts == []


@pytest.mark.parametrize(
    ("parts", "naming"),
    [
        ("x", "parts"),
        ({}, "parts"),
        (["x"], "parts[0]"),
        ([text("a"), {"kind": "text"}], "message.parts[1].text"),
        ([{"kind": "text", "text": 5}], "message.parts[0].text"),
        ([{"kind": "data", "data": [1]}], "message.parts[0].data"),
        ([{"kind": "data"}], "message.parts[0].data"),
        ([{"kind": 5}], "parts[0].kind"),
        ([{}], "message.parts[0].kind"),
        ([text("a"), {"kind": None, "metadata": {}}], "message.parts[1].kind"),
        ([{"text": "a", "data": {}}], "message.parts[0].kind"),
        ([{"kind": "", "text": "a", "file": {"uri": "https://example.com/"}}], "message.parts[0].kind"),
        ([{"raw": "YQ=="}], "message.parts[0].kind"),
        ([{"text": 5}], "message.parts[0].text"),
        ([{"data": [1]}], "message.parts[0].data"),
        ([text("a") | {"metadata": []}], "parts[0].metadata"),
        ([text("a")] * 65, "parts"),
    ],
)
async def test_row_17_parts_of_the_wrong_shape_are_named(target: Target, parts: Any, naming: str) -> None:
    await target.refuse("message/send", {"message": message("") | {"parts": parts}}, -32602, naming=naming)


@pytest.mark.parametrize(
    ("changes", "naming"),
    [
        ({"role": "ROLE_USER"}, "role"),
        ({"role": "agent"}, "role"),
        ({"role": None}, "role"),
        ({"messageId": ""}, "messageId"),
        ({"messageId": "x" * 129}, "messageId"),
        ({"messageId": None}, "messageId"),
        ({"messageId": 5}, "messageId"),
        ({"kind": "task"}, "kind"),
        ({"parts": None}, "parts"),
        ({"contextId": "x" * 129}, "contextId"),
        ({"contextId": "a\nb"}, "contextId"),
        ({"metadata": "x"}, "metadata"),
    ],
)
async def test_rows_18_to_20_members_of_the_wrong_shape_are_named(
    target: Target, changes: dict[str, Any], naming: str
) -> None:
    for method in ("message/send", "message/stream"):
        await target.refuse(method, {"message": message("hello") | changes}, -32602, naming=naming)


@pytest.mark.parametrize(
    "configuration", ["x", [], {"blocking": "yes"}, {"acceptedOutputModes": "text"}, {"acceptedOutputModes": [1]}]
)
async def test_row_18_a_configuration_of_the_wrong_shape_is_refused(target: Target, configuration: Any) -> None:
    await target.refuse("message/send", {"message": message("hello"), "configuration": configuration}, -32602)


@pytest.mark.parametrize("version", ["99.0", "abc", "0.5", "0.2"])
async def test_row_21_other_versions_are_refused(target: Target, version: str) -> None:
    for method in METHODS:
        response = await target.post(method, {"id": "x"}, A2A_Version=version)
        assert response.json()["error"]["code"] == -32009


@pytest.mark.parametrize("version", ["", "0.3", "0.3.0", "0.3.26"])
async def test_row_21_its_own_versions_are_served(target: Target, version: str) -> None:
    response = await target.post("message/send", {"message": message("hello")}, A2A_Version=version)
    assert response.json()["result"]["kind"] == "message"


@pytest.mark.parametrize("version", ["1", "1.0", "1.0.1"])
async def test_row_21_its_methods_are_none_of_1_0(target: Target, version: str) -> None:
    for method in METHODS:
        response = await target.post(method, {"id": "x"}, A2A_Version=version)
        assert response.json()["error"]["code"] == -32601


@pytest.mark.parametrize("task_id", ["task-x", "../x", "", "x" * 10_000, "a\nb", "ünï"])
async def test_row_24_a_task_that_is_not_ones_own_is_absent(target: Target, task_id: str) -> None:
    for method in ("tasks/get", "tasks/cancel", "tasks/resubscribe"):
        await target.refuse(method, {"id": task_id}, -32001)
    if task_id:
        await target.refuse("message/send", {"message": message("hello", taskId=task_id)}, -32001)
