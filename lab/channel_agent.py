"""The agent's end of `/channel`: a real socket that registers, answers pings and keeps every frame."""

import asyncio
import itertools
import json
from collections.abc import Callable, Coroutine
from contextlib import suppress
from types import NoneType
from typing import Any, Self

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from lab import frames
from lab.callers import bearer
from lab.frames import Json

FRAME_WITHIN_S = 30
_numbers = itertools.count(1)


class ChannelAgent:
    """An agent that registers, answers pings and keeps every frame; subclasses define the answer to a question.

    Used as a context manager it connects on entry and leaves on exit. An error in `answer` fails the test.
    """

    welcome_within_s: float = FRAME_WITHIN_S

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
        """Dial, register, wait for welcome; after a loss again, with the same session.

        Raises:
            ConnectionError: the hub closed the socket instead.
        """
        self.url = url.replace("http", "ws", 1) + "/channel" if url else self.url
        self._socket = await dial(self.url, self.token)
        self.closed = closed = asyncio.Event()
        before = self._count("welcome")
        self._start(self._read(self._socket, closed))
        await self.send(**frames.register(session_id=self.session_id, **self.register))

        def is_welcome() -> bool:
            return self._count("welcome") > before

        await self._wait(lambda: closed.is_set() or is_welcome(), "welcome", self.welcome_within_s)
        if not is_welcome():
            raise ConnectionError(f"the hub closed the socket ({self._socket.close_code}); it sent {self.frames}")
        welcome = next(frame for frame in reversed(self.frames) if frame["type"] == "welcome")
        self.session_id, self.routing_name = welcome["sessionId"], welcome["routingName"]

    async def leave(self) -> None:
        """Close the socket and cancel unfinished answers."""
        await self.socket.close()
        await self.closed.wait()
        await self.end_tasks()

    async def end_tasks(self) -> None:
        """Cancel unfinished answers. Raises the exception of an answer."""
        tasks = list(self._tasks)
        self.cancel_answers()
        for end in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(end, Exception) and not isinstance(end, ConnectionClosed):
                raise end

    def drop(self) -> None:
        """Lose the connection without a closing handshake; nothing when it is not connected."""
        if self._socket is not None:
            self._socket.transport.abort()

    def cancel_answers(self) -> None:
        """Cancel unfinished answers, and the reading of a closed socket."""
        for task in list(self._tasks):
            task.cancel()

    async def send(self, **frame: Any) -> None:
        await self.socket.send(json.dumps(frame))

    async def reply(self, chat_id: str, text: str, **more: Any) -> None:
        await self.send(**frames.reply(chat_id, text, **more))

    async def chunk(self, chat_id: str, text: str, *, done: bool = False) -> None:
        await self.send(**frames.chunk(chat_id, text, done=done))

    async def heard(self, kind: str, *, count: int = 1, within_s: float = FRAME_WITHIN_S) -> Json:
        """Wait for the n-th frame of a type. Raises TimeoutError."""
        await self._wait(lambda: self._count(kind) >= count, f"{kind} number {count}", within_s)
        return [frame for frame in self.frames if frame["type"] == kind][count - 1]

    async def answer(self, prompt: Json) -> None:
        """Answer a question; this agent does not."""

    def on_prompt(self, prompt: Json) -> None:
        """Begin to answer a prompt."""
        self._start(self.answer(prompt))

    async def on_frame(self, frame: Json) -> None:
        """React to a frame that is no prompt."""
        if frame["type"] == "ping":
            # The hub may have closed the socket meanwhile; what it sent before that, a bye, is read next.
            with suppress(ConnectionClosed):
                await self.send(**frames.pong(frame))

    def keeps(self, frame: Json) -> bool:
        """True if a frame stays in `frames`."""
        return True

    async def _read(self, socket: ClientConnection, closed: asyncio.Event) -> None:
        try:
            async for message in socket:
                frame = json.loads(message)
                if frame["type"] == "prompt":
                    self.on_prompt(frame)
                else:
                    await self.on_frame(frame)
                async with self._heard:
                    if self.keeps(frame):
                        self.frames.append(frame)
                    self._heard.notify_all()
        finally:
            closed.set()
            async with self._heard:
                self._heard.notify_all()

    def _count(self, kind: str) -> int:
        return sum(frame["type"] == kind for frame in self.frames)

    async def _wait(self, is_so: Callable[[], bool], what: str, within_s: float) -> None:
        try:
            async with asyncio.timeout(within_s), self._heard:
                await self._heard.wait_for(is_so)
        except TimeoutError:
            ended = f"closed ({self.socket.close_code})" if self.closed.is_set() else "open"
            raise TimeoutError(
                f"{what} did not come in {within_s:g} s; the socket is {ended}, the hub sent {self.frames}"
            ) from None

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        """Drop a task that ended without an exception; `end_tasks` raises the exceptions of the others."""
        if task.cancelled() or isinstance(task.exception(), (ConnectionClosed, NoneType)):
            self._tasks.discard(task)


async def dial(url: str, token: str | None) -> ClientConnection:
    """A bare socket to `/channel`, as the public client opens it: a header, no Origin."""
    headers = bearer(token) if token else {}
    return await connect(
        url,
        additional_headers=headers,
        open_timeout=FRAME_WITHIN_S,
        proxy=None,
        ping_interval=None,
        max_size=2**22,
    )
