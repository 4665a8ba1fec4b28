"""The tools of the hub: their arguments, structured results and JSON Schemas, and the requests they become."""

import hashlib
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct

from a2a_bridge.service.services import MAX_TASK_ID_CHARS
from a2a_bridge.wire.dialects.reading import (
    MAX_ID_CHARS,
    MAX_PARTS,
    check_content,
    check_printable,
    invalid,
    needs_of,
)
from a2a_bridge.wire.dialects.v1.params import MAX_URL_CHARS
from a2a_bridge.wire.requests import Send, Thumb
from a2a_bridge.wire.task import Message, Role, State
from agents.models.rating import MAX_NOTE_CHARS
from agents.transcript.pieces import Part, question_of

MAX_HANDLE_CHARS = 160
MAX_QUERY_CHARS = 200
MAX_NAME_CHARS = 255
MAX_WAIT_S = 3600

Handle = Annotated[
    str,
    Meta(min_length=1, max_length=MAX_HANDLE_CHARS, description="The agent's handle: owner/slug."),
]
Question = Annotated[str, Meta(min_length=1, description="What to ask, in plain text or Markdown.")]
ContextId = Annotated[
    str,
    Meta(
        max_length=MAX_ID_CHARS,
        description="The context_id of an earlier result: the agent goes on with that conversation.",
    ),
]
WaitS = Annotated[
    int,
    Meta(
        ge=1,
        le=MAX_WAIT_S,
        description="Seconds after which the result is that the agent is still working; then use get_task. By"
        " default the result waits as long as the agent may take.",
    ),
]
TaskId = Annotated[
    str, Meta(min_length=1, max_length=MAX_TASK_ID_CHARS, description="The task_id of an earlier result.")
]


class File(Struct, frozen=True, forbid_unknown_fields=True):
    """A file that goes with the message: `data` in base64, or the `url` of it."""

    name: Annotated[str, Meta(max_length=MAX_NAME_CHARS)] = ""
    media_type: Annotated[str, Meta(max_length=MAX_NAME_CHARS)] = ""
    data: Annotated[str, Meta(description="The content, in base64.")] = ""
    url: Annotated[str, Meta(max_length=MAX_URL_CHARS)] = ""


Files = Annotated[list[File], Meta(max_length=MAX_PARTS - 1, description="Files for the agent, 700 KB in all.")]


class ListAgents(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of list_agents."""

    query: Annotated[
        str,
        Meta(max_length=MAX_QUERY_CHARS, description="Words of the handle, name, tagline, skills or description."),
    ] = ""
    online_only: Annotated[bool, Meta(description="Leave out agents that cannot be asked now.")] = False


class AskAgent(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ask_agent."""

    handle: Handle
    message: Question
    context_id: ContextId = ""
    files: Files = []
    wait_s: WaitS | None = None


class AskThisAgent(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of a tool that asks one agent."""

    message: Question
    context_id: ContextId = ""
    files: Files = []
    wait_s: WaitS | None = None


class NameTask(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of get_task and cancel_task."""

    task_id: TaskId


class RateAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of rate_answer."""

    task_id: TaskId
    rating: Annotated[Thumb, Meta(description="The thumb; none takes an earlier one away.")]
    note: Annotated[str, Meta(max_length=MAX_NOTE_CHARS, description="Words for the agent's owner.")] = ""


class AnswerTask(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of answer_task."""

    task_id: TaskId
    message: Annotated[str, Meta(min_length=1, description="The answer to what the agent asked back.")]
    files: Files = []
    wait_s: WaitS | None = None


def schema_of(shape: type[Struct]) -> dict[str, Any]:
    """The JSON Schema of a tool's arguments, or of its structured result."""
    (reference,), shapes = msgspec.json.schema_components([shape], ref_template="#/$defs/{name}")
    schema = dict(shapes.pop(reference["$ref"].rpartition("/")[2]))
    for name in ("title", "description"):
        schema.pop(name, None)
    return {**schema, "$defs": shapes} if shapes else schema


def make_send(
    message: str, files: Sequence[File], *, context_id: str = "", task_id: str = "", waits: bool = True
) -> Send:
    """The message of a tool's call.

    A client names no message, so its id is made of what it says: a call that is repeated while the first is being
    answered joins it.

    Raises:
        RpcError: -32602, an argument cannot be sent.
    """
    if not message.strip():
        raise invalid("message", "message: want text")
    parts = (Part(text=message), *(_part(one, f"files[{i}]") for i, one in enumerate(files)))
    said = (parts, check_printable(context_id, "context_id"), task_id)
    message_id = f"mcp-{hashlib.blake2b(msgspec.json.encode(said), digest_size=16).hexdigest()}"
    return Send(
        message=Message(message_id, Role.USER, parts),
        question=question_of(parts, ""),
        parts=parts if files else (),
        needs=needs_of((f"files[{i}]", part) for i, part in enumerate(parts[1:])),
        task_id=task_id,
        context_id=context_id,
        waits=waits,
        has_agents_time=True,
    )


def _part(file: File, where: str) -> Part:
    part = Part(
        raw=file.data or UNSET,
        url=check_printable(file.url, f"{where}.url") or UNSET,
        filename=check_printable(file.name, f"{where}.name"),
        media_type=check_printable(file.media_type, f"{where}.media_type"),
    )
    if (part.raw is UNSET) == (part.url is UNSET):
        raise invalid(where, f"{where}: want exactly one of data and url")
    check_content(part, where)
    return part


class ListedAgent(Struct, frozen=True):
    """An agent that the caller may ask."""

    handle: Annotated[str, Meta(description="owner/slug, for ask_agent.")]
    state: Annotated[str, Meta(description="Whether it can be asked now: online, busy, offline and so on.")]
    name: str
    summary: Annotated[str, Meta(description="What its owner says of it, from the beginning; may be empty.")]


class AgentList(Struct, frozen=True):
    """The result of list_agents."""

    agents: list[ListedAgent]
    has_more: Annotated[bool, Meta(description="Whether there are more: narrow the list with `query`.")]


class NamedFile(Struct, frozen=True):
    """A file of an answer."""

    name: str
    media_type: Annotated[str, Meta(description="Empty where the agent named none.")]
    uri: Annotated[str, Meta(description="For resources/read, or a web address, or a label; may be empty.")]


class TaskResult(Struct, frozen=True):
    """The result of ask_agent, answer_task and get_task."""

    task_id: Annotated[str, Meta(description="For get_task, answer_task, cancel_task and rate_answer.")]
    context_id: Annotated[str, Meta(description="For ask_agent, to go on with the conversation.")]
    handle: Annotated[str, Meta(description="The agent.")]
    state: State
    text: Annotated[
        str,
        Meta(description="The answer; or what the agent asks back, or what happened, and what to do then."),
    ]
    files: list[NamedFile]
