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
        assert error["code"] == code, (params, error)
        assert naming in error["message"], (params, error)
        assert len(self.agent.prompts) == asked


@pytest.fixture
async def target(embedded_hub: HubProcess) -> AsyncIterator[Target]:
    async with online(embedded_hub, Echo) as agent:
        made = Target(embedded_hub.url, agent.handle, embedded_hub.mint("alice", "session"))
        made.agent = agent
        yield made


async def test_rows_10_and_11_methods_must_be_known_and_params_sound_objects(
    target: Target, subtests: pytest.Subtests
) -> None:
    for method in METHODS:
        for params in ([], "x", None, 5, {"": 1}, {}, {"message": None, "id": None}):
            with subtests.test(method=method, params=params):
                await target.refuse(method, params, -32602)
    for method in ("message/sent", "Message/send", "tasks/list", "/", "message/send ", "tasks/"):
        with subtests.test(method=method):
            assert (await target.refusal(method, {"id": "x"}))["code"] == -32601


async def test_row_16_forbidden_text_is_refused(target: Target, subtests: pytest.Subtests) -> None:
    headers = target.headers | {"Content-Type": "application/json"}
    async with web(target.url, headers=headers) as client:
        for method in ("message/send", "message/stream"):
            for content in ("a\0b", "\ud800", "a\udfffb"):
                body = json.dumps(envelope(method, {"message": message([text(content)])}, 7))
                response = await client.post(target.path, content=body)
                with subtests.test(method=method, content=content):
                    assert response.json()["error"]["code"] == -32602
    assert target.agent.prompts == []


PARTS: list[tuple[Any, str]] = [
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
]
MEMBERS: dict[str, list[Any]] = {
    "role": ["ROLE_USER", "agent", None],
    "messageId": ["", "x" * 129, None, 5],
    "kind": ["task"],
    "parts": [None],
    "contextId": ["x" * 129, "a\nb"],
    "metadata": ["x"],
}


async def test_rows_17_to_20_parts_and_members_of_the_wrong_shape_are_named(target: Target) -> None:
    members = [({name: value}, name) for name, values in MEMBERS.items() for value in values]
    for changes, naming in (*(({"parts": parts}, naming) for parts, naming in PARTS), *members):
        for method in ("message/send", "message/stream"):
            await target.refuse(method, {"message": message("hello") | changes}, -32602, naming=naming)
    for wrong in ("x", [], {"blocking": "yes"}, {"acceptedOutputModes": "text"}, {"acceptedOutputModes": [1]}):
        await target.refuse("message/send", {"message": message("hello"), "configuration": wrong}, -32602)


async def test_row_21_its_own_versions_are_served(target: Target) -> None:
    refused = dict.fromkeys(("99.0", "abc", "0.5", "0.2"), -32009) | dict.fromkeys(("1", "1.0", "1.0.1"), -32601)
    for version, code in refused.items():
        for method in METHODS:
            response = await target.post(method, {"id": "x"}, A2A_Version=version)
            assert response.json()["error"]["code"] == code, version
    for version in ("", "0.3", "0.3.0", "0.3.26"):
        response = await target.post("message/send", {"message": message("hello")}, A2A_Version=version)
        assert response.json()["result"]["kind"] == "message", version


async def test_row_24_a_task_that_is_not_ones_own_is_absent(target: Target) -> None:
    for task_id in ("task-x", "../x", "", "x" * 10_000, "a\nb", "ünï"):
        for method in ("tasks/get", "tasks/cancel", "tasks/resubscribe"):
            await target.refuse(method, {"id": task_id}, -32001)
        if task_id:
            await target.refuse("message/send", {"message": message("hello", taskId=task_id)}, -32001)
