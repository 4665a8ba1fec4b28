"""A caller over HTTP+JSON, the second binding of A2A 1.0."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from lab.callers import Json, bearer, question, rpc_path, web

V1 = {"A2A-Version": "1.0"}


class Client:
    """Calls the addresses below one agent's."""

    def __init__(self, http: httpx.AsyncClient, handle: str, token: str) -> None:
        self.http, self.base, self.headers = http, rpc_path(handle), V1 | (bearer(token) if token else {})

    async def call(self, verb: str, path: str, *, headers: Json | None = None, **options: Any) -> httpx.Response:
        """One call; `headers` replace those it has by itself, None takes one out."""
        merged = {name: value for name, value in (self.headers | (headers or {})).items() if value is not None}
        return await self.http.request(verb, f"{self.base}/{path}", headers=merged, **options)

    async def get(self, path: str, **options: Any) -> Json:
        return sound(await self.call("GET", path, **options))

    async def post(self, path: str, body: Json | None = None, **options: Any) -> Json:
        return sound(await self.call("POST", path, **({} if body is None else {"json": body}), **options))

    async def send(self, text: str, *, now: bool = False, **message: Any) -> Json:
        """Ask; the task, at its end or, with `now`, as it begins."""
        params = question(text)
        params["message"] |= message
        answer = await self.post("message:send", params | {"configuration": {"returnImmediately": now}})
        task: Json = answer["task"]
        return task

    @asynccontextmanager
    async def stream(
        self, verb: str, path: str, body: Json | None = None, **headers: str
    ) -> AsyncIterator["Events"]:
        """An open stream; leaving the block drops the connection."""
        named = self.headers | {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.http.stream(verb, f"{self.base}/{path}", json=body, headers=named) as response:
            assert response.status_code == 200, (await response.aread()).decode()
            assert response.headers["content-type"] == "text/event-stream"
            yield Events(response)

    async def read(self, verb: str, path: str, body: Json | None = None, **headers: str) -> list[tuple[str, Json]]:
        """A stream to its end: ids and frames."""
        async with self.stream(verb, path, body, **headers) as events:
            return [event async for event in events]


class Events:
    """The events of a stream as they come."""

    def __init__(self, response: httpx.Response) -> None:
        self._lines = response.aiter_lines()

    async def __aiter__(self) -> AsyncIterator[tuple[str, Json]]:
        event_id = ""
        async for line in self._lines:
            if line.startswith("id: "):
                event_id = line[4:]
            elif line.startswith("data: "):
                yield event_id, json.loads(line[6:])


@asynccontextmanager
async def client(url: str, handle: str, token: str) -> AsyncIterator[Client]:
    """A client of one agent."""
    async with web(url) as http:
        yield Client(http, handle, token)


def sound(response: httpx.Response) -> Json:
    """The JSON of a good answer."""
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    answer: Json = response.json()
    return answer


def refusal(response: httpx.Response, status: int, reason: str) -> Json:
    """The error of a refused call; fails the test when it is another one, or not of this binding's shape."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    assert response.headers["access-control-allow-origin"] == "*"
    body: Json = response.json()
    assert body.keys() == {"error"}
    error: Json = body["error"]
    assert error.keys() == {"code", "status", "message", "details"}
    assert error["code"] == status
    assert error["status"].isupper()
    info = error["details"][0]
    assert info["@type"] == "type.googleapis.com/google.rpc.ErrorInfo"
    assert info["reason"] == reason, error
    return error
