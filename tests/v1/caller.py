"""A caller in A2A 1.0, over JSON-RPC and real HTTP."""

import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from lab.callers import Json, bearer, envelope, rpc_path, web

ENDED = ("TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_REJECTED")
_numbers = itertools.count(1)


def message(text: str, **members: Any) -> Json:
    """A user's message; `parts` in place of the text."""
    made = {"messageId": f"v1-{next(_numbers)}", "role": "ROLE_USER", "parts": [{"text": text}]}
    return made | members


class Caller:
    """One caller of one agent at one process."""

    def __init__(self, url: str, handle: str, token: str) -> None:
        self.url, self.path = url, rpc_path(handle)
        self.headers = bearer(token) | {"A2A-Version": "1.0"}

    async def post(self, method: str, params: Any, **headers: str) -> httpx.Response:
        async with web(self.url) as client:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return await client.post(self.path, json=envelope(method, params, 7), headers=self.headers | named)

    async def call(self, method: str, params: Any, **headers: str) -> Json:
        """The result; fails the test on an error."""
        answer: Json = (await self.post(method, params, **headers)).json()
        assert "error" not in answer, answer
        assert answer["id"] == 7
        result: Json = answer["result"]
        return result

    async def refusal(self, method: str, params: Any, **headers: str) -> Json:
        """The error; fails the test when there is none."""
        response = await self.post(method, params, **headers)
        assert response.status_code == 200, response.text
        error: Json = response.json()["error"]
        return error

    async def send(self, text: str, configuration: Json | None = None, **members: Any) -> Json:
        """SendMessage; the Task."""
        params = {"message": message(text, **members)} | (
            {"configuration": configuration} if configuration else {}
        )
        task: Json = (await self.call("SendMessage", params))["task"]
        return task

    async def begin(self, text: str, **members: Any) -> Json:
        """SendMessage that does not wait; the Task."""
        return await self.send(text, {"returnImmediately": True}, **members)

    async def get(self, task_id: str) -> Json:
        return await self.call("GetTask", {"id": task_id})

    async def stream(self, text: str, **members: Any) -> list["Event"]:
        """SendStreamingMessage, to its end."""
        async with self.open("SendStreamingMessage", {"message": message(text, **members)}) as events:
            return [event async for event in events]

    @asynccontextmanager
    async def open(self, method: str, params: Any, **headers: str) -> AsyncIterator[AsyncIterator["Event"]]:
        """A stream; leaving the block drops the connection."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        body = envelope(method, params, 7)
        async with (
            web(self.url) as client,
            client.stream("POST", self.path, json=body, headers=self.headers | named) as response,
        ):
            assert response.headers["content-type"] == "text/event-stream", await response.aread()
            yield _events(response)


class Event:
    """One frame: its id, its kind (task, statusUpdate, artifactUpdate), its content."""

    def __init__(self, event_id: str, answer: Json) -> None:
        assert answer["id"] == 7, answer
        ((self.kind, self.content),) = answer["result"].items()
        self.id = event_id

    @property
    def seq(self) -> int:
        return int(self.id.rpartition(".")[2])

    @property
    def state(self) -> str:
        """The state it tells of; empty for artifacts."""
        return str(self.content["status"]["state"]).removeprefix("TASK_STATE_") if "status" in self.content else ""

    def __repr__(self) -> str:
        return f"{self.id} {self.kind} {self.content}"


async def _events(response: httpx.Response) -> AsyncIterator[Event]:
    event_id = ""
    async for line in response.aiter_lines():
        if line.startswith("id: "):
            event_id = line[4:]
        elif line.startswith("data: "):
            yield Event(event_id, json.loads(line[6:]))


def texts(parts: list[Json]) -> str:
    return "".join(part.get("text", "") for part in parts)


def reply_of(task: Json) -> str:
    """The reply of a completed task."""
    assert task["status"]["state"] == "TASK_STATE_COMPLETED", task
    return texts(next(one for one in task["artifacts"] if one["artifactId"].startswith("reply-"))["parts"])


def told(events: list[Event]) -> list[str]:
    """The events of a stream, in short."""
    return [event.state or f"{event.content['artifact']['artifactId']}" for event in events]
