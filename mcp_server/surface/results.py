"""The texts for a tool's caller: tasks as text, images, files and links; refusals with what to do about them."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote

import mcp_types as types
import msgspec
from msgspec import UNSET

from a2a_bridge.service.tasks.pieces import answer_message
from a2a_bridge.wire.errors import (
    AGENT_NOT_FOUND,
    CONTENT_TYPE_NOT_SUPPORTED,
    INSUFFICIENT_SCOPE,
    REFUSED,
    TASK_NOT_CANCELABLE,
    TASK_NOT_FOUND,
    TOO_MANY_STREAMS,
    UNAUTHENTICATED,
    UNAVAILABLE,
    UNSUPPORTED_OPERATION,
)
from a2a_bridge.wire.task import State, Task
from agents.core.errors import Denied
from agents.core.explanations import BY_REASON
from agents.core.reasons import Explanation
from agents.models.choices import Outcome
from agents.transcript.pieces import Part, text_in
from kit.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, RpcError
from mcp_server.service.calls import CallResult
from mcp_server.service.catalog import address_artifact, describe_agent
from mcp_server.wire.tools import AgentList, ListAgents, NamedFile, TaskResult, schema_of

TASK_META, CONTEXT_META, STATE_META = "clawbridge/task_id", "clawbridge/context_id", "clawbridge/state"
URI_META = "clawbridge/uri"  # of a file that can be read as a resource
NAME_META = "clawbridge/name"  # of a file in line
SHOWN_TAIL_CHARS = 2_000
MAX_EMBEDDED_CHARS = 262_144  # of a file in base64
ERROR_ADVICE = {
    AGENT_NOT_FOUND: "Call list_agents for the handles of the agents that you may ask.",
    TASK_NOT_FOUND: "It may have expired. Ask again with ask_agent.",
    TASK_NOT_CANCELABLE: "Read it with get_task.",
    UNSUPPORTED_OPERATION: "Ask again with ask_agent, with the task's context_id to go on with the conversation.",
    REFUSED: "The task still waits for your answer: send it later with answer_task.",
    UNAUTHENTICATED: "Sign in again, or make a new token on the hub's page /account. The question goes on at its"
    " agent; after that get_task has the answer.",
    INSUFFICIENT_SCOPE: "Make a token with the scope `ask`, for this agent or all, on the hub's page /account.",
    CONTENT_TYPE_NOT_SUPPORTED: "Send it as text, or ask an agent of list_agents that takes such files.",
    TOO_MANY_STREAMS: "Nothing was sent. Wait for one of your open calls, or use cancel_task, and call again.",
    UNAVAILABLE: "Call the tool again in a few seconds.",
    INVALID_PARAMS: "Correct the argument, and call the tool again.",
    INVALID_REQUEST: "Send less at once: a shorter message, or links in place of files.",
    INTERNAL_ERROR: "Call the tool again later. If it fails again, tell the administrators of the hub.",
}
ENDED_ADVICE = {
    State.FAILED: "Ask again with ask_agent if it does no harm to ask twice, or ask another of list_agents.",
    State.REJECTED: "Ask it something else with ask_agent, or ask another of list_agents.",
    State.CANCELED: "Ask again with ask_agent if you still want an answer.",
}

Contents = list[types.ContentBlock]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTool:
    """A tool as clients see it."""

    arguments: type[msgspec.Struct]
    title: str
    description: str
    output: type[msgspec.Struct] | None = None
    is_read_only: bool = False

    def shown_as(self, name: str) -> types.Tool:
        """The entry of this tool in a list of tools."""
        return types.Tool(
            name=name,
            title=self.title,
            description=self.description,
            input_schema=schema_of(self.arguments),
            output_schema=schema_of(self.output) if self.output is not None else None,
            annotations=types.ToolAnnotations(
                read_only_hint=self.is_read_only, destructive_hint=False, open_world_hint=True
            ),
        )


def render_text(*lines: str, is_error: bool = False) -> types.CallToolResult:
    """A result that is text."""
    text = "\n".join(filter(None, lines))
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=is_error)


def render_error(error: RpcError) -> types.CallToolResult:
    """The result of a call that failed, with advice."""
    return render_text(f"Error: {error.message}.", ERROR_ADVICE.get(error.code, ""), is_error=True)


def render_agents(found: AgentList, wanted: ListAgents) -> types.CallToolResult:
    """The agents that a caller may ask, one on a line."""
    lines = [f"- {one.handle} ({one.state}): {describe_agent(one.name, one.summary)}" for one in found.agents]
    if found.has_more:
        lines.append(f"There are more than {len(found.agents)}: narrow the list with `query`.")
    shown = render_text(*(lines or [_describe_nothing(wanted)]))
    shown.structured_content = msgspec.to_builtins(found)
    return shown


def _describe_nothing(wanted: ListAgents) -> str:
    if wanted.query:
        return "No agent that you may ask has all of these words. Try fewer words, or none."
    if wanted.online_only:
        return "No agent that you may ask is online. Call list_agents without online_only for all of them."
    return "There is no agent that you may ask. An owner has to publish one first."


def render_result(result: CallResult, note: str = "") -> types.CallToolResult:
    """The result of a call about a task, as the client gets it. `note`: of the hub, after what the agent said."""
    task = result.task
    if result.error is not None:
        shown = render_error(result.error)
        if task is not None:
            shown.content.append(_names(task))
        return shown
    if task is None:
        raise RuntimeError("the call has neither a task nor an error")
    content = _contents(task, result)
    if note:
        content.append(types.TextContent(text=note))
    # The content as data, for clients that show their model the structured content alone.
    texts = "\n".join(one.text for one in content if isinstance(one, types.TextContent))
    files = [named for one in content if (named := _name_file(one)) is not None]
    structured = msgspec.to_builtins(TaskResult(task.id, task.context_id, task.handle, task.state, texts, files))
    is_refused = result.denied is not None
    if not is_refused:
        content.append(_names(task))
    meta = {TASK_META: task.id, CONTEXT_META: task.context_id, STATE_META: str(task.state)}
    return types.CallToolResult(
        content=content,
        structured_content=None if is_refused else structured,
        is_error=task.is_terminal and task.state is not State.COMPLETED,
        _meta=meta,
    )


def _name_file(block: types.ContentBlock) -> NamedFile | None:
    match block:
        case types.ResourceLink():
            return NamedFile(block.name, block.mime_type or "", block.uri)
        case types.EmbeddedResource(resource=resource):
            name = (block.meta or {}).get(NAME_META, "")
            return NamedFile(name, resource.mime_type or "", resource.uri)
        case types.ImageContent(meta=meta) | types.AudioContent(meta=meta):
            found = meta or {}
            return NamedFile(found.get(NAME_META, ""), block.mime_type, found.get(URI_META, ""))
        case _:
            return None


def question_of(task: Task) -> str:
    """The question that the agent of a task that waits for its caller asked back."""
    return text_in(task.message.parts) if task.message is not None else ""


def _contents(task: Task, result: CallResult) -> Contents:
    said = question_of(task)
    if task.state is State.COMPLETED:
        parts = answer_message(task).parts
        if said and task.message is not None and said != task.reply_text:
            parts = (*task.message.parts, *parts)
        return _blocks(task, parts) or [types.TextContent(text="(The agent gave an empty answer.)")]
    if task.is_interrupted:
        wanted = "asks you to sign in or to authorise it" if task.state is State.AUTH_REQUIRED else "asks back"
        asked = _blocks(task, task.message.parts) if task.message is not None else []
        advice = f"The agent {wanted}. Answer with answer_task and the task_id below."
        return [*_made(task, said), *asked, types.TextContent(text=advice)]
    if not task.is_terminal:
        begun = f"\nSo far: {task.reply_text[-SHOWN_TAIL_CHARS:]}" if task.reply_text else ""
        named = json.dumps({"task_id": task.id})
        return [types.TextContent(text=f"Still working: call get_task with {named} for the answer.{begun}")]
    text = f"{_WORDS[task.state]}: {said.removesuffix('.')}. {_advise(task, result.denied)}"
    return [types.TextContent(text=text), *_made(task, said)]


def _advise(task: Task, denied: Denied | None) -> str:
    """The advice after a task that ended without an answer."""
    metadata = task.message.metadata if task.message is not None else UNSET
    reason = metadata.get("reason") if isinstance(metadata, dict) else None
    entry: Explanation | None = denied.entry if denied is not None else None
    if entry is None and isinstance(reason, str):
        entry = BY_REASON[Outcome.FAILED].get(reason) or BY_REASON[Outcome.DENIED].get(reason)
    return (entry.advice if entry is not None else "") or ENDED_ADVICE[task.state]


def _made(task: Task, said: str) -> Contents:
    """The parts of an unfinished answer; its text only if the agent's last message does not repeat it."""
    repeats = bool(task.reply_text) and said.startswith(task.reply_text)
    return _blocks(task, [part for _, part in task.besides_reply] if repeats else answer_message(task).parts)


_WORDS = {
    State.FAILED: "Not answered",
    State.REJECTED: "The agent refused the question",
    State.CANCELED: "Canceled",
}


def _names(task: Task) -> types.TextContent:
    """The text that tells the model how to name this task and its conversation in later calls."""
    return types.TextContent(text=f"task_id: {task.id}\ncontext_id: {task.context_id}")


def _blocks(task: Task, parts: Iterable[Part]) -> Contents:
    found = (_block(task, part, number) for number, part in enumerate(parts, 1))
    return [block for block in found if block is not None]


def _block(task: Task, part: Part, number: int) -> types.ContentBlock | None:
    if isinstance(part.raw, str):
        return _file(task, part, part.raw, number)
    if isinstance(part.url, str):
        return _link(part, part.url)
    if part.data is not UNSET:
        return types.TextContent(text=json.dumps(part.data, ensure_ascii=False))
    if not part.text:
        return None
    title = f"{part.filename}:\n" if part.filename else ""
    return types.TextContent(text=f"{title}{part.text}")


def _file(task: Task, part: Part, raw: str, number: int) -> types.ContentBlock:
    """A file in line; a large one that can be read as a resource, as a link to that."""
    uri, kind = _find_uri(task, part), part.media_type.partition("/")[0]
    if uri and len(raw) > MAX_EMBEDDED_CHARS:
        return types.ResourceLink(
            uri=uri,
            name=part.filename or "file",
            mime_type=part.media_type or None,
            size=len(raw.rstrip("=")) * 3 // 4,
        )
    meta = {name: value for name, value in ((NAME_META, part.filename), (URI_META, uri)) if value} or None
    if kind == "image":
        return types.ImageContent(data=raw, mime_type=part.media_type, _meta=meta)
    if kind == "audio":
        return types.AudioContent(data=raw, mime_type=part.media_type, _meta=meta)
    uri = uri or f"clawbridge:{task.id}/{number}/{quote(part.filename or 'file')}"
    contents = types.BlobResourceContents(uri=uri, blob=raw, mime_type=part.media_type or None)
    return types.EmbeddedResource(resource=contents, _meta=meta)


def _find_uri(task: Task, part: Part) -> str:
    """The address of the artifact that a part is in; empty for a part of a message."""
    for artifact in task.artifacts:
        if any(part is one for one in artifact.parts):
            return address_artifact(task, artifact)
    return ""


def _link(part: Part, url: str) -> types.ContentBlock:
    """A link; as text where it is not of the web, so that no client opens it by itself."""
    if not url.lower().startswith(("https://", "http://")):
        return types.TextContent(text=f"{part.filename or 'file'}: {url}")
    name = part.filename or url.partition("?")[0].rpartition("/")[2] or "file"
    return types.ResourceLink(uri=url, name=name, mime_type=part.media_type or None)
