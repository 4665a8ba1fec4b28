"""The answers of A2A 0.3 to messages without kinds, as fasta2a sends them: in the forms of 0.3 and of 1.0."""

from typing import Any

import pytest

from a2a_bridge.wire.dialects.v03 import has_no_kinds
from lab.agents import TaskPeer, online
from lab.callers import Json
from lab.hub_process import HubProcess
from lab.pictures import PIXEL_BASE64
from tests.openclaw.caller import Caller

TAKES_FILES = {"defaultInputModes": ["text/plain", "image/png"]}


@pytest.fixture
def hub(embedded_hub: HubProcess) -> HubProcess:
    """One process on SQLite."""
    return embedded_hub


def params(*parts: Json, **more: str) -> Json:
    return {"message": {"messageId": "m1", "role": "user", "parts": list(parts), **more}}


def without(value: Any, *names: str) -> Any:
    """A value without these members of its own."""
    return {name: one for name, one in value.items() if name not in names}


async def test_a_message_is_in_both_forms(hub: HubProcess, alice: str) -> None:
    async with online(hub, TaskPeer) as agent:
        answer = await Caller(hub.url, agent.handle, alice).call("message/send", params({"text": "hello"}))
    assert (answer["kind"], answer["parts"]) == ("message", [{"kind": "text", "text": "echo: hello"}])
    assert answer["message"] == without(answer, "kind", "message") | {"parts": [{"text": "echo: hello"}]}


async def test_a_task_is_in_both_forms_with_its_files(hub: HubProcess, alice: str) -> None:
    async with online(hub, TaskPeer) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        text = 'raw f bytes | data d {"kind": "file"} | ask which?'
        answer = await caller.call("message/send", params({"text": text}))
        task = await caller.get(answer["id"], historyLength=9)
    assert without(answer, "task") == task
    inner = answer["task"]
    assert (inner["id"], inner["contextId"]) == (answer["id"], answer["contextId"])
    assert [one["parts"] for one in inner["artifacts"]] == [
        [{"raw": "Ynl0ZXM=", "filename": "f.txt", "mediaType": "text/plain"}],
        [{"data": {"kind": "file"}}],
    ]
    assert inner["status"]["message"]["parts"] == [{"text": "which?"}]
    assert [one["parts"] for one in inner["history"]] == [[{"text": text}], [{"text": "which?"}]]


async def test_events_are_in_both_forms(hub: HubProcess, alice: str) -> None:
    async with online(hub, TaskPeer) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        events = await caller.streamed("message/stream", params({"text": "note reading | text a one"}))
    members = {"task": "task", "status-update": "statusUpdate", "artifact-update": "artifactUpdate"}
    for event in events:
        inner = event[members[event["kind"]]]
        assert (inner["contextId"], "kind" in inner) == (event["contextId"], False)
    made = [event["artifactUpdate"]["artifact"]["parts"] for event in events if "artifactUpdate" in event]
    assert made[0] == [{"text": "one"}]


async def test_files_are_read_as_1_0_writes_them(hub: HubProcess, alice: str) -> None:
    url = {"url": "https://example.com/a.png", "mediaType": "image/png", "filename": "a.png"}
    raw = {"raw": PIXEL_BASE64, "mediaType": "image/png"}
    async with online(hub, TaskPeer, agent=TAKES_FILES) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        await caller.call("message/send", params({"text": "see"}, url, raw))
        prompt = await agent.heard("prompt")
        assert prompt["parts"][1:] == [url, raw]
        wrong = await caller.refusal("message/send", params({"text": "see"}, url | raw))
        assert (wrong["code"], "message.parts[1].kind" in wrong["message"]) == (-32602, True)


WITH_A_KIND: list[Any] = [
    {"kind": "message", "parts": [{"text": "a"}]},
    {"parts": [{"kind": "text", "text": "a"}]},
    {"parts": [{"type": "text", "text": "a"}]},
    {"parts": [{"text": "a"}, {"kind": "data", "data": {}}]},
    {"parts": "a"},
    {"parts": [5]},
    5,
]


def test_what_has_a_kind_or_no_message_is_answered_in_one_form() -> None:
    assert [one for one in WITH_A_KIND if has_no_kinds({"message": one})] == []
    assert not has_no_kinds(None)
    assert not has_no_kinds({"id": "task-1"})
