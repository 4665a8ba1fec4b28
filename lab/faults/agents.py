"""Agents that say what they were asked, nonce and all, whole or in pieces.

They come back after a loss, to the other process, and note every prompt: one handed over twice shows.
"""

import asyncio
import itertools
import json
import random
from contextlib import suppress
from typing import Any

import websockets
from websockets.asyncio.client import ClientConnection

from lab.callers import Json
from lab.channel_agent import dial
from lab.faults.oplog import OpLog

BACK_AFTER_S = (0.3, 1.5)
PIECES = 3
WELCOME_WITHIN_S = 30
_sockets = itertools.count(1)


def echo_of(text: str) -> str:
    """What an agent replies to a question."""
    return f"echo {text}"


class EchoAgent:
    """One agent program. `handle` is set once it was published; `online` while it is registered.

    `urls` are the web processes it goes to, in turn. `takes_s`: how long an answer takes, at most. `is_silent`: it
    answers nothing. `connects`, `misses`, `prompts`: how often it was welcomed, was not, and was asked; `bye`: the
    last it heard.
    """

    def __init__(
        self, urls: list[str], token: str, log: OpLog, *, name: str = "agent", takes_s: float = 0.05
    ) -> None:
        self.urls = urls
        self.token = token
        self.log = log
        self.name = name
        self.takes_s = takes_s
        self.handle = ""
        self.session_id: str | None = None
        self.routing_name = ""
        self.online = asyncio.Event()
        self.socket: ClientConnection | None = None
        self.comes_back = True
        self.pid = 1
        self.is_silent = False
        self.connects, self.misses, self.prompts = 0, 0, 0
        self.bye: Json = {}
        self._running: asyncio.Task[None] | None = None
        self._answers: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Connect, and stay so until `stop`."""
        self._running = asyncio.get_running_loop().create_task(self._run(), name=self.name)

    async def stop(self) -> None:
        """Leave for good."""
        self.comes_back = False
        if self._running is not None:
            self._running.cancel()
            with suppress(asyncio.CancelledError):
                await self._running
        for task in self._answers:
            task.cancel()

    @property
    def is_connected(self) -> bool:
        """Whether it has a registered socket now."""
        return self.online.is_set()

    @property
    def is_over(self) -> bool:
        """Whether it will not come back."""
        return self._running is not None and self._running.done()

    async def drop(self) -> None:
        """Lose the connection without a word; it comes back."""
        if self.socket is not None:
            self.socket.transport.abort()

    async def answer(self, socket: ClientConnection, prompt: Json) -> None:
        """Reply to one prompt on the socket it came by, after a little while."""
        if self.is_silent:
            return
        await asyncio.sleep(random.uniform(0, self.takes_s))
        chat_id, text = prompt["chatId"], echo_of(prompt["text"])
        if random.random() < 0.5:
            await say(socket, "reply", chatId=chat_id, text=text)
            return
        size = len(text) // PIECES + 1
        for start in range(0, len(text), size):
            await say(socket, "reply_chunk", chatId=chat_id, text=text[start : start + size], done=False)
        await say(socket, "reply_chunk", chatId=chat_id, text="", done=True)

    async def _run(self) -> None:
        for turn in itertools.count():
            url, welcomes, why = self.urls[turn % len(self.urls)], self.connects, "closed"
            try:
                await self._serve(url)
            except (OSError, websockets.WebSocketException, TimeoutError) as failure:
                why = repr(failure)[:200]
            self.online.clear()
            if self.connects == welcomes:
                self.misses += 1
                self.log.write("miss", agent=self.name, url=url, why=why)
            if not self.comes_back:
                return
            await asyncio.sleep(random.uniform(*BACK_AFTER_S))

    async def _serve(self, url: str) -> None:
        async with asyncio.timeout(WELCOME_WITHIN_S):
            socket = await dial(url.replace("http", "ws", 1) + "/channel", self.token)
        number = next(_sockets)
        try:
            register = {
                "host": "faults",
                "cwd": f"/work/{self.name}",
                "pid": self.pid,
                "sessionId": self.session_id,
            }
            await socket.send(json.dumps({"type": "register"} | register))
            async for message in socket:
                await self._on_frame(socket, number, json.loads(message))
        finally:
            self.online.clear()
            socket.transport.abort()

    async def _on_frame(self, socket: ClientConnection, number: int, frame: Json) -> None:
        match frame["type"]:
            case "prompt":
                self.prompts += 1
                nonce = frame["text"].partition(" ")[0]
                self.log.write("prompt", agent=self.handle, nonce=nonce, chat_id=frame["chatId"], socket=number)
                task = asyncio.get_running_loop().create_task(self._answer_quietly(socket, frame))
                self._answers.add(task)
                task.add_done_callback(self._answers.discard)
            case "ping":
                await socket.send(json.dumps({"type": "pong", "ts": frame["ts"]}))
            case "bye":
                self.bye = frame
            case "welcome":
                self.session_id, self.routing_name = frame["sessionId"], frame["routingName"]
                self.socket, self.connects = socket, self.connects + 1
                self.online.set()

    async def _answer_quietly(self, socket: ClientConnection, prompt: Json) -> None:
        with suppress(websockets.ConnectionClosed):
            await self.answer(socket, prompt)


async def say(socket: ClientConnection, event: str, **payload: Any) -> None:
    """A chat event of an agent."""
    await socket.send(json.dumps({"type": "chat_event", "eventType": event, "payload": payload, "ts": None}))
