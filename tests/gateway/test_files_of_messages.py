"""Files with a message over `a2a-v1`: uploaded before, and named in its text as `fileId=N`."""

import re
from typing import Any

import httpx

from lab.agents import Echo, online
from lab.callers import bearer, web
from lab.frames import Json
from lab.hub_process import HubProcess
from lab.pictures import PIXEL
from tests.gateway.client import team


class Reader(Echo):
    """Fetches the files that its questions name by id, before it answers."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fetched: list[bytes] = []
        self.files_at = ""

    async def answer(self, prompt: Json) -> None:
        params = {"sessionId": self.session_id}
        for number in re.findall(r"fileId=(\d+)", prompt["text"]):
            async with httpx.AsyncClient(headers=bearer(self.token)) as client:
                self.fetched.append((await client.get(f"{self.files_at}/{number}", params=params)).content)
        await super().answer(prompt)


async def upload(hub: HubProcess, login: str) -> int:
    headers = bearer(hub.mint(login, "session"))
    async with web(hub.url, headers=headers) as client:
        answer = await client.post("/api/v1/files", files={"file": ("chart.png", PIXEL, "image/png")})
    assert answer.status_code == 201, answer.text
    number: int = answer.json()["id"]
    return number


async def test_an_uploaded_file_that_a_message_names_reaches_the_agent(hub: HubProcess) -> None:
    own, foreign = await upload(hub, "pictured"), await upload(hub, "stranger-of-files")
    async with (
        online(hub, Reader, agent={"defaultInputModes": ["text/plain", "image/png"]}) as agent,
        team(hub, "pictured", "steward") as (steward,),
    ):
        agent.files_at = f"{hub.url}/api/channel/files"
        reply = await steward.send_message(f"@{agent.handle}", f"look at fileId={own}")
        assert reply["type"] == "message", reply
        assert agent.fetched == [PIXEL]
        refused = await steward.send_message(f"@{agent.handle}", f"look at fileId={foreign}")
        assert refused["type"] == "error"
        assert len(agent.prompts) == 1
