"""Files that callers send, from every dialect and surface to the agent, and back to the caller."""

import base64
import re
from typing import Any

import httpx

from lab.agents import Echo, TaskPeer, online
from lab.callers import Json, bearer, envelope, question, rpc_path, web
from lab.hub_process import HubProcess
from lab.pictures import PIXEL, PIXEL_BASE64, png_of
from tests.v1.caller import Caller, message

TAKES: Json = {"defaultInputModes": ["text/plain", "image/*", "application/pdf"]}
RAW: Json = {"raw": PIXEL_BASE64, "mediaType": "image/png", "filename": "a.png"}
PDF = b"%PDF-1.4\n1 0 obj\n"
LARGE = 2_000_000  # bytes, more than a request of A2A may have


async def upload(hub: HubProcess, token: str, data: bytes, name: str, mime: str) -> Json:
    async with web(hub.url) as client:
        answer = await client.post("/api/v1/files", files={"file": (name, data, mime)}, headers=bearer(token))
    assert answer.status_code == 201, answer.text
    shown: Json = answer.json()
    return shown


async def fetch(hub: HubProcess, token: str, url: str) -> httpx.Response:
    async with web(hub.url) as client:
        return await client.get(url, headers=bearer(token))


class Reader(Echo):
    """Fetches the files of its questions by their addresses, before it answers."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fetched: list[bytes] = []
        self.hub_token = ""

    async def answer(self, prompt: Json) -> None:
        for part in prompt.get("parts", []):
            if "/api/channel/files/" in part.get("url", ""):
                async with httpx.AsyncClient() as client:
                    answer = await client.get(part["url"], headers=bearer(self.hub_token))
                self.fetched.append(answer.content)
        await super().answer(prompt)


async def test_a_file_in_a_message_is_kept_once_and_its_task_names_it(hub: HubProcess, alice: str) -> None:
    async with online(hub, Echo, agent=TAKES) as agent:
        caller = Caller(hub.url, agent.handle, alice)
        parts = [{"text": "look"}, RAW]
        task = (await caller.call("SendMessage", {"message": message("", parts=parts)}))["task"]
        read = await caller.call("GetTask", {"id": task["id"]})
        [prompt] = agent.prompts
    assert prompt["parts"] == parts
    note = f'file (part 2), as the caller sent it, not in this text: "a.png", "image/png", {len(PIXEL)} bytes, '
    found = re.fullmatch(re.escape(f"look\n\n{note}") + r"fileId=(\d+)", prompt["text"])
    assert found
    shown = read["history"][0]["parts"][1]
    url = f"/api/v1/files/{found[1]}/content"
    assert shown.pop("url").endswith(url)
    assert shown == {"mediaType": "image/png", "filename": "a.png"}
    assert (await fetch(hub, alice, url)).content == PIXEL
    assert (await fetch(hub, hub.mint("stranger", "session"), url)).status_code == 404


async def test_an_uploaded_file_reaches_the_agent_by_its_address(hub: HubProcess, alice: str) -> None:
    data = PDF + bytes(LARGE)
    async with online(hub, Reader, agent=TAKES) as agent:
        agent.hub_token = agent.token
        file = await upload(hub, alice, data, "plan.pdf", "application/pdf")
        caller = Caller(hub.url, agent.handle, alice)
        await caller.call("SendMessage", {"message": message("", parts=[{"text": "see"}, {"url": file["url"]}])})
        [prompt] = agent.prompts
        part = prompt["parts"][1]
        assert (part["filename"], part["mediaType"]) == ("plan.pdf", "application/pdf")
        assert f'"plan.pdf", "application/pdf", {len(data)} bytes, fileId={file["id"]}' in prompt["text"]
        assert agent.fetched == [data]
        afterwards = await fetch(hub, agent.hub_token, part["url"].partition(hub.url)[2] or part["url"])
        assert afterwards.status_code == 404


async def test_all_dialects_pass_files_on(hub: HubProcess, alice: str) -> None:
    async with online(hub, Echo, agent=TAKES) as agent, web(hub.url) as client:
        path, headers = rpc_path(agent.handle), bearer(alice)
        own = question("look", "m1")
        own["message"]["parts"].append(RAW)
        answer = (await client.post(path, json=envelope("SendMessage", own), headers=headers)).json()["result"]
        assert "metadata" not in answer
        of_03 = {"kind": "file", "file": {"bytes": PIXEL_BASE64, "mimeType": "image/png", "name": "a.png"}}
        said = {
            "messageId": "m2",
            "role": "user",
            "kind": "message",
            "parts": [{"kind": "text", "text": "look"}, of_03],
        }
        await client.post(path, json=envelope("message/send", {"message": said}), headers=headers)
        first, second = agent.prompts
    assert first["parts"] == second["parts"] == [{"text": "look"}, RAW]


async def test_a_repeated_message_with_a_file_joins_the_first(embedded_hub: HubProcess) -> None:
    token = embedded_hub.mint("alice", "session")
    async with online(embedded_hub, TaskPeer, agent=TAKES) as agent:
        caller = Caller(embedded_hub.url, agent.handle, token)
        sent = {"message": message("", parts=[{"text": "say once"}, RAW])}
        first = await caller.call("SendMessage", sent, Idempotency_Key="k1")
        again = await caller.call("SendMessage", sent, Idempotency_Key="k1")
        other = {"message": sent["message"] | {"parts": [{"text": "say once"}, RAW | {"raw": "YQ=="}]}}
        refused = await caller.refusal("SendMessage", other, Idempotency_Key="k1")
        assert len(agent.prompts) == 1
    assert first["task"]["id"] == again["task"]["id"]
    assert refused["code"] == -32005  # the bytes are checked first


async def refusal(hub: HubProcess, token: str, handle: str, *parts: Json) -> Json:
    caller = Caller(hub.url, handle, token)
    return await caller.refusal("SendMessage", {"message": message("", parts=[{"text": "look"}, *parts])})


async def test_bad_files_get_errors_that_say_what_to_do(hub: HubProcess, alice: str) -> None:
    lie = RAW | {"raw": base64.b64encode(b"<script>").decode()}
    bomb = RAW | {"raw": base64.b64encode(png_of(60_000, 60_000, bytes(10))).decode()}
    own = await upload(hub, alice, PIXEL, "c.png", "image/png")
    absent = {"url": own["url"].replace(f"/{own['id']}/", "/999999/")}
    async with online(hub, Echo, agent=TAKES) as agent:
        lied = await refusal(hub, alice, agent.handle, lie)
        assert (lied["code"], "declared as image/png" in lied["message"]) == (-32005, True)
        bombed = await refusal(hub, alice, agent.handle, bomb)
        assert "message.parts[1]: a.png: the picture has 60000 x 60000 pixels" in bombed["message"]
        gone = await refusal(hub, alice, agent.handle, absent)
        assert (gone["code"], "upload it again" in gone["message"]) == (-32602, True)
        many = await refusal(hub, alice, agent.handle, *[RAW] * 21)
        assert (many["code"], "at most 20 files, not 21" in many["message"]) == (-32602, True)
        theirs = await upload(hub, hub.mint("stranger", "session"), PIXEL, "d.png", "image/png")
        foreign = await refusal(hub, alice, agent.handle, {"url": theirs["url"]})
        assert foreign["message"] == gone["message"]
        text = await upload(hub, alice, b"hello", "e.html", "text/html")
        untaken = await refusal(hub, alice, agent.handle, {"url": text["url"], "mediaType": "image/png"})
        assert (untaken["code"], "is not supported" in untaken["message"]) == (-32005, True)
        assert agent.prompts == []


async def test_ten_thousand_files_in_one_message_are_refused_and_none_is_kept(hub: HubProcess) -> None:
    token = hub.mint("many-files", "session")
    async with online(hub, Echo, agent=TAKES) as agent:
        many = await refusal(hub, token, agent.handle, *[{"raw": "YQ==", "mediaType": "image/png"}] * 10_000)
        assert many["code"] == -32600  # the body holds too many values: no part is read
        assert agent.prompts == []
    async with web(hub.url) as client:
        kept = await client.get("/api/v1/files", headers=bearer(token))
    assert kept.json()["items"] == []
