"""Connections to an MCP server, and calls of its one tool."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
from mcp.client import Client
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, INVALID_PARAMS, CallToolResult, Implementation, Tool

from clawbridge.connect.agent import VERSION
from clawbridge.connect.answers import AnswerFailed
from clawbridge.connect.mcp_servers import ProgramServer, ServerFailed, ServerLoss, SessionEnded, WebServer
from clawbridge.connect.reply_parts import cleaned

logger = logging.getLogger(__name__)

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


class UnknownTool(ServerFailed):
    """The server has no tool of that name; the text lists the tools that it has."""


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
        """True if another question may use it."""
        return not self._is_retired and not self._loss.reason

    async def open(self) -> Tool:
        """Wait until it is open.

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
        """Close it at once."""
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
            self._opened.exception()  # no question may be waiting for it


async def find_tool(client: Client, name: str) -> Tool:
    """The tool as the server lists it.

    Raises:
        UnknownTool: the server has no tool of that name.
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
    raise UnknownTool(wanted + (f"its tools are {shown}" if names else "it has no tools"))


def find_cause(problem: Exception) -> Exception:
    """The first exception of a group, of whatever depth."""
    while isinstance(problem, ExceptionGroup):
        problem = problem.exceptions[0]
    return problem


def describe_problem(problem: Exception) -> str:
    """An exception of the SDK in one line, for the log."""
    text = str(problem) or type(problem).__name__
    return "".join(char if char.isprintable() else " " for char in text[:MAX_TEXT_CHARS])
