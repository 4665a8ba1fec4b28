"""The two ways to an MCP server, with bounds that the SDK does not have: a program, and an address."""

import asyncio
import logging
import os
import signal
import time
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from clawbridge.checks import TOKEN_VARIABLE
from clawbridge.connect.command import (
    READ_BYTES,
    TERM_GRACE_S,
    decoded,
    end_program,
    failure,
    give_time,
    readers,
    signal_group,
    start_program,
)
from clawbridge.connect.tasks import running

logger = logging.getLogger(__name__)

MCP_TOKEN_VARIABLE = "CLAWBRIDGE_MCP_TOKEN"  # noqa: S105 (the variable's name)
MAX_MESSAGE_BYTES = 4_000_000
MAX_BAD_LINES = 1_000
MAX_LOGGED_CHARS = 500
MAX_LOGGED_LINES_PER_MINUTE = 100
MINUTE_S = 60.0
CLOSE_WAIT_S = 2.0
STATUS_WAIT_S = 1.0
LOOK_AFTER_S = 0.5
CONNECT_WAIT_S = 30.0
READ_WAIT_S = 300.0

Streams = Any  # the SDK has no public name for its pair of streams


class ServerFailed(Exception):
    """The connection to the MCP server failed or was lost; the text is for the caller."""


class SessionEnded(ServerFailed):
    """The server does not know this connection's session any more, and did not do what was asked."""


class ServerLoss:
    """The reason why a connection ended. The first reason counts; the text is for the caller.

    `has_session_ended`: the server answered that it does not know the session.
    """

    def __init__(self) -> None:
        self.reason = ""
        self.has_session_ended = False
        self._has_reason = asyncio.Event()

    def report(self, reason: str) -> None:
        """Note that the connection must no longer be used."""
        self.reason = self.reason or reason
        self._has_reason.set()

    async def wait(self) -> None:
        """Return when there is a reason."""
        await self._has_reason.wait()


class ProgramServer:
    """A program that reads and prints one message a line. The standard error of the program is logged.

    The SDK's own way reads lines of any length, and logs standard error without a bound.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        self._argv = argv
        self._groups: set[int] = set()

    @asynccontextmanager
    async def connect(self, loss: ServerLoss) -> AsyncGenerator[Streams]:
        """Run the program while the block runs.

        Raises:
            ServerFailed: the program could not be started.
        """
        process = await self._start()
        stdout, stderr = readers(process)
        self._groups.add(process.pid)
        send_message, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        requests, take_request = anyio.create_memory_object_stream[SessionMessage](0)
        try:
            async with running(log_lines(stderr, self._argv[0])):
                try:
                    async with (
                        running(_read_messages(process, stdout, send_message, loss)),
                        running(_write_requests(process, take_request)),
                    ):
                        yield messages, requests
                finally:
                    await self._end(process, stdout)
        finally:
            self._groups.discard(process.pid)
            for stream in (send_message, messages, requests, take_request):
                stream.close()

    def kill(self) -> None:
        """End the program at once, with all that it started."""
        for group in self._groups:
            signal_group(group, signal.SIGKILL)

    async def _start(self) -> Process:
        own = {TOKEN_VARIABLE, MCP_TOKEN_VARIABLE}
        environ = {name: value for name, value in os.environ.items() if name not in own}
        try:
            return await start_program(self._argv, stdin="", environ=environ, keeps_open=True)
        except OSError as problem:
            raise ServerFailed(f"the MCP server cannot be started: {self._argv[0]} ({problem.strerror})") from None

    async def _end(self, process: Process, stdout: asyncio.StreamReader) -> None:
        """As MCP says: close its input, give it time, then signal it and what it started."""
        try:
            if process.returncode is None:
                await give_time(process, stdout, within_s=CLOSE_WAIT_S)
        finally:
            await end_program(process, stdout, grace_s=TERM_GRACE_S)


class WebServer:
    """An address that speaks streamable HTTP. `token`: sent to it as Bearer."""

    def __init__(self, url: str, token: str | None) -> None:
        self._url = url
        self._headers = {"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {token}"} if token else {})

    @asynccontextmanager
    async def connect(self, loss: ServerLoss) -> AsyncGenerator[Streams]:
        """Exchange messages while the block runs; a connection is made for each request."""
        timeout = httpx2.Timeout(CONNECT_WAIT_S, read=READ_WAIT_S)

        async def on_response(response: httpx2.Response) -> None:
            loss.has_session_ended |= is_session_ended(response)
            bound_response(response)

        hooks = {"response": [on_response]}
        async with (
            httpx2.AsyncClient(headers=self._headers, timeout=timeout, event_hooks=hooks) as client,
            streamable_http_client(self._url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES) as streams,
        ):
            yield streams

    def kill(self) -> None:
        """Do nothing: the connector has started no process."""


class _BoundedBody(httpx2.AsyncByteStream):
    """A response's body, with an error instead of what is over the bound."""

    def __init__(self, body: httpx2.AsyncByteStream) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        room = MAX_MESSAGE_BYTES
        async for piece in self._body:
            room -= len(piece)
            if room < 0:
                raise httpx2.StreamError(f"longer than {MAX_MESSAGE_BYTES} bytes")
            yield piece

    async def aclose(self) -> None:
        await self._body.aclose()


def is_session_ended(response: httpx2.Response) -> bool:
    """True if a response says that the session of the request is over."""
    return response.status_code == 404 and "mcp-session-id" in response.request.headers


def bound_response(response: httpx2.Response) -> None:
    """Bound what the SDK reads whole. An event stream has a bound for each event."""
    is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
    if response.headers.get("content-encoding", "identity") != "identity":
        # A compressed body may have any size once decompressed.
        raise httpx2.StreamError("compressed, which was not asked for")
    if response.status_code >= 400 and response.request.method == "POST":
        logger.warning("the MCP server answered with HTTP status %d", response.status_code)
    if not is_stream and isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _BoundedBody(response.stream)


async def log_lines(stream: asyncio.StreamReader, program: str) -> None:
    """Log what a program prints: at most 500 characters of a line, and 100 lines in a minute."""
    line, logged, began_at = "", 0, time.monotonic()
    async for text in decoded(stream):
        *ended, rest = text.split("\n")
        for piece in ended:
            if time.monotonic() - began_at > MINUTE_S:
                logged, began_at = 0, time.monotonic()
            shown = "".join(char if char.isprintable() else " " for char in (line + piece)[:MAX_LOGGED_CHARS])
            line = ""
            logged += 1
            if logged <= MAX_LOGGED_LINES_PER_MINUTE and shown.strip():
                logger.info("%s: %s", program, shown)
            elif logged == MAX_LOGGED_LINES_PER_MINUTE + 1:
                logger.warning("%s prints more than is logged", program)
        line = (line + rest)[:MAX_LOGGED_CHARS]


async def _read_messages(
    process: Process,
    stdout: asyncio.StreamReader,
    messages: MemoryObjectSendStream[SessionMessage | Exception],
    loss: ServerLoss,
) -> None:
    """Pass the program's messages on until it ends, or prints what cannot be one."""
    bad_lines = 0
    async with messages:
        async for line in _lines(process, stdout):
            try:
                if len(line) > MAX_MESSAGE_BYTES:
                    loss.report(f"the MCP server printed a line of more than {MAX_MESSAGE_BYTES} bytes")
                    return
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:
                bad_lines += bool(line.strip())
                if bad_lines == 1:
                    logger.warning("the MCP server prints lines that are no messages of MCP; they are left out")
                if bad_lines >= MAX_BAD_LINES:
                    loss.report("the MCP server prints lines that are no messages of MCP")
                    return
                continue
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                await messages.send(SessionMessage(message))
        if process.returncode is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(STATUS_WAIT_S):
                    await process.wait()
        status = process.returncode
        loss.report(f"the MCP server ended: {failure(status)}" if status else "the MCP server ended")


async def _lines(process: Process, stdout: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield lines as they end; one that is too long before it does."""
    line = bytearray()
    while True:  # until the program or its output ends: a child process may hold the output open
        try:
            async with asyncio.timeout(LOOK_AFTER_S):
                piece = await stdout.read(READ_BYTES)
        except TimeoutError:
            if process.returncode is None:
                continue
            piece = b""
        if not piece:
            return
        *ended, rest = piece.split(b"\n")
        for end in ended:
            line += end
            yield bytes(line)
            line.clear()
        line += rest
        if len(line) > MAX_MESSAGE_BYTES:
            yield bytes(line)
            line.clear()


async def _write_requests(process: Process, requests: MemoryObjectReceiveStream[SessionMessage]) -> None:
    """Write what the SDK sends, one message at a time."""
    if process.stdin is None:
        raise TypeError("started without pipes")
    async with requests:
        async for request in requests:
            process.stdin.write(
                request.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
            )
            with suppress(OSError):  # the server has closed its input: the end of its output tells the reason
                await process.stdin.drain()
