"""`python -m lab.bench.agents PORT`: agents on `/channel`, one socket for each line of JSON on standard input.

A line is `{"channel_token", "session_id"}`. The first word of a question decides the answer: `stream` is
answered in two chunks, `tick` by a chunk each second that says when it left, `hold` never, everything else by one
reply. The WebSocket client of the agents needs no library, so that the load costs its core as little as it can.
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
import uvloop

from lab import frames

TEXT, CLOSE, PING, PONG = 1, 8, 9, 10
NO_MASK = b"\0\0\0\0"  # a client must mask; a mask of zeros leaves the bytes as they are

SocketKind = TypeVar("SocketKind", bound="RawSocket")


class RawSocket(asyncio.Protocol):
    """A socket; a subclass sends and receives the texts. `path`, `headers`: of the upgrade.

    `welcomed`: done by the subclass when the server has registered it; it fails when the socket is lost before.
    """

    def __init__(self, path: str, headers: str) -> None:
        self._path = path
        self._headers = headers
        self._unread = bytearray()
        self._upgraded = False
        self._left = False
        self._transport: Any = None
        self.welcomed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._transport.write(
            f"GET {self._path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
            f"{self._headers}\r\n".encode()
        )

    def data_received(self, data: bytes) -> None:
        self._unread += data
        if not self._upgraded:
            head, found, rest = bytes(self._unread).partition(b"\r\n\r\n")
            if not found:
                return
            self._upgraded = True
            self._unread = bytearray(rest)
            if b" 101 " not in head[:20]:
                self._fail(head)
            self.begin()
        while (frame := self._next_frame()) is not None:
            opcode, payload = frame
            if opcode == PING:
                self._transport.write(bytes([0x80 | PONG, 0x80 | len(payload)]) + NO_MASK + payload)
            elif opcode == TEXT:
                self.take(payload)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._left:
            self._fail("the socket closed")

    def leave(self) -> None:
        """Close the socket without a closing handshake, as the socket of a killed program closes."""
        self._left = True
        self._transport.close()

    def begin(self) -> None:
        """Called after the upgrade."""

    def take(self, payload: bytes) -> None:
        """Called with each text of the server."""

    def lost(self, why: object) -> None:
        """Called when the socket is lost after it was welcomed."""

    def _fail(self, why: object) -> None:
        if self.welcomed.done():
            self.lost(why)
        else:
            self.welcomed.set_exception(ConnectionError(str(why)))

    def send_text(self, payload: bytes) -> None:
        """Send a text."""
        size = len(payload)
        if size < 126:
            length = bytes([0x80 | size])
        elif size < 65_536:
            length = b"\xfe" + size.to_bytes(2, "big")
        else:
            length = b"\xff" + size.to_bytes(8, "big")
        self._transport.write(bytes([0x80 | TEXT]) + length + NO_MASK + payload)

    def _next_frame(self) -> tuple[int, bytes] | None:
        """Opcode and payload of the next whole frame; a server's frames are not masked."""
        unread = self._unread
        if len(unread) < 2:
            return None
        length, start = unread[1], 2
        if length > 125:
            start = 4 if length == 126 else 10
            if len(unread) < start:
                return None
            length = int.from_bytes(unread[2:start], "big")
        if len(unread) < start + length:
            return None
        opcode, payload = unread[0] & 15, bytes(unread[start : start + length])
        del unread[: start + length]
        return opcode, payload


async def dial(make: Callable[[], SocketKind], port: int) -> SocketKind:
    """A new socket to a server of this machine, welcomed.

    Raises:
        ConnectionError: the server refused or closed the socket.
    """
    _, client = await asyncio.get_running_loop().create_connection(make, "127.0.0.1", port)
    await client.welcomed
    return client


AT_ONCE = 16
CHUNK_CHARS = 60_000  # a chunk holds at most 64 KiB

_encode = msgspec.json.encode
_decode = msgspec.json.decode


class RawEchoAgent(RawSocket):
    """The socket of an agent."""

    def __init__(self, token: str, session_id: str | None) -> None:
        super().__init__("/channel", f"Authorization: Bearer {token}\r\n")
        self._session_id = session_id

    def begin(self) -> None:
        self.send(frames.register(session_id=self._session_id, host="bench", cwd="/", pid=1))

    def take(self, payload: bytes) -> None:
        frame = _decode(payload)
        match frame["type"]:
            case "prompt":
                self.answer(frame["chatId"], frame["text"])
            case "ping":
                self.send(frames.pong(frame))
            case "welcome":
                self.welcomed.set_result(None)
            case "error" | "bye":
                self.lost(frame)

    def lost(self, why: object) -> None:
        print(f"agent: {why}", flush=True)

    def answer(self, chat_id: str, text: str) -> None:
        """Answer a prompt."""
        if text.startswith("hold"):
            return
        if text.startswith("tick"):
            first_s = int(chat_id[-4:], 16) / 65536  # spreads the first chunks of all questions over a second
            asyncio.get_running_loop().call_later(first_s, self._tick, chat_id)
            return
        if not text.startswith("stream"):
            self.send(frames.reply(chat_id, f"echo: {text}"))
            return
        said = f"echo: {text}"
        for start in range(0, len(said), CHUNK_CHARS):
            self.send(frames.chunk(chat_id, said[start : start + CHUNK_CHARS]))
        self.send(frames.chunk(chat_id, "", done=True))

    def _tick(self, chat_id: str) -> None:
        if self._transport.is_closing():
            return
        left = f"<{time.perf_counter_ns()}>"
        self.send(frames.chunk(chat_id, left))
        asyncio.get_running_loop().call_later(1.0, self._tick, chat_id)

    def send(self, frame: frames.Json) -> None:
        """Send a frame."""
        self.send_text(_encode(frame))


async def serve(port: int, agents: list[dict[str, str | None]]) -> None:
    """Connect all agents, print `ready`, and serve until the process is ended."""
    room = asyncio.Semaphore(AT_ONCE)

    async def connect(agent: dict[str, str | None]) -> RawEchoAgent:
        async with room:
            return await dial(lambda: RawEchoAgent(agent["channel_token"] or "", agent["session_id"]), port)

    await asyncio.gather(*map(connect, agents))
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), [json.loads(line) for line in sys.stdin]))
