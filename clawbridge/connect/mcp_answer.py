"""Answers questions with one tool of an MCP server (`--mcp`), over connections that are kept.

The module needs the SDK `mcp`, which the connector does not: `connect.__main__` imports it only for `--mcp`.
"""

import asyncio
import logging
import os
import shlex
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self

import anyio
import httpx2
from mcp.client import Client
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, INVALID_PARAMS, CallToolResult, Implementation, Tool

from clawbridge.checks import is_web_url
from clawbridge.connect.agent import VERSION
from clawbridge.connect.answers import AnswerFailed, CannotStart, ProgramAnswer
from clawbridge.connect.frames import Question
from clawbridge.connect.mcp_calls import BadToolArguments, describe_skill, read_arguments, read_result
from clawbridge.connect.mcp_servers import (
    MCP_TOKEN_VARIABLE,
    ProgramServer,
    ServerFailed,
    ServerLoss,
    SessionEnded,
    WebServer,
)
from clawbridge.connect.reply_parts import Rejected, ReplyPart, Status, cleaned
from clawbridge.connect.tasks import running

logger = logging.getLogger(__name__)

MAX_WAITING_NOTES = 20
MAX_TIMEOUT_S = 86_400.0
CLIENT = Implementation(name="clawbridge-connect", version=VERSION)
MAX_TOOL_PAGES = 50
MAX_SHOWN_TOOLS = 50
MAX_TEXT_CHARS = 500
OPEN_WAIT_S = 60.0
CLOSE_WAIT_S = 8.0
LOST = "the connection to the MCP server was lost"
UNREACHABLE = "the MCP server cannot be reached, or does not speak MCP"
# What the SDK raises, alone or in a group, when a server or a connection fails.
SDK_ERRORS = (
    *(MCPError, httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError, RuntimeError, ExceptionGroup),
    *(anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream),
)


class ToolConnection:
    """A connection to the server, with the tool as the server describes it now.

    The SDK requires that the task which opens a connection also closes it, so one task holds it meanwhile.
    """

    def __init__(self, server: ProgramServer | WebServer, tool_name: str) -> None:
        self._server = server
        self._tool_name = tool_name
        self._loss = ServerLoss()
        self._is_retired = False
        self._uses = 0
        self._opened: asyncio.Future[tuple[Client, Tool]] = asyncio.get_running_loop().create_future()
        self.holder = asyncio.create_task(self._hold())

    @property
    def is_usable(self) -> bool:
        """True if another question may use the connection."""
        return not self._is_retired and not self._loss.reason

    async def open(self) -> Tool:
        """Wait until the connection is open.

        Raises:
            ServerFailed: the server cannot be reached, or has no such tool.
        """
        _, tool = await asyncio.shield(self._opened)
        return tool

    @asynccontextmanager
    async def used(self) -> AsyncIterator[None]:
        """One question uses the connection. If a question fails or takes too long, no later one uses it."""
        self._uses += 1
        try:
            yield
        except (ServerFailed, TimeoutError):
            self._is_retired = True
            raise
        finally:
            self._uses -= 1
            if self._is_retired and not self._uses:
                self._end()

    async def call(self, arguments: dict[str, Any], on_progress: ProgressFnT) -> CallToolResult:
        """Call the tool.

        Raises:
            AnswerFailed: the server refuses the arguments.
            SessionEnded: the tool was not called; a new connection may do it.
            ServerFailed: the connection is lost, or what comes over it is not MCP.
        """
        client, tool = await asyncio.shield(self._opened)
        try:
            return await client.call_tool(tool.name, cleaned(arguments), progress_callback=on_progress)
        except MCPError as error:
            text = f"the MCP server refused the call: {error.error.message[:MAX_TEXT_CHARS]}"
            if error.code == INVALID_PARAMS:
                raise AnswerFailed(text) from None
            is_lost = error.code == CONNECTION_CLOSED
            if self._loss.has_session_ended and not is_lost:
                raise SessionEnded(text) from None
            raise ServerFailed((self._loss.reason or LOST) if is_lost else text) from None
        except (ValueError, RuntimeError) as problem:
            logger.warning("the result of the tool %s is not usable: %s", tool.name, describe_problem(problem))
            raise ServerFailed("the result of the MCP server is not as MCP or its schema wants") from None

    async def close(self) -> None:
        """Close the connection at once."""
        self._end()
        await asyncio.wait({self.holder}, timeout=CLOSE_WAIT_S)

    def _end(self) -> None:
        self._loss.report(LOST)
        if not self._opened.done():
            self.holder.cancel()

    async def _hold(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(OPEN_WAIT_S) as deadline:
                async with Client(self._server.connect(self._loss), client_info=CLIENT) as client:
                    self._opened.set_result((client, await find_tool(client, self._tool_name)))
                    deadline.reschedule(None)
                    await self._loss.wait()
                    deadline.reschedule(loop.time() + CLOSE_WAIT_S)
        except (ServerFailed, *SDK_ERRORS) as problem:
            cause = find_cause(problem)
            if isinstance(cause, ServerFailed):
                self._fail(cause)
            else:
                logger.warning("the connection to the MCP server failed: %s", describe_problem(cause))
        finally:
            self._fail(ServerFailed(self._loss.reason or UNREACHABLE))

    def _fail(self, failed: ServerFailed) -> None:
        self._loss.report(str(failed))
        if not self._opened.done():
            self._opened.set_exception(failed)
            self._opened.exception()  # retrieves the exception, as no question may be waiting for the connection


async def find_tool(client: Client, name: str) -> Tool:
    """The tool as the server lists it.

    Raises:
        ServerFailed: the server has no tool of that name; the text lists the tools that it has.
    """
    names: list[str] = []
    cursor = None
    for _ in range(MAX_TOOL_PAGES):
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            if tool.name == name:
                return tool
            names.append(tool.name)
        cursor = page.next_cursor
        if cursor is None:
            break
    shown = ", ".join(names[:MAX_SHOWN_TOOLS]) + (", …" if len(names) > MAX_SHOWN_TOOLS else "")
    wanted = f"the MCP server has no tool {name!r}; " if name else "want --tool NAME; "
    raise ServerFailed(wanted + (f"its tools are {shown}" if names else "it has no tools"))


def find_cause(problem: Exception) -> Exception:
    """The first exception of a group, of whatever depth."""
    while isinstance(problem, ExceptionGroup):
        problem = problem.exceptions[0]
    return problem


def describe_problem(problem: Exception) -> str:
    """An exception of the SDK in one line, for the log."""
    text = str(problem) or type(problem).__name__
    return "".join(char if char.isprintable() else " " for char in text[:MAX_TEXT_CHARS])


class McpToolAnswer(ProgramAnswer):
    """Calls the tool once per question. The server runs on between questions, and is started again when it failed.

    Enter it before the first question: it connects then.
    """

    def __init__(self, server: ProgramServer | WebServer, tool_name: str, *, timeout_s: float) -> None:
        self._server = server
        self._tool_name = tool_name
        self._timeout_s = timeout_s
        self._connection: ToolConnection | None = None
        self._connections: set[ToolConnection] = set()

    async def __aenter__(self) -> Self:
        """Connect, and look the tool up.

        Raises:
            CannotStart: the server cannot be reached, or has no such tool.
        """
        try:
            await self.find_tool()
        except ServerFailed as failed:
            raise CannotStart(f"--mcp: {failed}") from None
        except asyncio.CancelledError:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *failure: object) -> None:
        """Close all connections."""
        await asyncio.gather(*(connection.close() for connection in self._connections))

    async def find_tool(self) -> Tool:
        """The tool as the server describes it."""
        return await self._connect().open()

    async def read_skill(self) -> str:
        """The tool as a skill of the agent's card."""
        return describe_skill(await self.find_tool())

    async def __call__(self, question: Question) -> AsyncIterator[ReplyPart]:
        """Yield the tool's progress, then its result.

        Raises:
            AnswerFailed: the server failed, or took too long.
        """
        notes: asyncio.Queue[Status | None] = asyncio.Queue()
        async with running(self._call(question, notes)) as call:
            call.add_done_callback(lambda _: notes.put_nowait(None))
            while (note := await notes.get()) is not None:
                yield note
            for part in call.result():
                yield part

    def kill(self) -> None:
        """End the server at once, if it is a program."""
        self._server.kill()

    def _connect(self) -> ToolConnection:
        """The connection for a question, open or about to be; a new one after a failure."""
        if self._connection is None or not self._connection.is_usable:
            connection = self._connection = ToolConnection(self._server, self._tool_name)
            self._connections.add(connection)
            connection.holder.add_done_callback(lambda _: self._connections.discard(connection))
        return self._connection

    async def _call(self, question: Question, notes: asyncio.Queue[Status | None]) -> Sequence[ReplyPart]:
        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            if notes.qsize() < MAX_WAITING_NOTES:
                known = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
                notes.put_nowait(Status(text=message or known))

        try:
            try:
                return await self._call_over(self._connect(), question, on_progress)
            except SessionEnded:  # servers end idle sessions
                return await self._call_over(self._connect(), question, on_progress)
        except BadToolArguments as bad:
            return [Rejected(str(bad))]
        except ServerFailed as failed:
            raise AnswerFailed(str(failed)) from None
        except TimeoutError:
            raise AnswerFailed(f"the MCP server did not answer within {self._timeout_s:g} s") from None

    async def _call_over(
        self, connection: ToolConnection, question: Question, on_progress: ProgressFnT
    ) -> Sequence[ReplyPart]:
        async with connection.used(), asyncio.timeout(self._timeout_s):
            tool = await connection.open()
            arguments = read_arguments(question, tool.input_schema)
            return list(read_result(await connection.call(arguments, on_progress)))


def build_mcp_answer(where: str, tool_name: str | None, *, timeout_s: float) -> McpToolAnswer:
    """Make the answer of `--mcp`: a command line, or an http address.

    Raises:
        ValueError: `where` is not usable, or the timeout is not; the text is one line.
    """
    if not 0 < timeout_s <= MAX_TIMEOUT_S:
        raise ValueError(f"--tool-timeout: want seconds above 0, up to {MAX_TIMEOUT_S:g}")
    if where.startswith(("http://", "https://")):
        if not is_web_url(where):
            raise ValueError(f"--mcp {where}: want an address such as https://tools.example/mcp")
        server: ProgramServer | WebServer = WebServer(where, os.environ.get(MCP_TOKEN_VARIABLE))
        return McpToolAnswer(server, tool_name or "", timeout_s=timeout_s)
    try:
        argv = shlex.split(where)
    except ValueError as problem:
        raise ValueError(f"--mcp: {problem}") from None
    if not argv or shutil.which(argv[0]) is None:
        raise ValueError(f"--mcp: want an http address, or a command that is installed, not {where!r}")
    return McpToolAnswer(ProgramServer(argv), tool_name or "", timeout_s=timeout_s)
