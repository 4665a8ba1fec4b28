"""Tasks, messages, artifacts and events as A2A 1.0 writes them. Absent members are left out, never null."""

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from a2a_bridge.wire import task as record
from a2a_bridge.wire.dialects.reading import last
from a2a_bridge.wire.requests import GetTask, ListTasks, PushTarget, Request, Send
from a2a_bridge.wire.task import ArtifactEvent, Role, State, StatusEvent, TaskEvent, metadata_with_usage
from a2a_bridge.wire.task import TaskPage as FoundPage
from agents.transcript.pieces import Json, Part
from kit.describe import Time

StateName = Literal[
    "TASK_STATE_SUBMITTED",
    "TASK_STATE_WORKING",
    "TASK_STATE_INPUT_REQUIRED",
    "TASK_STATE_AUTH_REQUIRED",
    "TASK_STATE_COMPLETED",
    "TASK_STATE_FAILED",
    "TASK_STATE_CANCELED",
    "TASK_STATE_REJECTED",
]
RoleName = Literal["ROLE_USER", "ROLE_AGENT"]

STATE_NAMES: Mapping[State, StateName] = {
    State[name.removeprefix("TASK_STATE_")]: name for name in get_args(StateName)
}
ROLE_NAMES: Mapping[Role, RoleName] = {Role.USER: "ROLE_USER", Role.AGENT: "ROLE_AGENT"}


class Message(Struct, frozen=True, rename="camel"):
    """A message; `taskId` is absent of a message that belongs to no task."""

    message_id: str
    context_id: str
    role: RoleName
    parts: Sequence[Part]
    metadata: Json | UnsetType = UNSET
    extensions: Sequence[str] | UnsetType = UNSET
    reference_task_ids: Sequence[str] | UnsetType = UNSET
    task_id: str | UnsetType = UNSET


class Status(Struct, frozen=True):
    """The state of a task; `message` says what the agent asks for, or why the task failed."""

    state: StateName
    timestamp: Time
    message: Message | UnsetType = UNSET


class Artifact(Struct, frozen=True, rename="camel"):
    """An artifact of a task; text that comes without an artifact is `reply-n` in the n-th turn."""

    artifact_id: str
    parts: Sequence[Part]
    name: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    metadata: Json | UnsetType = UNSET
    extensions: Sequence[str] | UnsetType = UNSET


class Task(Struct, frozen=True, rename="camel"):
    """A question and what became of it."""

    id: str
    context_id: str
    status: Status
    artifacts: list[Artifact] | UnsetType = UNSET
    history: list[Message] | UnsetType = UNSET
    metadata: Json | UnsetType = UNSET


class Sent(Struct, frozen=True):
    """The answer to a message: its task, or a message where no task came of it."""

    task: Task | UnsetType = UNSET
    message: Message | UnsetType = UNSET


class TaskPage(Struct, frozen=True, rename="camel"):
    """Tasks, those that changed last first; `nextPageToken` is empty on the last page."""

    tasks: list[Task]
    next_page_token: str
    page_size: int
    total_size: int


class StatusUpdate(Struct, frozen=True, rename="camel"):
    """A task's state changed, or the agent said how far it is. `metadata`: at the end of a turn, what it used."""

    task_id: str
    context_id: str
    status: Status
    metadata: Json | UnsetType = UNSET


class ArtifactUpdate(Struct, frozen=True, rename="camel"):
    """An artifact is new, or with `append` grew; `lastChunk` closes it."""

    task_id: str
    context_id: str
    artifact: Artifact
    append: bool | UnsetType = UNSET
    last_chunk: bool | UnsetType = UNSET


class StreamEvent(Struct, frozen=True, rename="camel"):
    """One event of a stream: exactly one of these. A message is the only event of its stream."""

    task: Task | UnsetType = UNSET
    status_update: StatusUpdate | UnsetType = UNSET
    artifact_update: ArtifactUpdate | UnsetType = UNSET
    message: Message | UnsetType = UNSET


class PushAuthentication(Struct, frozen=True):
    """The scheme and the credentials of the Authorization header of a push."""

    scheme: str
    credentials: str | UnsetType = UNSET


class KeptPush(Struct, frozen=True, rename="camel"):
    """An address to which the changes of a task are pushed."""

    task_id: str
    id: str
    url: str
    token: str | UnsetType = UNSET
    authentication: PushAuthentication | UnsetType = UNSET


class PushPage(Struct, frozen=True, rename="camel"):
    """Push addresses of one task."""

    configs: list[KeptPush]
    next_page_token: str


def render_task(task: record.Task, history_length: int | None, *, with_artifacts: bool = True) -> Task:
    """A Task."""
    artifacts = [render_artifact(one) for one in task.artifacts] if with_artifacts else []
    history = last([_message(task.context_id, one, task.id) for one in task.history], history_length)
    said = UNSET if task.message is None else _message(task.context_id, task.message, task.id)
    status = Status(STATE_NAMES[task.state], task.updated_at, said)
    metadata = metadata_with_usage(task.metadata, task.usage)
    return Task(task.id, task.context_id, status, artifacts or UNSET, history or UNSET, metadata)


def render_answer(task: record.Task, request: Request) -> Sent:
    """The task that a message began, or goes on with."""
    return Sent(task=render_task(task, request.history_length if isinstance(request, Send) else None))


def render_message(context_id: str, message: record.Message) -> Sent:
    """A message that belongs to no task."""
    return Sent(message=_message(context_id, message))


def render_opening(task: record.Task, request: Request) -> Sequence[StreamEvent]:
    """The task as it is."""
    length = request.history_length if isinstance(request, Send | GetTask) else None
    return [StreamEvent(task=render_task(task, length))]


def render_event(task: record.Task, event: TaskEvent, *, is_last: bool) -> Sequence[StreamEvent]:
    """The update that an event is."""
    if isinstance(event, StatusEvent):
        return [StreamEvent(status_update=render_status_update(task, event))]
    if event.again is not None:
        return [StreamEvent(artifact_update=render_whole(task, event.again))]
    if event.whole:
        return _closed(task, event)
    if event.closes_only:  # its part would be made up, and kept by a client that adds up the events
        return []
    artifact, append = render_artifact(event.artifact), event.append or UNSET
    update = ArtifactUpdate(task.id, task.context_id, artifact, append, event.last_chunk or UNSET)
    return [StreamEvent(artifact_update=update)]


def _closed(task: record.Task, event: ArtifactEvent) -> list[StreamEvent]:
    """An artifact that the end of a turn makes whole, in place of its pieces (docs/adr/0167).

    The artifact has only the parts of that time: a later turn may have added more, which later events show. A
    remote server closes its artifacts itself, or leaves them open.
    """
    whole = task.artifact(event.artifact.id)
    if whole is None or whole.turn:
        return []
    return [StreamEvent(artifact_update=render_whole(task, replace(whole, parts=whole.parts[: event.whole])))]


def render_whole(task: record.Task, artifact: record.Artifact) -> ArtifactUpdate:
    """An artifact of which nothing more will come."""
    return ArtifactUpdate(task.id, task.context_id, render_artifact(artifact), last_chunk=True)


def render_status_update(task: record.Task, event: StatusEvent) -> StatusUpdate:
    """A TaskStatusUpdateEvent."""
    said = UNSET if event.message is None else _message(task.context_id, event.message, task.id)
    metadata = metadata_with_usage(event.metadata, event.usage)
    return StatusUpdate(task.id, task.context_id, Status(STATE_NAMES[event.state], event.at, said), metadata)


def render_artifact(artifact: record.Artifact) -> Artifact:
    """An Artifact, whole or a piece of one."""
    return Artifact(
        artifact.id,
        artifact.parts,
        artifact.name or UNSET,
        artifact.description or UNSET,
        artifact.metadata,
        artifact.extensions or UNSET,
    )


def render_page(page: FoundPage, request: ListTasks, token: str) -> TaskPage:
    """A ListTasksResponse."""
    tasks = [
        render_task(task, request.history_length, with_artifacts=request.with_artifacts) for task in page.tasks
    ]
    return TaskPage(tasks, token, request.page_size, page.total)


def render_push(task_id: str, target: PushTarget) -> KeptPush:
    """A TaskPushNotificationConfig."""
    authentication: PushAuthentication | UnsetType = UNSET
    if target.scheme:
        authentication = PushAuthentication(target.scheme, target.credentials or UNSET)
    return KeptPush(task_id, target.config_id, target.url, target.token or UNSET, authentication)


def render_push_page(task_id: str, targets: Sequence[PushTarget], token: str) -> PushPage:
    """A ListTaskPushNotificationConfigsResponse."""
    return PushPage([render_push(task_id, one) for one in targets], token)


def _message(context_id: str, message: record.Message, task_id: str | UnsetType = UNSET) -> Message:
    return Message(
        message.id,
        context_id,
        ROLE_NAMES[message.role],
        message.parts,
        message.metadata,
        message.extensions or UNSET,
        message.reference_task_ids or UNSET,
        task_id,
    )
