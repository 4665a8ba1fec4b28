"""Codex's `app-server`, which asks for permissions: JSON-RPC, one message a line. The module does no I/O.

The module reads notifications as the events of `exec --json` that say the same.
"""

import json
from collections.abc import Iterator
from typing import Any

from clawbridge.connect.program_events import (
    NOT_ANSWERED,
    Event,
    ProgramRun,
    preview_of,
    read_codex,
)
from clawbridge.connect.reply_parts import Decision, ProgramPermissionRequest, ReplyPart, object_of, text_of

INITIALIZE, THREAD, TURN = range(3)  # the ids of our requests
# Commands run in a sandbox that reads only. Codex asks before it runs one outside of it, or changes a file.
ASKING = {"approvalPolicy": "on-request", "sandbox": "read-only"}
CLIENT = {"name": "clawbridge", "title": "Clawbridge", "version": "1.0.0"}
NO_SUCH_METHOD = -32601
ITEMS = {
    "agentMessage": "agent_message",
    "commandExecution": "command_execution",
    "fileChange": "file_change",
    "mcpToolCall": "mcp_tool_call",
    "webSearch": "web_search",
}
TOOLS = {"item/commandExecution/requestApproval": "command", "item/fileChange/requestApproval": "file change"}


def begin_codex(run: ProgramRun, conversation_id: str) -> Iterator[str]:
    """The first messages; the question follows when there is a conversation."""
    yield _encode(id=INITIALIZE, method="initialize", params={"clientInfo": CLIENT})
    yield _encode(method="initialized")
    if conversation_id:
        yield _encode(id=THREAD, method="thread/resume", params=ASKING | {"threadId": conversation_id})
    else:
        yield _encode(id=THREAD, method="thread/start", params=ASKING)


def read_codex_server(event: Event, run: ProgramRun) -> Iterator[ReplyPart]:
    """The parts of a reply in one message of the server."""
    if "method" not in event:
        yield from _read_response(event, run)
    elif "id" in event:
        yield from _read_request(event, run)
    elif (params := object_of(event, "params")).get("threadId") == run.conversation_id:
        yield from _read_notification(text_of(event, "method"), params, run)


def _read_response(event: Event, run: ProgramRun) -> Iterator[ReplyPart]:
    if "error" in event:
        yield from read_codex({"type": "turn.failed", "error": event["error"]}, run)
    elif event.get("id") == THREAD:
        thread_id = text_of(object_of(object_of(event, "result"), "thread"), "id")
        yield from read_codex({"type": "thread.started", "thread_id": thread_id}, run)
        question = [{"type": "text", "text": run.question}]
        run.write_line(_encode(id=TURN, method="turn/start", params={"threadId": thread_id, "input": question}))


def _read_request(event: Event, run: ProgramRun) -> Iterator[ReplyPart]:
    """A request of Codex, which waits for the response. Codex takes no message from the approver."""
    tool, params = TOOLS.get(text_of(event, "method")), object_of(event, "params")

    def on_decision(decision: Decision) -> None:
        decided = "accept" if decision.is_allowed else "decline"
        run.write_line(_encode(id=event["id"], result={"decision": decided}))

    if tool is None:
        run.write_line(_encode(id=event["id"], error={"code": NO_SUCH_METHOD, "message": NOT_ANSWERED}))
    else:
        names = ("command", "cwd", "reason", "networkApprovalContext", "grantRoot")
        wanted = {name: params[name] for name in names if params.get(name)}
        wanted |= object_of(run.changes, text_of(params, "itemId"))
        yield ProgramPermissionRequest(tool=tool, input_preview=preview_of(wanted), on_decision=on_decision)


def _read_notification(method: str, params: Event, run: ProgramRun) -> Iterator[ReplyPart]:
    item, turn = object_of(params, "item"), object_of(params, "turn")
    if method in ("item/started", "item/completed"):
        if item.get("type") == "fileChange":
            run.changes[text_of(item, "id")] = {"changes": item.get("changes")}
        kind = ITEMS.get(text_of(item, "type"), "")
        yield from read_codex({"type": method.replace("/", "."), "item": {**item, "type": kind}}, run)
    elif method == "thread/tokenUsage/updated":
        total = object_of(object_of(params, "tokenUsage"), "total")
        run.total_usage = {"input_tokens": total.get("inputTokens"), "output_tokens": total.get("outputTokens")}
    elif method == "turn/completed" and turn.get("status") == "completed":
        yield from read_codex({"type": "turn.completed", "usage": run.total_usage}, run)
    elif method == "turn/completed":
        error = object_of(turn, "error") or {"message": f"the turn of Codex is {text_of(turn, 'status')}"}
        yield from read_codex({"type": "turn.failed", "error": error}, run)


def _encode(**message: Any) -> str:
    return json.dumps(message)
