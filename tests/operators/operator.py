"""An operator's end of `/cli`, and what it needs to be one: shares, prompts and transcripts over REST."""

import asyncio
import json
from collections.abc import Callable
from typing import Any, Self

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from lab.callers import Json, bearer, web
from lab.hub_process import HubProcess

FRAME_WITHIN_S = 30


class Operator:
    """A socket that keeps every frame; used as a context manager it leaves on exit."""

    def __init__(self, url: str, token: str | None, **options: Any) -> None:
        self.url = url.replace("http", "ws", 1) + "/cli"
        self.token = token
        self.options = options
        self.frames: list[Json] = []
        self.closed = asyncio.Event()
        self._heard = asyncio.Condition()
        self._reader: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self.socket = await dial(self.url, self.token, **self.options)
        self._reader = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.socket.close()
        await self.closed.wait()

    async def send(self, type_: str, **frame: Any) -> None:
        await self.socket.send(json.dumps({"type": type_, **frame}))

    async def heard(
        self, wanted: str | Callable[[Json], bool], *, count: int = 1, within_s: float = FRAME_WITHIN_S
    ) -> Json:
        """Wait for the n-th frame of a type, or that fits."""
        fits = wanted if callable(wanted) else lambda frame: frame["type"] == wanted

        def found() -> list[Json]:
            return [frame for frame in self.frames if fits(frame)]

        try:
            async with asyncio.timeout(within_s), self._heard:
                await self._heard.wait_for(lambda: len(found()) >= count)
        except TimeoutError:
            raise AssertionError(f"{wanted} number {count} did not come; heard {self.frames}") from None
        return found()[count - 1]

    async def subscribe(self, session_id: str | None) -> Json:
        before = len(self.of("subscribed"))
        await self.send("subscribe", sessionId=session_id)
        return await self.heard("subscribed", count=before + 1)

    async def answer(self, type_: str, **frame: Any) -> Json:
        """Send a frame and wait for its ack or error."""
        before = len(self.of("ack")) + len(self.of("error"))
        await self.send(type_, **frame)
        return await self.heard(lambda one: one["type"] in ("ack", "error"), count=before + 1)

    def of(self, kind: str) -> list[Json]:
        return [frame for frame in self.frames if frame["type"] == kind]

    async def event(self, kind: str, **payload: Any) -> Json:
        """Wait for a chat event of a type whose payload has these members."""
        frame = await self.heard(
            lambda one: (
                one["type"] == "event"
                and one["event"]["type"] == kind
                and payload.items() <= one["event"]["payload"].items()
            )
        )
        event: Json = frame["event"]
        return event

    async def _read(self) -> None:
        try:
            async for message in self.socket:
                async with self._heard:
                    self.frames.append(json.loads(message))
                    self._heard.notify_all()
        except ConnectionClosed:
            pass
        finally:
            self.closed.set()


async def dial(url: str, token: str | None, **options: Any) -> ClientConnection:
    """A bare socket to `/cli`."""
    headers = bearer(token) if token else {}
    headers |= options.pop("headers", {})
    return await connect(
        url, additional_headers=headers, proxy=None, ping_interval=None, max_size=2**23, **options
    )


async def post(url: str, path: str, token: str | None, body: Any, **options: Any) -> httpx.Response:
    """POST JSON under /api/v1."""
    async with web(url) as client:
        headers = (bearer(token) if token else {}) | options.pop("headers", {})
        return await client.post(f"/api/v1{path}", json=body, headers=headers, **options)


async def prompt(hub: HubProcess, token: str, session_id: str | None, text: str, **body: Any) -> httpx.Response:
    return await post(hub.url, f"/sessions/{session_id}/prompt", token, {"text": text, **body})


async def route(hub: HubProcess, token: str, peer: str, prompt: str, mode: str = "ask") -> httpx.Response:
    return await post(hub.url, f"/peers/{peer}/route", token, {"prompt": prompt, "mode": mode})


def refused(response: httpx.Response, status: int, code: str) -> str:
    """Check a refusal's form; its sentence."""
    assert (response.status_code, response.json()["error"]) == (status, code), response.text
    assert response.headers["content-type"] == "application/json"
    message: str = response.json()["message"]
    assert message
    return message
