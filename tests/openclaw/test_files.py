"""Files that callers send: to agents whose card lists their media type."""

import re
from typing import Any

import pytest

from lab.agents import Echo, TaskPeer
from lab.callers import Json
from lab.hub_process import HubProcess
from lab.pictures import PIXEL, PIXEL_BASE64
from tests.openclaw.caller import caller_of, message, text

IMAGES: Json = {"defaultInputModes": ["text/plain", "image/png"]}
OF_SKILL: Json = {"skills": [{"id": "see", "name": "See", "inputModes": ["text/plain", "image/*"]}]}
URL_SAFE = PIXEL_BASE64.replace("+", "-").replace("/", "_")
PNG: Json = {"kind": "file", "file": {"bytes": URL_SAFE, "mimeType": "image/png", "name": "a\nb.png"}}
LINK: Json = {"kind": "file", "file": {"uri": "https://example.com/a.png", "mimeType": "Image/PNG"}}
NOTE = "file (part {}), as the caller sent it, not in this text: {}"


@pytest.mark.parametrize("agent_fields", [IMAGES, OF_SKILL], ids=["agent", "skill"])
async def test_an_agent_gets_files_that_its_card_lists(hub: HubProcess, agent_fields: Json) -> None:
    async with caller_of(hub, Echo, agent=agent_fields) as (agent, caller):
        await caller.send([text("look"), PNG, LINK | {"metadata": {"n": 1}}])
        await caller.stream([{"file": LINK["file"]}])
        first, second = agent.prompts
    raw = {"raw": PIXEL_BASE64, "mediaType": "image/png", "filename": "a\nb.png"}
    url = {"url": "https://example.com/a.png", "mediaType": "Image/PNG"}
    assert first["parts"] == [{"text": "look"}, raw, url | {"metadata": {"n": 1}}]
    look, kept, linked = first["text"].split("\n\n")
    note = NOTE.format(2, f'"a\\nb.png", "image/png", {len(PIXEL)} bytes, ')
    assert re.fullmatch(re.escape(note) + r"fileId=\d+", kept)
    assert (look, linked) == ("look", NOTE.format(3, '"Image/PNG", "https://example.com/a.png"'))
    assert second["parts"] == [url]
    assert second["text"] == NOTE.format(1, '"Image/PNG", "https://example.com/a.png"')


async def test_a_file_stays_in_the_history_and_goes_with_a_follow_up(hub: HubProcess) -> None:
    async with caller_of(hub, TaskPeer, agent=IMAGES) as (_, caller):
        asked = await caller.send("ask which?")
        ended = await caller.send([PNG], taskId=asked["id"])
    said = [one["parts"] for one in ended["history"] if one["role"] == "user"]
    [part] = said[-1]
    assert re.search(r"/api/v1/files/\d+/content$", part["file"].pop("uri"))
    assert part["file"] == {"mimeType": "image/png", "name": "a\nb.png"}


LINKED = {"uri": "https://example.com"}
UNSOUND: list[tuple[Any, str]] = [
    (None, ".file"),
    ("a", ".file"),
    ({}, ".file: want exactly one"),
    ({"bytes": "YQ=="} | LINKED, ".file: want exactly one"),
    ({"bytes": None, "uri": None}, ".file: want exactly one"),
    ({"bytes": "%"}, ".file.bytes: not base64"),
    ({"bytes": 5}, ".file.bytes"),
    (LINKED | {"mimeType": []}, ".file.mimeType"),
    (LINKED | {"name": 5}, ".file.name"),
    *(
        ({"bytes": "YQ==", "mimeType": one}, ".kind=file is not supported: the agent takes text/plain, image/png")
        for one in ("image/jpeg", "text/html", "", None)  # types that the card does not list
    ),
]


async def test_a_file_that_is_not_sound_or_not_listed_is_refused_by_name(hub: HubProcess) -> None:
    async with caller_of(hub, Echo, agent=IMAGES) as (agent, caller):
        for file, naming in UNSOUND:
            sent = {"message": message([text("look"), {"kind": "file", "file": file}])}
            refusal = await caller.refusal("message/send", sent)
            assert (refusal["code"], f"message.parts[1]{naming}" in refusal["message"]) == (-32602, True), refusal
        assert agent.prompts == []
        plain = {"kind": "file", "file": {"bytes": "YQ==", "mimeType": "text/plain"}}
        assert (await caller.send([plain]))["kind"] == "message"  # refused where the card lists no files: test_21
