"""The agent's end of `/channel`: a real socket that registers, answers pings and keeps every frame."""

import asyncio
import itertools
import json
from collections.abc import Coroutine
from typing import Any, Self

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from lab.callers import Json, bearer

FRAME_WITHIN_S = 15
_numbers = itertools.count(1)


class Peer:
    """An agent that registers, answers pings and keeps every frame; its subclasses say what a question gets.

    Used as a context manager it connects on entry and leaves on exit. An error in `answer` fails the test.
    """

    def __init__(self, url: str, token: str, *, session_id: str | None = None, **register: Any) -> None:
        self.url = url.replace("http", "ws", 1) + "/channel"
        self.token = token
        self.session_id = session_id
        number = next(_numbers)
        self.register = {
            "host": "test",
            "cwd": f"/work/peer-{number}",
            "pid": number,
            "channelVersion": "t",
        } | register
        self.frames: list[Json] = []
        self.routing_name = ""
        self.handle = ""
        self.agent: Json = {}
        self.closed = asyncio.Event()
        self._heard = asyncio.Condition()
        self._socket: ClientConnection | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.leave()

    @property
    def socket(self) -> ClientConnection:
        assert self._socket is not None, "not connected"
        return self._socket

    @property
    def prompts(self) -> list[Json]:
        return [frame for frame in self.frames if frame["type"] == "prompt"]

    async def connect(self, url: str | None = None) -> None:
        """Dial, register, wait for welcome; again after a loss, with the session it had."""
        self.url = url.replace("http", "ws", 1) + "/channel" if url else self.url
        self._socket = await dial(self.url, self.token)
        self.closed = asyncio.Event()
        self._start(self._read(self._socket, self.closed))
        welcomes = len([frame for frame in self.frames if frame["type"] == "welcome"])
        await self.send(type="register", osUser=None, sessionId=self.session_id, **self.register)
        welcome = await self.heard("welcome", count=welcomes + 1)
        self.session_id, self.routing_name = welcome["sessionId"], welcome["routingName"]

    async def leave(self) -> None:
        """Close the socket and end what is still being answered."""
        await self.socket.close()
        await self.closed.wait()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        for end in ends:
            if isinstance(end, Exception) and not isinstance(end, ConnectionClosed):
                raise end

    async def send(self, **frame: Any) -> None:
        await self.socket.send(json.dumps(frame))

    async def reply(self, chat_id: str, text: str) -> None:
        await self.send(type="chat_event", eventType="reply", payload={"chatId": chat_id, "text": text}, ts=None)

    async def chunk(self, chat_id: str, text: str, *, done: bool = False) -> None:
        payload = {"chatId": chat_id, "text": text, "done": done}
        await self.send(type="chat_event", eventType="reply_chunk", payload=payload, ts=None)

    async def heard(self, kind: str, *, count: int = 1, within_s: float = FRAME_WITHIN_S) -> Json:
        """Wait for the n-th frame of a type."""

        def found() -> list[Json]:
            return [frame for frame in self.frames if frame["type"] == kind]

        try:
            async with asyncio.timeout(within_s), self._heard:
                await self._heard.wait_for(lambda: len(found()) >= count)
        except TimeoutError:
            raise AssertionError(f"{kind} number {count} did not come; heard {self.frames}") from None
        return found()[count - 1]

    async def answer(self, prompt: Json) -> None:
        """What a question gets; nothing here."""

    async def on_frame(self, frame: Json) -> None:
        """React to a frame that is no prompt."""
        if frame["type"] == "ping":
            await self.send(type="pong", ts=frame["ts"])

    async def _read(self, socket: ClientConnection, closed: asyncio.Event) -> None:
        try:
            async for message in socket:
                frame = json.loads(message)
                if frame["type"] == "prompt":
                    self._start(self.answer(frame))
                else:
                    await self.on_frame(frame)
                async with self._heard:
                    self.frames.append(frame)
                    self._heard.notify_all()
        except ConnectionClosed:
            return
        finally:
            closed.set()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.add(asyncio.get_running_loop().create_task(work))


async def dial(url: str, token: str | None) -> ClientConnection:
    """A bare socket to `/channel`, as the public client opens it: a header, no Origin."""
    headers = bearer(token) if token else {}
    return await connect(url, additional_headers=headers, proxy=None, ping_interval=None, max_size=2**22)
