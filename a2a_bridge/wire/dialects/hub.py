"""The hub's own dialect: PascalCase methods, bare tasks, bare states (docs/reference/methods.md).

`contextId` repeats the caller's messageId; every SendMessage is a task of its own.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal, NotRequired, TypedDict, get_args

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from a2a_bridge.wire import task as record
from a2a_bridge.wire.dialects.dialect import (
    SAMPLE_MESSAGE,
    SAMPLE_RATING,
    SAMPLE_TASK_ID,
    Description,
    Dialect,
    Id,
    Method,
    Operation,
    RpcFault,
    by_name,
    renders_alike,
)
from a2a_bridge.wire.dialects.reading import (
    MAX_ID_CHARS,
    MAX_PARTS,
    RateParams,
    check_content,
    invalid,
    needs_of,
    read_params,
    read_rate,
)
from a2a_bridge.wire.requests import GetTask, Request, Send
from a2a_bridge.wire.task import ArtifactEvent, Message, Role, State, TaskEvent, metadata_with_usage
from agents.transcript.pieces import LEFT_OUT, Json, Part, describe_left_out, plain_text_in, question_of, text_in
from kit.describe import Family, Time


class HubPart(Struct, frozen=True, rename="camel"):
    """Exactly one of text, raw (base64), url, data. `media_type`, `filename`: of a file."""

    text: str | UnsetType = UNSET
    raw: str | UnsetType = UNSET
    url: str | UnsetType = UNSET
    data: Any = UNSET
    media_type: str = ""
    filename: str = ""
    metadata: Json | UnsetType = UNSET


class HubMessage(Struct, frozen=True, rename="camel"):
    """A question; at least one part must hold text. Data reaches the agent as JSON.

    Files that the agent's card does not list are left out: the agent gets one line about each.

    `task_id` counts while that task asks to approve something, and the message then answers it.
    """

    message_id: Annotated[str, Meta(min_length=1, max_length=MAX_ID_CHARS)]
    role: Literal["ROLE_USER"]
    parts: Annotated[list[HubPart], Meta(min_length=1, max_length=MAX_PARTS)]
    metadata: Json | UnsetType = UNSET
    task_id: Any = UNSET


class SendMessageParams(Struct, frozen=True):
    """Parameters of SendMessage and SendStreamingMessage."""

    message: HubMessage


class GetTaskParams(Struct, frozen=True):
    """Parameters of GetTask."""

    id: str


def read_get(params: Any) -> GetTask:
    """GetTask."""
    return GetTask(task_id=read_params(GetTaskParams, params).id)


def read_send(params: Any, *, is_stream: bool = False) -> Send:
    """SendMessage and SendStreamingMessage."""
    message = read_params(SendMessageParams, params, role="ROLE_USER").message
    parts: tuple[Part, ...] = ()
    left_out: list[str] = []
    files: list[tuple[str, Part]] = []
    has_text = False
    for i, given in enumerate(message.parts):
        where = f"message.parts[{i}]"
        part = Part(text=given.text, raw=given.raw, url=given.url, data=given.data)
        if part == Part(text=given.text) and given.text is not UNSET:  # as nearly all are
            has_text = has_text or bool(given.text.strip())
        else:
            check_content(given, where)
            if part.is_file:
                part = replace(part, media_type=given.media_type, filename=given.filename)
                files.append((where, part))
                left_out.append(describe_left_out(where, part))
        parts += (part,)
    if not has_text:
        raise invalid("message.parts", "message.parts: at least one part must hold text")
    return Send(
        message=Message(message.message_id, Role.USER, parts),
        question=question_of(parts, "\n"),
        needs=needs_of(files) if files else (),
        leaves_out=True,
        metadata={LEFT_OUT: left_out} if left_out else UNSET,
        approves=message.task_id if type(message.task_id) is str else "",
        context_id=message.message_id,
        waits=not is_stream,
    )


read_stream = partial(read_send, is_stream=True)


StateName = Literal["WORKING", "INPUT_REQUIRED", "AUTH_REQUIRED", "COMPLETED", "FAILED", "CANCELED", "REJECTED"]
RoleName = Literal["ROLE_USER", "ROLE_AGENT"]

STATE_NAMES: Mapping[State, StateName] = {
    State.SUBMITTED: "WORKING",  # there is no state before it
    **{State[name]: name for name in get_args(StateName)},
}
ROLE_NAMES: Mapping[Role, RoleName] = {Role.USER: "ROLE_USER", Role.AGENT: "ROLE_AGENT"}


class TaskText(Struct, frozen=True):
    """A part of a message; `data` of one that asks for an approval."""

    text: str | UnsetType = UNSET
    data: Any = UNSET


class TaskMessage(Struct, frozen=True, rename="camel"):
    """A message of a task."""

    message_id: str
    role: RoleName
    parts: list[TaskText]


class TaskStatus(Struct, frozen=True):
    """The state of a task; `message` says why the task failed, or what the agent asks back."""

    state: StateName
    timestamp: Time
    message: TaskMessage | UnsetType = UNSET


class Task(Struct, frozen=True, rename="camel"):
    """A question and what became of it; `contextId` repeats the question's messageId.

    `metadata`: under `usage` what the turn used, where its agent reports it; under `leftOut` a line for each part
    of the message and of artifacts that this dialect does not show.
    """

    id: str
    context_id: str
    status: TaskStatus
    history: list[TaskMessage] | UnsetType = UNSET
    metadata: Json | UnsetType = UNSET


class StreamEvent(Struct, frozen=True):
    """One event of a stream: the task as it began, a piece of its reply or a note on the way, or its end."""

    task: Task


def render_task(task: record.Task, asked: object = None) -> Task:
    """A Task, always with its whole history. Neither that nor anything else depends on what was `asked`."""
    said: TaskMessage | UnsetType = UNSET
    history = [*map(_show_message, task.history)]
    if task.state is State.COMPLETED:
        text = task.reply_text
        if task.message is not None and text_in(task.message.parts) not in ("", text):
            history.append(_show_message(task.message))
        history += (TaskMessage(task.message_id, "ROLE_AGENT", [TaskText(text)]),)
    elif task.message is not None:
        said = _show_message(task.message, has_data=bool(task.approvals))
        if task.is_interrupted:
            history.append(_show_message(task.message))
    left_out = task.metadata.get(LEFT_OUT) if type(task.metadata) is dict else None
    left_out = [*left_out] if type(left_out) is list else []
    for artifact, part in task.besides_reply:
        left_out.append(describe_left_out(f"artifact {artifact.id}", part))
    metadata: Json | UnsetType = {LEFT_OUT: left_out} if left_out else UNSET
    if task.usage is not None:
        metadata = metadata_with_usage(metadata, task.usage)
    status = TaskStatus(STATE_NAMES[task.state], task.updated_at, said)
    return Task(task.id, task.context_id, status, history, metadata)


def render_opening(task: record.Task, request: Request) -> Sequence[StreamEvent]:
    """The task as it is."""
    return [StreamEvent(render_task(task))]


def render_event(task: record.Task, event: TaskEvent, *, is_last: bool) -> Sequence[StreamEvent]:
    """A chunk as a WORKING frame, the end as the whole task, notes as WORKING frames."""
    if isinstance(event, ArtifactEvent):
        is_chunk = event.artifact.id == task.reply_id and not event.last_chunk
        text = text_in(event.artifact.parts)
        if event.lead is not None:
            text = plain_text_in(event.artifact.parts)
            is_chunk, text = bool(text), event.lead + text
        return [_chunk(task, text, task.message_id, event.at)] if is_chunk else []
    if is_last:
        return [StreamEvent(render_task(task))]
    return [_chunk(task, text_in(event.message.parts), event.message.id, event.at)] if event.message else []


def _show_message(message: record.Message, *, has_data: bool = False) -> TaskMessage:
    """A message. `has_data`: with its data, which this dialect shows of requests for approval alone."""
    parts: list[TaskText] = []
    for part in message.parts:
        if part.text is not UNSET:
            parts += (TaskText(part.text),)
    if has_data:
        parts += [TaskText(data=part.data) for part in message.parts if part.data is not UNSET]
    return TaskMessage(message.id, ROLE_NAMES[message.role], parts)


def _chunk(task: record.Task, text: str, message_id: str, at: str) -> StreamEvent:
    said = TaskMessage(message_id, "ROLE_AGENT", [TaskText(text)])
    return StreamEvent(Task(task.id, task.context_id, TaskStatus("WORKING", at, said)))


class RpcAnswer(TypedDict):
    """A task, also for a refusal, which is a FAILED one; or an error, for a broken request."""

    jsonrpc: Literal["2.0"]
    id: Id
    result: NotRequired[Task]
    error: NotRequired[RpcFault]


ASKED, NAMED = {"message": SAMPLE_MESSAGE}, {"id": SAMPLE_TASK_ID}
RATED = {**NAMED, **SAMPLE_RATING}
METHODS = by_name(
    Method("SendMessage", Operation.SEND, read_send, params=SendMessageParams, sample=ASKED),
    Method("SendStreamingMessage", Operation.STREAM, read_stream, params=SendMessageParams, sample=ASKED),
    Method("GetTask", Operation.GET, read_get, params=GetTaskParams, sample=NAMED),
    Method("RateTask", Operation.RATE, read_rate, params=RateParams, sample=RATED),
)
HUB = Dialect(
    name="hub",
    versions=frozenset({"", "0.3"}),
    has_slash=False,
    methods=METHODS,
    description=Description(
        title="The hub's own",
        about="For a few lines of curl or fetch: bare tasks, nothing to install. Each SendMessage is a task of its"
        " own, and contextId repeats its messageId.",
        family=partial(Family, "", title="the hub's own dialect"),
        answers=[RpcAnswer],
        events=[StreamEvent],
    ),
    has_envelope=False,
    render_task=render_task,
    render_answer=render_task,
    render_opening=render_opening,
    follow=renders_alike(render_event),
)
