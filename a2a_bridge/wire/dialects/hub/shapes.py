"""Tasks and frames as the hub's own dialect writes them: bare states, texts only."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from msgspec import UNSET, Struct, UnsetType

from a2a_bridge.wire import task as record
from a2a_bridge.wire.requests import Request
from a2a_bridge.wire.task import ArtifactEvent, Role, State, TaskEvent, metadata_with_usage, text_in
from agents.transcript.pieces import LEFT_OUT, Json, describe_left_out, plain_text_in
from kit.describe import Time

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
    """Where a task stands; `message` says why it failed, or what the agent asks back."""

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


def render_task(task: record.Task, history_length: int | None) -> Task:
    """A Task, always with its whole history."""
    said: TaskMessage | UnsetType = UNSET
    history = [_message(message) for message in task.history]
    if task.state is State.COMPLETED:
        text = task.reply_text
        if task.message is not None and text_in(task.message.parts) not in ("", text):
            history.append(_message(task.message))
        history.append(TaskMessage(task.message_id, "ROLE_AGENT", [TaskText(text)]))
    elif task.message is not None:
        said = _question(task.message) if task.approvals else _message(task.message)
    if task.is_interrupted and task.message is not None:
        history.append(_message(task.message))
    status = TaskStatus(STATE_NAMES[task.state], task.updated_at, said)
    return Task(task.id, task.context_id, status, history, _metadata(task))


def _metadata(task: record.Task) -> Json | UnsetType:
    """The usage of its last turn, and the names of the parts that this dialect does not show."""
    of_message = task.metadata.get(LEFT_OUT, []) if isinstance(task.metadata, dict) else []
    left_out = [describe_left_out(f"artifact {one.id}", part) for one, part in task.besides_reply]
    if isinstance(of_message, list):
        left_out = [*of_message, *left_out]
    metadata: Json | UnsetType = {LEFT_OUT: left_out} if left_out else UNSET
    return metadata if task.usage is None else metadata_with_usage(metadata, task.usage)


def render_answer(task: record.Task, request: Request) -> Task:
    """The answer to a message is its task."""
    return render_task(task, None)


def render_opening(task: record.Task, request: Request) -> Sequence[StreamEvent]:
    """The task as it is."""
    return [StreamEvent(render_task(task, None))]


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
        return [StreamEvent(render_task(task, None))]
    return [_chunk(task, text_in(event.message.parts), event.message.id, event.at)] if event.message else []


def _message(message: record.Message) -> TaskMessage:
    parts = [TaskText(part.text) for part in message.parts if isinstance(part.text, str)]
    return TaskMessage(message.id, ROLE_NAMES[message.role], parts)


def _question(message: record.Message) -> TaskMessage:
    """A message with its data, which this dialect shows of requests for approval alone."""
    shown = _message(message)
    data = [TaskText(data=part.data) for part in message.parts if part.data is not UNSET]
    return TaskMessage(shown.message_id, shown.role, [*shown.parts, *data])


def _chunk(task: record.Task, text: str, message_id: str, at: str) -> StreamEvent:
    said = TaskMessage(message_id, "ROLE_AGENT", [TaskText(text)])
    return StreamEvent(Task(task.id, task.context_id, TaskStatus("WORKING", at, said)))
