"""The events that the programs of `connect.presets` print, as parts of a reply. The module does no I/O.

`clawbridge/connect/README.md` names the versions whose output these functions read.
"""

import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from clawbridge.connect.reply_parts import (
    Decision,
    Failed,
    ProgramPermissionRequest,
    ReplyPart,
    Status,
    Usage,
    object_of,
    text_of,
)

logger = logging.getLogger(__name__)

MAX_EVENT_CHARS = 4_000_000
MAX_TOOL_NAME_CHARS = 100
MAX_PREVIEW_CHARS = 8_000  # the hub cuts at 8,192 characters
MAX_VALUE_STARTS = 20
VALUE_START = re.compile(r"^[\[{]", re.MULTILINE)

Event = Mapping[str, Any]
DENIED = "permission was denied"
NOT_ANSWERED = "this connector only answers requests for permission to use a tool"
CODEX_TOOLS = {"command_execution": "command", "web_search": "web search", "mcp_tool_call": "MCP tool"}


@dataclass
class ProgramRun:
    """The state of one run. `conversation_id`: the program's own id, which continues the conversation.

    `is_complete`: the program reported the end of its answer. `write_line` writes to its standard input.
    `question`: for a program that is asked in lines. `changes`, `total_usage`: what the program reported last, the
    changes of files by its id for them.
    `counted`: the input and output tokens of the conversation until now, if the program counts from turn to turn;
    empty if that is not known.
    """

    conversation_id: str = ""
    is_complete: bool = False
    has_text: bool = False
    streams_text: bool = False
    question: str = ""
    changes: dict[str, Event] = field(default_factory=dict)
    total_usage: Event = field(default_factory=dict)
    write_line: Callable[[str], None] = field(default=lambda line: None)
    counted: Sequence[int] = (0, 0)

    def count(self, *totals: object) -> Sequence[int | None]:
        """The numbers that this turn adds to the totals of its conversation; None where a number is not known."""
        before, now = self.counted, [total for total in totals if type(total) is int]
        if len(now) < len(totals):
            return [None] * len(totals)
        self.counted = now
        if not before:
            return [None] * len(totals)
        # A total that is smaller than the last one was reset by the program.
        return [total - was if total >= was else total for total, was in zip(now, before, strict=True)]

    def paragraph(self, text: str) -> Iterator[ReplyPart]:
        """A message of the program; a blank line stands between two messages."""
        if text:
            yield f"\n\n{text}" if self.has_text else text
            self.has_text = True


EventReader = Callable[[Event, ProgramRun], Iterator[ReplyPart]]


class ProgramOutput:
    """Cuts a program's output into events. `is_one_value`: all output is one JSON value, maybe on many lines."""

    def __init__(self, program: str, read_event: EventReader, *, is_one_value: bool = False) -> None:
        self.run = ProgramRun()
        self._program = program
        self._read_event = read_event
        self._is_one_value = is_one_value
        self._waiting = ""
        self._is_too_long = False

    @property
    def is_complete(self) -> bool:
        """True if the program reported the end of its answer."""
        return self.run.is_complete

    def feed(self, text: str) -> Iterator[ReplyPart]:
        """Yield the reply parts that are complete after this further output."""
        *lines, rest = [text] if self._is_one_value else text.split("\n")
        for line in lines:
            self._add(line)
            yield from self._take()
        self._add(rest)

    def finish(self) -> Iterator[ReplyPart]:
        """Yield the reply parts in the output that is left at its end."""
        yield from self._take()

    def _add(self, text: str) -> None:
        self._waiting += text
        if len(self._waiting) > MAX_EVENT_CHARS:
            self._waiting, self._is_too_long = "", True

    def _take(self) -> Iterator[ReplyPart]:
        text, is_too_long = self._waiting, self._is_too_long
        self._waiting, self._is_too_long = "", False
        if is_too_long:
            logger.warning("%s printed an event of more than %d characters", self._program, MAX_EVENT_CHARS)
            return
        value = _find_json(text) if self._is_one_value else _parse(text)
        for event in value if isinstance(value, list) else [value]:
            if isinstance(event, Mapping):
                yield from self._read_event(event, self.run)


def read_claude(event: Event, run: ProgramRun) -> Iterator[ReplyPart]:
    """Claude Code's `--output-format stream-json --include-partial-messages`."""
    kind = event.get("type")
    if event.get("parent_tool_use_id"):
        return  # messages of a subagent to its agent
    if kind == "system" and event.get("subtype") == "init":
        run.conversation_id = text_of(event, "session_id")
    elif kind == "stream_event":
        inner = object_of(event, "event")
        if inner.get("type") == "content_block_start":
            run.streams_text = False
        delta = object_of(inner, "delta")
        if delta.get("type") == "text_delta":
            text = text_of(delta, "text")
            yield from [text] if run.streams_text else run.paragraph(text)
            run.streams_text = run.streams_text or bool(text)
    elif kind == "assistant":
        for block in _objects(object_of(event, "message"), "content"):
            if block.get("type") == "tool_use":
                yield _tool(text_of(block, "name"))
    elif kind == "control_request":
        yield from _request_of_claude(event, run)
    elif kind == "result":
        yield from _usage(
            _sum(event, "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
            object_of(event, "usage").get("output_tokens"),
            event.get("total_cost_usd"),
        )
        run.is_complete = True
        if event.get("is_error"):
            errors = [error for error in event.get("errors") or [] if isinstance(error, str)]
            yield Failed(text_of(event, "result") or "\n".join(errors) or text_of(event, "subtype"))
        elif not run.has_text:
            yield from run.paragraph(text_of(event, "result"))


def begin_claude(run: ProgramRun, conversation_id: str) -> Iterator[str]:
    """The question as Claude Code's `--input-format stream-json` reads it."""
    yield json.dumps({"type": "user", "message": {"role": "user", "content": run.question}})


def preview_of(value: object) -> str:
    """The JSON of what a program wants, as its approver sees it."""
    preview = json.dumps(value, ensure_ascii=False)
    if len(preview) > MAX_PREVIEW_CHARS:
        preview = f"{preview[:MAX_PREVIEW_CHARS]}… (the first of {len(preview)} characters)"
    return preview


def _request_of_claude(event: Event, run: ProgramRun) -> Iterator[ReplyPart]:
    """A request of `--permission-prompt-tool stdio`: Claude Code waits for the response."""
    request, request_id = object_of(event, "request"), event.get("request_id")

    def respond(subtype: str, **more: object) -> None:
        response = {"subtype": subtype, "request_id": request_id, **more}
        run.write_line(json.dumps({"type": "control_response", "response": response}))

    def on_decision(decision: Decision) -> None:
        if decision.is_allowed:
            respond("success", response={"behavior": "allow", "updatedInput": request.get("input")})
        else:
            respond("success", response={"behavior": "deny", "message": decision.message or DENIED})

    if request.get("subtype") == "can_use_tool":
        tool = text_of(request, "tool_name")[:MAX_TOOL_NAME_CHARS] or "tool"
        yield ProgramPermissionRequest(
            tool=tool, input_preview=preview_of(request.get("input")), on_decision=on_decision
        )
    else:
        respond("error", error=NOT_ANSWERED)


def read_codex(event: Event, run: ProgramRun) -> Iterator[ReplyPart]:
    """Codex's `exec --json`, which reports the usage of the whole conversation."""
    kind, item = event.get("type"), object_of(event, "item")
    if kind == "thread.started":
        run.conversation_id = text_of(event, "thread_id")
    elif kind == "item.started" and item.get("type") in CODEX_TOOLS:
        yield _tool(text_of(item, "tool") or CODEX_TOOLS[item["type"]])
    elif kind == "item.completed" and item.get("type") == "file_change":
        yield _tool("file change")
    elif kind == "item.completed" and item.get("type") == "agent_message":
        yield from run.paragraph(text_of(item, "text"))
    elif kind == "turn.completed":
        usage = object_of(event, "usage")
        yield from _usage(*run.count(usage.get("input_tokens"), usage.get("output_tokens")))
        run.is_complete = True
    elif kind == "turn.failed":
        run.is_complete = True
        yield Failed(text_of(object_of(event, "error"), "message"))


def read_gemini(event: Event, run: ProgramRun) -> Iterator[ReplyPart]:
    """Gemini CLI's `--output-format stream-json`."""
    kind = event.get("type")
    if kind == "init":
        run.conversation_id = text_of(event, "session_id")
    elif kind == "message" and event.get("role") == "assistant":
        text = text_of(event, "content")
        yield from [text] if event.get("delta") and run.streams_text else run.paragraph(text)
        run.streams_text = True
    elif kind == "tool_use":
        run.streams_text = False
        yield _tool(text_of(event, "tool_name"))
    elif kind == "result":
        stats = object_of(event, "stats")
        yield from _usage(stats.get("input_tokens"), stats.get("output_tokens"))
        run.is_complete = True
        if event.get("status") != "success":
            yield Failed(text_of(object_of(event, "error"), "message"))


def read_openclaw(event: Event, run: ProgramRun) -> Iterator[ReplyPart]:
    """OpenClaw's `agent --json`: from its gateway the result is one level deeper than from `--local`."""
    result = object_of(event, "result") or event
    for payload in _objects(result, "payloads"):
        yield from run.paragraph(text_of(payload, "text"))
        run.is_complete = True
    agent = object_of(object_of(result, "meta"), "agentMeta")
    run.conversation_id = text_of(agent, "sessionId")
    usage = object_of(agent, "usage")
    yield from _usage(usage.get("input"), usage.get("output"))


def read_llm(event: Event, run: ProgramRun) -> Iterator[ReplyPart]:
    """`llm prompt --json`."""
    if isinstance(event.get("response"), str):
        run.conversation_id = text_of(event, "conversation_id")
        yield from run.paragraph(event["response"])
        yield from _usage(event.get("input_tokens"), event.get("output_tokens"))
        run.is_complete = True


def _find_json(text: str) -> Any:
    """The JSON value at the end of some output; log lines may stand before it."""
    for start in islice(VALUE_START.finditer(text), MAX_VALUE_STARTS):
        if (value := _parse(text[start.start() :])) is not None:
            return value
    return None


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _tool(name: str) -> Status:
    """The use of a tool, without its arguments: they may hold paths and secrets of the owner."""
    name = name[:MAX_TOOL_NAME_CHARS] or "tool"
    return Status(text=f"Using {name}", metadata={"tool": name})


def _usage(input_tokens: object, output_tokens: object, cost_usd: object = None) -> Iterator[ReplyPart]:
    """The usage of the run, where the program reports numbers that the hub takes."""
    try:
        usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens, cost_usd=cost_usd)  # type: ignore[arg-type]
    except ValueError as wrong:
        logger.warning("the program's usage is left out: %s", wrong)
        return
    if usage != Usage():
        yield usage


def _sum(event: Event, *names: str) -> int | None:
    usage = object_of(event, "usage")
    counts = [usage[name] for name in names if type(usage.get(name)) is int]
    return sum(counts) if counts else None


def _objects(event: Event, name: str) -> list[Event]:
    value = event.get(name)
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
