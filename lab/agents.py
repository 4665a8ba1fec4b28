"""Agents of tests, each on a real socket: honest, slow, silent, careless and lying ones."""

import asyncio
import base64
import itertools
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from lab import frames
from lab.callers import Json, bearer, web
from lab.channel_agent import ChannelAgent
from lab.hub_process import HubProcess
from lab.waiting import eventually

_slugs = itertools.count(1)
Kind = TypeVar("Kind", bound=ChannelAgent)


class Echo(ChannelAgent):
    """Echoes each question, and records when the question arrived and when the answer was sent.

    `usage`: the usage that the agent reports with each answer.
    """

    def __init__(self, *args: Any, usage: Json | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self.more = {} if usage is None else {"usage": usage}
        self.spans: list[tuple[float, float, str]] = []

    async def answer(self, prompt: Json) -> None:
        began = time.monotonic()
        await self.think()
        self.spans.append((began, time.monotonic(), prompt["askerUser"]))
        await self.reply(prompt["chatId"], f"echo: {prompt['text']}", **self.more)

    async def think(self) -> None:
        """Do nothing: subclasses wait here before they answer."""


class Slow(Echo):
    """Echoes each question after a delay."""

    def __init__(self, *args: Any, delay_s: float, **options: Any) -> None:
        super().__init__(*args, **options)
        self.delay_s = delay_s

    async def think(self) -> None:
        await asyncio.sleep(self.delay_s)


class Held(Echo):
    """Echoes once the test has set `release`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.release = asyncio.Event()

    async def think(self) -> None:
        await self.release.wait()


class Chunker(ChannelAgent):
    """Streams its answer in the given pieces; the last frame is `done` and empty."""

    def __init__(self, *args: Any, pieces: list[str], **options: Any) -> None:
        super().__init__(*args, **options)
        self.pieces = pieces

    async def answer(self, prompt: Json) -> None:
        for piece in self.pieces:
            await self.chunk(prompt["chatId"], piece)
        await self.chunk(prompt["chatId"], "", done=True)


class Stall(Echo):
    """Never answers its first question; with `only_first` echoes the later ones, else answers none."""

    def __init__(self, *args: Any, only_first: bool = False, **options: Any) -> None:
        super().__init__(*args, **options)
        self.only_first = only_first

    async def answer(self, prompt: Json) -> None:
        if self.only_first and len(self.spans) > 0:
            await super().answer(prompt)
        else:
            self.spans.append((time.monotonic(), time.monotonic(), prompt["askerUser"]))


class Drop(ChannelAgent):
    """Aborts the socket when a question comes, without a closing handshake."""

    async def answer(self, prompt: Json) -> None:
        self.socket.transport.abort()


class Flood(ChannelAgent):
    """Sends `chunks` chunks of `chunk_bytes`, also beyond the limits of the hub."""

    def __init__(self, *args: Any, chunks: int, chunk_bytes: int, **options: Any) -> None:
        super().__init__(*args, **options)
        self.chunks = chunks
        self.chunk_bytes = chunk_bytes

    async def answer(self, prompt: Json) -> None:
        for _ in range(self.chunks):
            await self.chunk(prompt["chatId"], "x" * self.chunk_bytes)
        await self.chunk(prompt["chatId"], "", done=True)


class TwoAnswers(ChannelAgent):
    """Answers, and then answers again."""

    async def answer(self, prompt: Json) -> None:
        await self.reply(prompt["chatId"], "the first answer")
        await self.reply(prompt["chatId"], "the second answer")
        await self.chunk(prompt["chatId"], "a late chunk", done=True)


class SpeaksWhenEvicted(ChannelAgent):
    """Answers the open question only when the hub tells it that another socket replaced its own."""

    async def on_frame(self, frame: Json) -> None:
        await super().on_frame(frame)
        if frame["type"] == "bye":
            for prompt in self.prompts:
                await self.reply(prompt["chatId"], "from the evicted socket")


class TaskPeer(ChannelAgent):
    """Does what the question says, step by step: `note reading | text a1 chapter one | ask which one?`.

    Steps are parted by ` | `; the first word names one (`STEPS`), the rest is for it. A question without steps is
    echoed. The next question of a task that was asked something (`ask`, `login`) gets `you said: …`, unless it has
    steps itself. A reply that no step ended ends with an empty last chunk.

        say TEXT            a chunk of the reply
        note TEXT           task_status working
        text ID TEXT        a new artifact (or one anew) with a text part
        more ID TEXT        another text part appended to it
        last ID TEXT        the same, and it is the last
        mark ID JSON        a text part appended to it, with that metadata and another name
        data ID JSON        an artifact with a data part; what follows the JSON is ignored
        raw ID TEXT         an artifact with the bytes of the text as a file, ID.txt
        image ID BASE64     an artifact with a PNG, ID.png
        url ID URL          an artifact with a file elsewhere
        rest SECONDS        say nothing for a while
        hold                wait until the test sets `release`
        wait                wait for the `cancel` frame of this chat
        ask, login, fail, reject, complete, reply TEXT      end: input_required, auth_required, failed, …
    """

    def __init__(self, *args: Any, features: list[str] | None = None, **options: Any) -> None:
        super().__init__(*args, features=["cancel"] if features is None else features, **options)
        self.release = asyncio.Event()
        self._canceled: dict[str, asyncio.Event] = {}
        self._asked: set[str] = set()

    async def answer(self, prompt: Json) -> None:
        chat_id, text = prompt["chatId"], prompt["text"]
        steps = [step.partition(" ") for step in text.split(" | ")]
        if any(name not in STEPS for name, _, _ in steps):
            is_second = prompt.get("taskId") in self._asked
            await self.reply(chat_id, f"you said: {text}" if is_second else f"echo: {text}")
            return
        for name, _, words in steps:
            await self._step(prompt, name, words)
        if steps[-1][0] not in ENDING_STEPS:
            await self.chunk(chat_id, "", done=True)

    async def status(self, chat_id: str, state: str, **more: Any) -> None:
        """Send a `task_status`."""
        await self.send(**frames.chat_event("task_status", chatId=chat_id, state=state, **more))

    async def artifact(self, chat_id: str, artifact_id: str, *parts: Json, **more: Any) -> None:
        """Send a `task_artifact`."""
        event = frames.chat_event("task_artifact", chatId=chat_id, artifactId=artifact_id, parts=parts, **more)
        await self.send(**event)

    async def on_frame(self, frame: Json) -> None:
        await super().on_frame(frame)
        if frame["type"] == "cancel":
            self._cancel_of(frame["chatId"]).set()

    async def _step(self, prompt: Json, name: str, words: str) -> None:
        chat_id = prompt["chatId"]
        if name in STATES:
            if STATES[name].endswith("_required"):
                self._asked.add(prompt.get("taskId", ""))
            await self.status(chat_id, STATES[name], text=words)
        elif name in PARTS:
            artifact_id, _, content = words.partition(" ")
            flags: Json = {"append": True} if name in ("more", "last", "mark") else {}
            flags |= {"lastChunk": True} if name == "last" else {}
            flags |= {"metadata": json.loads(content), "name": "marked"} if name == "mark" else {}
            await self.artifact(chat_id, artifact_id, PARTS[name](artifact_id, content), **flags)
        elif name == "say":
            await self.chunk(chat_id, words)
        elif name == "reply":
            await self.reply(chat_id, words)
        elif name == "rest":
            await asyncio.sleep(float(words))
        else:
            await (self.release if name == "hold" else self._cancel_of(chat_id)).wait()

    def _cancel_of(self, chat_id: str) -> asyncio.Event:
        return self._canceled.setdefault(chat_id, asyncio.Event())


def _text_part(_: str, content: str) -> Json:
    return {"text": content}


STATES = {
    "note": "working",
    "ask": "input_required",
    "login": "auth_required",
    "fail": "failed",
    "reject": "rejected",
    "complete": "completed",
}
PARTS: dict[str, Callable[[str, str], Json]] = {
    "text": _text_part,
    "more": _text_part,
    "last": _text_part,
    "mark": _text_part,
    "data": lambda _, content: {"data": json.JSONDecoder().raw_decode(content)[0]},
    "raw": lambda name, content: {
        "raw": base64.b64encode(content.encode()).decode(),
        "filename": f"{name}.txt",
        "mediaType": "text/plain",
    },
    "image": lambda name, content: {"raw": content, "filename": f"{name}.png", "mediaType": "image/png"},
    "url": lambda name, content: {"url": content, "filename": name},
}
ENDING_STEPS = {"reply", *STATES} - {"note"}
STEPS = {"say", "rest", "hold", "wait", "reply", *STATES, *PARTS}


async def publish(hub: HubProcess, token: str, session_id: str, slug: str, **fields: Any) -> Json:
    """Publish a session as an agent; the JSON of the agent."""
    body = {"sessionId": session_id, "name": slug, "slug": slug, "status": "published"} | fields
    async with web(hub.url) as client:
        response = await client.post("/api/v1/agents", json=body, headers=bearer(token))
    assert response.status_code in (200, 201), response.text
    agent: Json = response.json()
    return agent


async def gone(hub: HubProcess, agent: ChannelAgent, owner: str = "owner") -> None:
    """Wait until the hub has recorded that an agent disconnected; closing the socket does not wait for that."""

    async def offline() -> bool:
        async with web(hub.url, headers=bearer(hub.mint(owner, "session"))) as client:
            answer = await client.get(f"/api/v1/sessions/{agent.session_id}")
        return not answer.json()["connected"]

    await eventually(offline, "the hub has seen that the agent left")


@asynccontextmanager
async def online(
    hub: HubProcess,
    kind: Callable[..., Kind],
    *,
    at: int = 0,
    agent: Json | None = None,
    owner: str = "owner",
    **options: Any,
) -> AsyncIterator[Kind]:
    """An agent of a user, connected to the process `urls[at]` and published under a slug of its own.

    `agent`: fields of the published agent; `owner`: the login of the user; `options`: the peer's own.
    """
    hub.check_running(at)
    slug = f"{kind.__name__.lower()}-{next(_slugs)}"
    async with kind(hub.urls[at], hub.mint(owner, "channel"), **options) as peer:
        assert peer.session_id is not None
        peer.agent = await publish(hub, hub.mint(owner, "session"), peer.session_id, slug, **(agent or {}))
        peer.handle = peer.agent["handle"]
        yield peer
