"""A small HTTP client of the benches: requests as bytes, over connections of asyncio that the bench can cut."""

import asyncio
import json
import re
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from lab.callers import envelope

QUESTION = "what is the status of the build on the main branch, and who broke it last? " * 2
V03_METHODS = {"SendMessage": "message/send", "SendStreamingMessage": "message/stream"}
COUNTER_DIGITS = 10
ANSWERED = 'COMPLETED"'
LENGTH = re.compile(rb"content-length: (\d+)")
TASK_ID = re.compile(rb'"id":"(task-[0-9a-f]+)"')
LAST = b"\r\n0\r\n\r\n"
MAX_BODY_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True)
class BenchCaller:
    """The way one user asks: the path, the headers that name the user, and the version of A2A in these.

    `model`: the user asks for a chat completion of that model.
    """

    path: str
    headers: str
    version: str = ""
    model: str = ""

    @property
    def token(self) -> str:
        """The user's session token."""
        return self.headers.partition("Bearer ")[2].partition("\r\n")[0]


class RequestSource(Protocol):
    """Requests that differ by their number. `answered`: a part of the response to a request that was answered."""

    @property
    def answered(self) -> str: ...

    def fill(self, number: int) -> bytes:
        """The bytes of the request of that number."""


@dataclass(frozen=True)
class Template:
    """A request but for its counter: every messageId is new, because the hub joins identical open questions."""

    head: str
    tail: str
    answered: str = ANSWERED

    def fill(self, number: int) -> bytes:
        """The bytes of the request of that number."""
        return f"{self.head}{number:0{COUNTER_DIGITS}}{self.tail}".encode()


def question_template(caller: BenchCaller, method: str, kind: str = "say") -> Template:
    """The requests of one caller; `kind` is the first word of each question."""
    mark = secrets.token_hex(6)
    text = f"{kind}: {QUESTION}"
    message: dict[str, Any] = {"messageId": f"{mark}-", "role": "ROLE_USER", "parts": [{"text": text}]}
    if caller.version == "0.3":
        method = V03_METHODS[method]
        message |= {"kind": "message", "role": "user", "parts": [{"kind": "text", "text": text}]}
    call = envelope(method, {"message": message}, "1")
    if caller.model:
        call = {"model": caller.model, "messages": [{"role": "user", "content": text}]}
        call |= {"stream": method == "SendStreamingMessage", "safety_identifier": f"{mark}-"}
    before, _, after = json.dumps(call).partition(f"{mark}-")
    length = len(before) + len(mark) + 1 + COUNTER_DIGITS + len(after)
    head = request_head("POST", caller.path, caller.headers, length)
    answered = '"finish_reason":"stop"' if caller.model else ANSWERED
    return Template(f"{head}{before}{mark}-", after, answered)


def request_head(method: str, path: str, headers: str, length: int = 0) -> str:
    """The head of a request; `headers`: lines that end with CRLF."""
    typed = f"Content-Type: application/json\r\nContent-Length: {length}\r\n" if method != "GET" else ""
    return f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}{typed}\r\n"


def request(method: str, path: str, headers: str = "", body: object = None) -> bytes:
    """A whole request with a JSON body, or without one."""
    content = b"" if body is None else json.dumps(body).encode()
    return request_head(method, path, headers, len(content)).encode() + content


def rpc_request(caller: BenchCaller, method: str, params: object) -> bytes:
    """A JSON-RPC request of a caller."""
    return request("POST", caller.path, caller.headers, envelope(method, params))


def message_params(message_id: str, parts: Sequence[dict[str, object]], **configuration: object) -> dict[str, Any]:
    """The params of SendMessage in the hub's dialect and in A2A 1.0."""
    message = {"messageId": message_id, "role": "ROLE_USER", "parts": parts}
    return {"message": message} | ({"configuration": configuration} if configuration else {})


class RawResponse(NamedTuple):
    """A whole response."""

    status: int
    body: bytes


class HttpConnection:
    """A connection to a server of this machine."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def ask(self, request: bytes) -> RawResponse:
        """Send a request and read the whole response, a stream to its end."""
        self.writer.write(request)
        head = await self.read_head()
        if length := LENGTH.search(head.lower()):
            body = await self.reader.readexactly(int(length[1]))
        else:
            body = await self.reader.readuntil(LAST) if b"chunked" in head.lower() else b""
        return RawResponse(int(head.split()[1]), body)

    async def ask_ok(self, request: bytes, *, status: int = 200, part: bytes = b"") -> RawResponse:
        """The response to a request, which must have this status, and this part in its body.

        Raises:
            RuntimeError: the response is another one.
        """
        response = await self.ask(request)
        if response.status != status or part not in response.body:
            first_line = request.partition(b"\r\n")[0].decode()
            raise RuntimeError(f"{first_line}: {response.status} {response.body[-300:]!r}")
        return response

    async def begin_stream(self, request: bytes) -> None:
        """Send a request whose response must be a stream of events.

        Raises:
            ValueError: the response is another one.
        """
        self.writer.write(request)
        head = await self.read_head()
        if b"text/event-stream" not in head:
            raise ValueError(head.decode())

    async def read_head(self) -> bytes:
        """The status line and the headers."""
        return await self.reader.readuntil(b"\r\n\r\n")

    def close(self) -> None:
        """Close the connection."""
        self.writer.close()

    def abort(self) -> None:
        """Cut the connection."""
        self.writer.transport.abort()


async def connect(port: int) -> HttpConnection:
    """A new connection."""
    return HttpConnection(*await asyncio.open_connection("127.0.0.1", port, limit=MAX_BODY_BYTES))


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[HttpConnection]:
    """A connection for the block."""
    connection = await connect(port)
    try:
        yield connection
    finally:
        connection.close()


async def fetch(port: int, request: bytes) -> RawResponse:
    """The response to a request over a connection of its own."""
    async with connected(port) as connection:
        return await connection.ask(request)


async def fetch_json(port: int, method: str, path: str, token: str, body: object = None) -> Any:
    """The JSON of a successful response of the native API, asked as the user of a token.

    Raises:
        RuntimeError: the hub refused the request.
    """
    response = await fetch(port, request(method, path, f"Authorization: Bearer {token}\r\n", body))
    if not 200 <= response.status < 300:
        raise RuntimeError(f"{method} {path}: {response.status} {response.body[:300]!r}")
    return json.loads(response.body)


async def begin_task(port: int, caller: BenchCaller, params: dict[str, Any]) -> str:
    """The id of a task that SendMessage began and did not wait for.

    Raises:
        ValueError: no task was begun, or the task failed at once.
    """
    params = params | {"configuration": {"returnImmediately": True}}
    body = (await fetch(port, rpc_request(caller, "SendMessage", params))).body
    found = TASK_ID.search(body)
    if not found or b"TASK_STATE_FAILED" in body:
        raise ValueError(body[:300].decode())
    return found[1].decode()
