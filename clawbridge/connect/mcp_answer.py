"""Answers questions with one tool of an MCP server (`--mcp`). Needs the SDK `mcp`, which the connector does not.

`connect.cli` imports this module only for `--mcp`.
"""

import asyncio
import os
import shlex
import shutil
from collections.abc import AsyncIterator, Sequence
from typing import Any, Self
from urllib.parse import urlsplit

from mcp.shared.dispatcher import ProgressFnT
from mcp_types import Tool

from clawbridge.connect.answers import AnswerFailed, CannotStart, ProgramAnswer
from clawbridge.connect.frames import Question
from clawbridge.connect.mcp_calls import BadToolArguments, compact, read_arguments, read_result, text_property
from clawbridge.connect.mcp_connection import ToolConnection
from clawbridge.connect.mcp_servers import MCP_TOKEN_VARIABLE, ProgramServer, ServerFailed, SessionEnded, WebServer
from clawbridge.connect.reply_parts import Rejected, ReplyPart, Status
from clawbridge.connect.tasks import running

MAX_WAITING_NOTES = 20
MAX_TIMEOUT_S = 86_400.0
MAX_ID_CHARS = 64
MAX_NAME_CHARS = 120
MAX_DESCRIPTION_CHARS = 4_096


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
                notes.put_nowait(Status(text=message or describe_progress(progress, total)))

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
        if not urlsplit(where).hostname:
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


def describe_progress(progress: float, total: float | None) -> str:
    """The progress of a tool as text, when the tool sent no words for it."""
    return f"{progress:g}" if total is None else f"{progress:g} of {total:g}"


def describe_skill(tool: Tool) -> str:
    """The tool as a skill of the agent's card, in the lines that the hub's form reads."""
    title = tool.title or (tool.annotations.title if tool.annotations else None) or tool.name
    description = _one_block(_with_schema((tool.description or title).strip(), tool.input_schema))
    takes_text = text_property(tool.input_schema) or not tool.input_schema.get("properties")
    modes = ["text/plain"] if takes_text else []
    return "\n".join(
        (
            f"id: {_one_line(tool.name)[:MAX_ID_CHARS]}",
            f"name: {_one_line(title)[:MAX_NAME_CHARS]}",
            f"description: {description}",
            "tag: mcp",
            *(f"input: {mode}" for mode in [*modes, "application/json"]),
        )
    )


def _with_schema(description: str, schema: dict[str, Any]) -> str:
    """The description with the schema; what is too long is without notes, and at last cut."""
    for shown in (schema, _without_notes(schema)):
        text = f"{description}\nArguments, as a JSON Schema: {compact(shown)}"
        if len(text) <= MAX_DESCRIPTION_CHARS:
            return text
    return f"{text[: MAX_DESCRIPTION_CHARS - 1]}…"


def _without_notes(schema: Any) -> Any:
    """A schema without what is for readers: descriptions and titles are texts, properties of that name are not."""
    if isinstance(schema, list):
        return [_without_notes(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    notes = {name for name in ("description", "title") if isinstance(schema.get(name), str)}
    return {name: _without_notes(one) for name, one in schema.items() if name not in notes}


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _one_block(text: str) -> str:
    """The text without empty lines; two spaces continue a value."""
    return "\n  ".join(line.rstrip() for line in text.splitlines() if line.strip())
