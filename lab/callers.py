"""Callers: a small client of the hub dialect over real HTTP."""

import itertools
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from lab.frames import Json as Json

ANSWER_WITHIN_S = 75
TERMINAL = {"COMPLETED", "FAILED"}
TLS = ssl.create_default_context()  # one for all: each client would load the certificates anew
# The client closes no idle connection: without a lock, it might be one that another request has just been given.
LIMITS = httpx.Limits(max_connections=100, keepalive_expiry=None)
_message_ids = itertools.count(1)


def web(url: str, *, limits: httpx.Limits = LIMITS, **options: Any) -> httpx.AsyncClient:
    """A client of one hub process, which follows no redirect and uses no proxy."""
    return httpx.AsyncClient(
        base_url=url, timeout=ANSWER_WITHIN_S, trust_env=False, verify=TLS, limits=limits, **options
    )


def rpc_path(handle: str) -> str:
    return f"/api/a2a/v1/agents/{handle}"


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def question(text: str, message_id: str | None = None) -> Json:
    """The params of SendMessage."""
    made = message_id or f"m-{next(_message_ids)}"
    return {"message": {"messageId": made, "role": "ROLE_USER", "parts": [{"text": text}]}}


def envelope(method: str, params: Any, rpc_id: Any = "client-1") -> Json:
    return {"jsonrpc": "2.0", "method": method, "params": params, "id": rpc_id}


async def call(
    url: str, handle: str, token: str, method: str, params: Any, *, version: str = ""
) -> httpx.Response:
    """POST one JSON-RPC request; `version`: of A2A, empty for the hub's dialect."""
    headers = bearer(token) | ({"A2A-Version": version} if version else {})
    async with web(url) as client:
        return await client.post(rpc_path(handle), json=envelope(method, params), headers=headers)


async def send(url: str, handle: str, text: str, token: str) -> Json:
    """Ask and wait for the answer; the Task."""
    response = await call(url, handle, token, "SendMessage", question(text))
    assert response.status_code == 200, response.text
    answer: Json = response.json()
    assert answer["id"] == "client-1", answer
    assert "error" not in answer, answer
    task: Json = answer["result"]
    return task


async def get_task(url: str, handle: str, task_id: str, token: str) -> Json:
    """The whole JSON-RPC answer of GetTask, a result or an error."""
    answer: Json = (await call(url, handle, token, "GetTask", {"id": task_id})).json()
    return answer


async def mint_app(url: str, session: str, name: str, **limits: Any) -> str:
    """An app token of a signed-in user."""
    async with web(url, headers=bearer(session)) as client:
        minted = await client.post("/api/v1/auth/apps/mint", json={"name": name, **limits})
    return str(minted.json()["token"])


async def revoke_app(url: str, session: str, name: str) -> None:
    """Revoke the app token of that name."""
    async with web(url, headers=bearer(session)) as client:
        tokens = (await client.get("/api/v1/tokens")).json()["items"]
        found = next(one["id"] for one in tokens if one["name"] == name)
        assert (await client.delete(f"/api/v1/tokens/{found}")).status_code == 204


async def inbound(url: str, agent_id: int, owner_token: str) -> Json:
    """The asks of an agent, as its owner sees them."""
    async with web(url) as client:
        response = await client.get(f"/api/v1/agents/{agent_id}/inbound?days=1", headers=bearer(owner_token))
    assert response.status_code == 200, response.text
    log: Json = response.json()
    return log


class Stream:
    """An open SSE answer, line by line."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self.comments: list[str] = []
        self._lines = response.aiter_lines()

    async def tasks(self) -> AsyncIterator[Json]:
        """The Task of each frame as it comes; comment lines are kept aside."""
        async for line in self._lines:
            if line.startswith(":"):
                self.comments.append(line)
            elif line:
                assert line.startswith("data: "), line
                yield json.loads(line[len("data: ") :])["task"]

    async def next_line(self) -> str:
        """The next line that is not blank."""
        async for line in self._lines:
            if line:
                return line
        raise EOFError("the stream ended")


@asynccontextmanager
async def open_stream(url: str, handle: str, text: str, token: str) -> AsyncIterator[Stream]:
    """SendStreamingMessage; leaving the block drops the connection."""
    body = envelope("SendStreamingMessage", question(text))
    async with (
        web(url) as client,
        client.stream("POST", rpc_path(handle), json=body, headers=bearer(token)) as response,
    ):
        yield Stream(response)


async def stream(url: str, handle: str, text: str, token: str) -> list[Json]:
    """Ask, read the stream to its end, give every Task."""
    async with open_stream(url, handle, text, token) as answer:
        assert answer.response.status_code == 200
        return [task async for task in answer.tasks()]


def text_of(message: Json) -> str:
    return "".join(part["text"] for part in message["parts"])


def failed_text(task: Json) -> str:
    """The text of a failed task; fails the test when the task did not fail."""
    assert task["status"]["state"] == "FAILED", task
    return text_of(task["status"]["message"])


def reply_text(task: Json) -> str:
    """The agent's answer; fails the test when there is none."""
    assert task["status"]["state"] == "COMPLETED", task
    last = task["history"][-1]
    assert last["role"] == "ROLE_AGENT", task
    return text_of(last)


def chunks_of(tasks: list[Json]) -> list[str]:
    """The pieces a stream carried in its WORKING frames."""
    statuses = [task["status"] for task in tasks if task["status"]["state"] == "WORKING"]
    return [text_of(status["message"]) for status in statuses if "message" in status]
