"""`python -m lab.bench.agents PORT`: agents on `/channel`, one socket for each line of JSON on standard input.

A line is `{"channel_token", "session_id"}`. What an agent does depends on how the question begins: `stream` is
answered in two chunks, `tick` by a chunk each second that says when it left, `hold` never, everything else by one
reply.
"""

import asyncio
import json
import sys
import time

import msgspec
import uvloop

from lab import frames
from lab.bench.sockets import RawSocket, dial

AT_ONCE = 16
CHUNK_CHARS = 60_000  # a chunk holds at most 64 KiB

_encode = msgspec.json.encode
_decode = msgspec.json.decode


class RawEchoAgent(RawSocket):
    """One agent's socket."""

    def __init__(self, token: str, session_id: str | None) -> None:
        super().__init__("/channel", f"Authorization: Bearer {token}\r\n")
        self._session_id = session_id

    def begin(self) -> None:
        self._send(frames.register(session_id=self._session_id, host="bench", cwd="/", pid=1))

    def take(self, payload: bytes) -> None:
        frame = _decode(payload)
        match frame["type"]:
            case "prompt":
                self._answer(frame["chatId"], frame["text"])
            case "ping":
                self._send(frames.pong(frame))
            case "welcome":
                self.welcomed.set_result(None)
            case "error" | "bye":
                self.lost(frame)

    def lost(self, why: object) -> None:
        print(f"agent: {why}", flush=True)

    def _answer(self, chat_id: str, text: str) -> None:
        if text.startswith("hold"):
            return
        if text.startswith("tick"):
            first_s = int(chat_id[-4:], 16) / 65536  # spread over a second
            asyncio.get_running_loop().call_later(first_s, self._tick, chat_id)
            return
        if not text.startswith("stream"):
            self._send(frames.reply(chat_id, f"echo: {text}"))
            return
        said = f"echo: {text}"
        for start in range(0, len(said), CHUNK_CHARS):
            self._send(frames.chunk(chat_id, said[start : start + CHUNK_CHARS]))
        self._send(frames.chunk(chat_id, "", done=True))

    def _tick(self, chat_id: str) -> None:
        if self._transport.is_closing():
            return
        left = f"<{time.perf_counter_ns()}>"
        self._send(frames.chunk(chat_id, left))
        asyncio.get_running_loop().call_later(1.0, self._tick, chat_id)

    def _send(self, frame: frames.Json) -> None:
        self.send_text(_encode(frame))


async def serve(port: int, agents: list[dict[str, str | None]]) -> None:
    """Connect them all, say `ready`, and stay until the process is ended."""
    room = asyncio.Semaphore(AT_ONCE)

    async def connect(agent: dict[str, str | None]) -> RawEchoAgent:
        async with room:
            return await dial(lambda: RawEchoAgent(agent["channel_token"] or "", agent["session_id"]), port)

    await asyncio.gather(*map(connect, agents))
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), [json.loads(line) for line in sys.stdin]))
