"""Frames drawn from the description of the hub's sockets, sent ten at a time, and the verdict on the socket."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from hypothesis import strategies as st
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from lab.frames import Json
from tests.fuzz.live import Broke, Live
from tests.fuzz.values import Draw, Schemas, draw_bytes, draw_flawed

FRAMES = 10
WITHIN_S = 30
INTERNAL_ERROR, ABNORMAL = 1011, 1006  # of the codes that a socket closes with
OPEN_CHAT = "chat-that-is-open"  # in a drawn frame; the id of an open prompt takes its place
ONE_IN_8, ONE_IN_20 = st.integers(0, 7).map(lambda n: n == 0), st.integers(0, 19).map(lambda n: n == 0)


@dataclass(frozen=True)
class FramesCase:
    """Frames in order. `is_new`: they are the first frames of a new socket, which has not signed in by a frame."""

    frames: tuple[str | bytes, ...]
    is_new: bool = False


Dial = Callable[[], Awaitable[ClientConnection]]


@dataclass(frozen=True)
class SocketWire:
    """One socket. `dial`: opens it; `open`: also signs in.

    `sound`: a frame whose answer is of the type `answer` and holds the text `mark`. `ask`: has the hub send a
    prompt on the socket; the id of the prompt takes the place of OPEN_CHAT.
    """

    name: str
    cases: st.SearchStrategy[FramesCase]
    dial: Dial
    open: Dial
    sound: Json
    answer: str
    mark: str
    ask: Callable[[ClientConnection], Awaitable[str]] | None = None


@st.composite
def described_frames(draw: Draw, schemas: Schemas, payloads: list[Json]) -> str | bytes:
    """A frame of one of these schemas, with at most a few flaws."""
    frame = draw_flawed(draw, schemas.draw(draw, draw(st.sampled_from(payloads))))
    text = draw_bytes(draw, frame)
    return text if draw(ONE_IN_20) else text.decode(errors="replace")


def cases_of(schemas: Schemas, socket: str) -> st.SearchStrategy[FramesCase]:
    """Frames that clients may send to a socket of the description."""
    received = schemas.document["operations"][f"{socket}.receive"]["messages"]
    payloads = [schemas.found(schemas.found(one))["payload"] for one in received]
    frame = described_frames(schemas, payloads)
    return st.builds(FramesCase, st.tuples(*[frame] * FRAMES), ONE_IN_8)


@dataclass
class FrameSender:
    """Sends frames on a socket, which is dialed again when the hub closed it."""

    live: Live
    wire: SocketWire
    sent: int = 0
    closed: dict[int, int] = field(default_factory=dict)
    _socket: ClientConnection | None = None

    def attack(self, case: FramesCase) -> None:
        """Send the frames of a case; raises Broke when the hub closed with an error, or answers no sound frame."""
        self.live.run(self._attack(case))
        self.sent += len(case.frames)

    def close(self) -> None:
        """Leave."""
        self.live.run(self._close())

    async def _attack(self, case: FramesCase) -> None:
        if case.is_new:
            await self._close()
            self._socket = await self.wire.dial()
        try:
            self._socket = self._socket or await self.wire.open()
            chat_id = await self.wire.ask(self._socket) if self.wire.ask and not case.is_new else ""
            for frame in case.frames:
                await self._socket.send(_with_chat(frame, chat_id))
            await self._check_sound(self._socket, is_new=case.is_new)
        except ConnectionClosed:
            assert self._socket is not None
            code = self._socket.close_code or ABNORMAL
            self.closed[code] = self.closed.get(code, 0) + 1
            self._socket = None
            if code in (INTERNAL_ERROR, ABNORMAL):
                raise Broke(f"the hub closed the socket with {code}") from None
            self._socket = await self.wire.open()
            await self._check_sound(self._socket)
        except TimeoutError:
            raise Broke(f"no {self.wire.answer} within {WITHIN_S} s") from None
        if case.is_new:
            await self._close()

    async def _check_sound(self, socket: ClientConnection, *, is_new: bool = False) -> None:
        """Wait for the answer to a sound frame; on a socket that has not signed in, for any refusal."""
        await socket.send(json.dumps(self.wire.sound))
        async with asyncio.timeout(WITHIN_S):
            while True:
                text = str(await socket.recv())
                answer = json.loads(text)["type"]
                if (answer == self.wire.answer and self.wire.mark in text) or (is_new and answer == "error"):
                    return

    async def _close(self) -> None:
        if self._socket is not None:
            await self._socket.close()
            self._socket = None


def _with_chat(frame: str | bytes, chat_id: str) -> str | bytes:
    if isinstance(frame, bytes):
        return frame.replace(OPEN_CHAT.encode(), chat_id.encode())
    return frame.replace(OPEN_CHAT, chat_id)
