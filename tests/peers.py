"""Agents as they come: honest, slow, silent, careless, lying. Each is a real program on a real socket."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from tests.callers import Json, bearer, web
from tests.hub_process import HubProcess
from tests.peer import Peer

_slugs = itertools.count(1)
Kind = TypeVar("Kind", bound=Peer)


class Echo(Peer):
    """Says what it is asked, and notes when each question came and when its answer left."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.spans: list[tuple[float, float, str]] = []

    async def answer(self, prompt: Json) -> None:
        began = time.monotonic()
        await self.think()
        self.spans.append((began, time.monotonic(), prompt["askerUser"]))
        await self.reply(prompt["chatId"], f"echo: {prompt['text']}")

    async def think(self) -> None:
        """Take no time."""


class Slow(Echo):
    """Echoes after a while."""

    def __init__(self, *args: Any, delay_s: float, **options: Any) -> None:
        super().__init__(*args, **options)
        self.delay_s = delay_s

    async def think(self) -> None:
        await asyncio.sleep(self.delay_s)


class Held(Echo):
    """Echoes once its test lets go of it."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.release = asyncio.Event()

    async def think(self) -> None:
        await self.release.wait()


class Chunker(Peer):
    """Streams its answer in the given pieces; the last frame is `done` and empty."""

    def __init__(self, *args: Any, pieces: list[str], **options: Any) -> None:
        super().__init__(*args, **options)
        self.pieces = pieces

    async def answer(self, prompt: Json) -> None:
        for piece in self.pieces:
            await self.chunk(prompt["chatId"], piece)
        await self.chunk(prompt["chatId"], "", done=True)


class Stall(Echo):
    """Never answers its first question; echoes the rest when told so."""

    def __init__(self, *args: Any, only_first: bool = False, **options: Any) -> None:
        super().__init__(*args, **options)
        self.only_first = only_first

    async def answer(self, prompt: Json) -> None:
        if self.only_first and len(self.spans) > 0:
            await super().answer(prompt)
        else:
            self.spans.append((time.monotonic(), time.monotonic(), prompt["askerUser"]))


class Drop(Peer):
    """Tears its socket down at a question, without a closing handshake."""

    async def answer(self, prompt: Json) -> None:
        self.socket.transport.abort()


class Flood(Peer):
    """Sends as many chunks of a size as it is told to, whatever the caps are."""

    def __init__(self, *args: Any, chunks: int, chunk_bytes: int, **options: Any) -> None:
        super().__init__(*args, **options)
        self.chunks = chunks
        self.chunk_bytes = chunk_bytes

    async def answer(self, prompt: Json) -> None:
        for _ in range(self.chunks):
            await self.chunk(prompt["chatId"], "x" * self.chunk_bytes)
        await self.chunk(prompt["chatId"], "", done=True)


class TwoAnswers(Peer):
    """Answers, and then answers again."""

    async def answer(self, prompt: Json) -> None:
        await self.reply(prompt["chatId"], "the first answer")
        await self.reply(prompt["chatId"], "the second answer")
        await self.chunk(prompt["chatId"], "a late chunk", done=True)


class SpeaksWhenEvicted(Peer):
    """Answers its open question only when it is told that another took its place."""

    async def on_frame(self, frame: Json) -> None:
        await super().on_frame(frame)
        if frame["type"] == "bye":
            for prompt in self.prompts:
                await self.reply(prompt["chatId"], "from the evicted socket")


async def publish(hub: HubProcess, token: str, session_id: str, slug: str, **fields: Any) -> Json:
    """Publish a session as an agent; the ApiAgent."""
    body = {"sessionId": session_id, "name": slug, "slug": slug, "status": "published"} | fields
    async with web(hub.url) as client:
        response = await client.post("/api/v1/agents", json=body, headers=bearer(token))
    assert response.status_code in (200, 201), response.text
    agent: Json = response.json()
    return agent


@asynccontextmanager
async def online(
    hub: HubProcess, kind: Callable[..., Kind], *, at: int = 0, agent: Json | None = None, **options: Any
) -> AsyncIterator[Kind]:
    """An agent of `owner`, connected to the process `urls[at]` and published under a slug of its own.

    `agent`: fields of the published agent; `options`: the peer's own.
    """
    hub.check_running(at)
    slug = f"{kind.__name__.lower()}-{next(_slugs)}"
    async with kind(hub.urls[at], hub.mint("owner", "channel"), **options) as peer:
        assert peer.session_id is not None
        peer.agent = await publish(hub, hub.mint("owner", "session"), peer.session_id, slug, **(agent or {}))
        peer.handle = peer.agent["handle"]
        yield peer
