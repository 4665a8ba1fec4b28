"""The note on one request and its response while the request is served: plain values, and nothing is decided here.

A note is in the way of every ask, so it only keeps references; `exchange_log` makes a row of it later.
"""

from collections.abc import Mapping, Sequence
from time import time
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from a2a_bridge import settings
from kit import sse
from kit.asgi import Header, HttpRequest


class ExchangeNote(Struct, gc=False, kw_only=True):
    """One exchange so far. `binding`: the way of asking; `dialect`: the version of A2A, empty elsewhere.

    `request_body` and `response_body` are cut already; the counts of bytes are those of all that was sent.
    `last_frames`: of a stream that is longer than `response_body` may be. `ended_at`: by the host's clock.
    """

    binding: str
    method: str
    path: str
    headers: Mapping[str, str]
    request_body: bytes
    request_bytes: int
    received_at: float
    most_bytes: int
    dialect: str = ""
    chat_id: str = ""
    caller_id: int = 0
    agent_id: int | None = None
    status: int = 0
    response_headers: Sequence[Header] = ()
    response_body: bytes = b""
    response_bytes: int | UnsetType = UNSET
    frames: int = 0
    last_frames: list[bytes] = []
    ended_at: float = 0.0

    def begin(self, status: int, headers: Sequence[Header]) -> None:
        """Keep the head of a response that comes in pieces."""
        self.status, self.response_headers, self.response_bytes = status, headers, 0

    def add(self, piece: bytes, *, is_frame: bool = False) -> None:
        """Keep a piece of the body, at most `most_bytes` of all: half for the first pieces, half for the last."""
        if self.response_bytes is UNSET:  # an error of one piece has its head in the same message
            self.response_bytes = 0
        self.response_bytes += len(piece)
        if not piece.strip() or piece == sse.KEEPALIVE:
            return
        self.frames += 1 if is_frame else 0
        if not self.last_frames and len(self.response_body) + len(piece) <= self.most_bytes // 2:
            self.response_body += piece
            return
        self.last_frames.append(piece[: self.most_bytes // 2])
        while len(self.last_frames) > 1 and sum(map(len, self.last_frames)) > self.most_bytes // 2:
            del self.last_frames[0]

    def take(self, message: Mapping[str, Any]) -> None:
        """Keep what a message of ASGI says of the response."""
        if message["type"] == "http.response.start":
            self.begin(message["status"], message["headers"])
        elif body := message.get("body"):
            self.add(body, is_frame=self._is_stream)

    @property
    def _is_stream(self) -> bool:
        return any(name == b"content-type" and b"event-stream" in value for name, value in self.response_headers)


def begin_note(request: HttpRequest, body: bytes, size: int, binding: str) -> ExchangeNote:
    """The note on a request that was read, with a body of that size."""
    most = settings.EXCHANGE_BODY_BYTES
    return ExchangeNote(
        binding=binding,
        method=request.method,
        path=request.path,
        headers=request.headers,
        request_body=body if size <= most else body[:most],
        request_bytes=size,
        received_at=time(),
        most_bytes=most,
    )
