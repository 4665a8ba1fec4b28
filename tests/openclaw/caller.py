"""A caller in A2A 0.3, over JSON-RPC and real HTTP."""

import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx

from lab.agents import Kind, online
from lab.callers import Json, bearer, envelope, rpc_path, web
from lab.hub_process import HubProcess
from lab.waiting import eventually

ENDED = ("completed", "failed", "canceled", "rejected")
TASK_GENERATING = {"agentStyle": "task-generating"}
_numbers = itertools.count(1)


def text(content: str) -> Json:
    """A text part."""
    return {"kind": "text", "text": content}


def message(content: str | list[Json], **members: Any) -> Json:
    """A user's message, of one text or of parts."""
    parts = [text(content)] if isinstance(content, str) else content
    made = {"kind": "message", "messageId": f"v03-{next(_numbers)}", "role": "user", "parts": parts}
    return made | members


class Caller:
    """One caller of one agent at one process; says no version, as the SDKs of 0.3 do."""

    def __init__(self, url: str, handle: str, token: str) -> None:
        self.url, self.path = url, rpc_path(handle)
        self.headers = bearer(token)

    async def post(self, method: str, params: Any, **headers: str) -> httpx.Response:
        async with web(self.url, headers=self.headers | _named(headers)) as client:
            return await client.post(self.path, json=envelope(method, params, 7))

    async def call(self, method: str, params: Any) -> Json:
        """The result; fails the test on an error."""
        answer: Json = (await self.post(method, params)).json()
        assert "error" not in answer, answer
        assert answer["id"] == 7
        result: Json = answer["result"]
        return result

    async def refusal(self, method: str, params: Any) -> Json:
        """The error; fails the test when there is none."""
        response = await self.post(method, params)
        assert response.status_code == 200, response.text
        error: Json = response.json()["error"]
        return error

    async def send(self, content: str | list[Json], configuration: Json | None = None, **members: Any) -> Json:
        """message/send; the Message or Task."""
        params = {"message": message(content, **members)}
        return await self.call(
            "message/send", params | ({"configuration": configuration} if configuration else {})
        )

    async def begin(self, content: str | list[Json], **members: Any) -> Json:
        """message/send that does not wait; the Task."""
        return await self.send(content, {"blocking": False}, **members)

    async def get(self, task_id: str, **more: Any) -> Json:
        return await self.call("tasks/get", {"id": task_id} | more)

    async def cancel(self, task_id: str) -> Json:
        return await self.call("tasks/cancel", {"id": task_id})

    async def stream(self, content: str | list[Json], **members: Any) -> list[Json]:
        """message/stream, to its end."""
        return await self.streamed("message/stream", {"message": message(content, **members)})

    async def streamed(self, method: str, params: Any, **headers: str) -> list[Json]:
        """All results of a stream."""
        async with self.open(method, params, **headers) as events:
            return [event async for event in events]

    async def streamed_error(self, method: str, params: Any) -> Json:
        """The error of a stream that is nothing but that error."""
        response = await self.post(method, params)
        assert response.status_code == 200
        assert response.headers["content-type"] == "text/event-stream"
        lines = [line for line in response.text.splitlines() if line]
        assert len(lines) == 1, lines
        answer: Json = json.loads(lines[0].removeprefix("data: "))
        assert set(answer) == {"jsonrpc", "id", "error"}
        error: Json = answer["error"]
        return error

    async def ended(self, task_id: str) -> Json:
        """The task once polling shows its end."""

        async def look() -> Json | None:
            task = await self.get(task_id, historyLength=100)
            return task if task["status"]["state"] in ENDED else None

        return await eventually(look, f"the end of {task_id}")

    @asynccontextmanager
    async def open(self, method: str, params: Any, **headers: str) -> AsyncIterator[AsyncIterator[Json]]:
        """A stream's results; leaving the block drops the connection."""
        body = envelope(method, params, 7)
        async with (
            web(self.url, headers=self.headers | _named(headers)) as client,
            client.stream("POST", self.path, json=body) as response,
        ):
            assert response.headers["content-type"] == "text/event-stream", await response.aread()
            yield _results(response)


@asynccontextmanager
async def caller_of(
    hub: HubProcess, kind: Callable[..., Kind], **options: Any
) -> AsyncIterator[tuple[Kind, Caller]]:
    """An agent that is online, and alice, who asks it."""
    async with online(hub, kind, **options) as agent:
        yield agent, Caller(hub.url, agent.handle, hub.mint("alice", "session"))


def _named(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


async def _results(response: httpx.Response) -> AsyncIterator[Json]:
    async for line in response.aiter_lines():
        if line.startswith("data: "):
            answer = json.loads(line[6:])
            assert answer["id"] == 7, answer
            assert "error" not in answer, answer
            yield answer["result"]
        else:
            assert not line or line.startswith(":"), line


def texts(parts: list[Json]) -> str:
    return "".join(part["text"] for part in parts if part["kind"] == "text")


def state_of(shown: Json) -> str:
    """The state of a task or a status-update."""
    return str(shown["status"]["state"])


def words_of(shown: Json) -> str:
    """The words of the state of a task or a status-update."""
    return texts(shown["status"]["message"]["parts"])


def reply_of(task: Json) -> str:
    """The text of a task's first reply."""
    return artifacts_of(task)["assistant-output-0001"]


def artifacts_of(task: Json) -> dict[str, str]:
    """The texts of a task's artifacts, by id."""
    return {one["artifactId"]: texts(one["parts"]) for one in task.get("artifacts", [])}


def told(events: list[Json]) -> list[str]:
    """The events of a stream, in short."""
    return [
        f"{one['kind']} {one['artifact']['artifactId'] if 'artifact' in one else state_of(one)}" for one in events
    ]
