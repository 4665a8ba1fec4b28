"""Tasks, messages, artifacts and events as A2A 0.3 writes them. No files, and nothing that `openclaw` names."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from a2a_bridge.dialects.reading import last
from a2a_bridge.dialects.v03.params import COMPAT
from a2a_bridge.requests import Request, Send
from a2a_bridge.tasks.pieces import reply_message
from a2a_bridge.tasks.record import (
    INTERRUPTED,
    REPLY,
    TERMINAL,
    Artifact,
    ArtifactEvent,
    Message,
    Role,
    State,
    StatusEvent,
    Task,
    TaskEvent,
    metadata_with_usage,
)
from agents.transcript.pieces import Json, Part
from kit.describe import Time

OUTPUT = "assistant-output-"
PRIVATE = "openclaw"
SAID_NOTHING = "The agent completed without a user-visible reply."
NOT_SHOWABLE = "The reply could not be represented in any output mode of A2A 0.3 here: it holds files only."


class OldPart(Struct, frozen=True):
    """Text, or data: an object."""

    kind: Literal["text", "data"]
    text: str | UnsetType = UNSET
    data: Json | UnsetType = UNSET
    metadata: Json | UnsetType = UNSET


class OldMessage(Struct, frozen=True, rename="camel", tag_field="kind", tag="message"):
    """What was said; a reply that is no task."""

    message_id: str
    role: Literal["user", "agent"]
    parts: list[OldPart]
    metadata: Json | UnsetType = UNSET
    extensions: Sequence[str] | UnsetType = UNSET
    reference_task_ids: Sequence[str] | UnsetType = UNSET
    context_id: str | UnsetType = UNSET
    task_id: str | UnsetType = UNSET


class OldStatus(Struct, frozen=True):
    """Where a task stands."""

    state: str
    timestamp: Time
    message: OldMessage | UnsetType = UNSET


class OldArtifact(Struct, frozen=True, rename="camel"):
    """What a task made, with its parts; a reply of the agent (`OldReply`) or another artifact (`OldMade`)."""

    artifact_id: str


class OldReply(OldArtifact, frozen=True, rename="camel"):
    """The text of an agent's reply."""

    name: str
    parts: list[OldPart]
    metadata: Json


class OldMade(OldArtifact, frozen=True, rename="camel"):
    """An artifact of the agent's own."""

    parts: list[OldPart]
    name: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    metadata: Json | UnsetType = UNSET
    extensions: Sequence[str] | UnsetType = UNSET


class OldTask(Struct, frozen=True, rename="camel", tag_field="kind", tag="task", kw_only=True):
    """A question and what became of it."""

    id: str
    context_id: str
    status: OldStatus
    artifacts: list[OldArtifact] | UnsetType = UNSET
    history: list[OldMessage]
    metadata: Json | UnsetType = UNSET


class OldStatusUpdate(Struct, frozen=True, rename="camel", tag_field="kind", tag="status-update"):
    """A task's state changed."""

    task_id: str
    context_id: str
    status: OldStatus
    final: bool
    metadata: Json | UnsetType = UNSET


class OldArtifactUpdate(Struct, frozen=True, rename="camel", tag_field="kind", tag="artifact-update"):
    """An artifact of a task is new, or with `append` grew; `lastChunk` closes it."""

    task_id: str
    context_id: str
    artifact: OldArtifact
    last_chunk: bool
    append: bool | UnsetType = UNSET


OldFrame = OldTask | OldStatusUpdate | OldArtifactUpdate


def render_task(task: Task, history_length: int | None, *, is_announced: bool = False) -> OldTask:
    """A Task. The message of its state is the last of its history, unless a status-update is about to add it."""
    status = _status_of(task)
    said = [render_message(task.context_id, one, task.id) for one in task.history]
    if status.message is not UNSET and not is_announced:
        said.append(status.message)
    artifacts = [_artifact(task, one) for one in task.artifacts if _has_shown(one.parts)]
    metadata = task.metadata if task.usage is None else metadata_with_usage(task.metadata, task.usage)
    return OldTask(
        id=task.id,
        context_id=task.context_id,
        status=status,
        artifacts=artifacts or UNSET,
        history=last(_once(said), history_length),
        metadata=_public(metadata),
    )


def render_answer(task: Task, request: Request) -> OldTask:
    """The task as a send shows it first."""
    return render_task(_begun(task), _length(request))


def render_opening(task: Task, request: Request) -> Sequence[OldFrame]:
    """A send's task as it was submitted, told again as an event; a follower's task as it is."""
    if not isinstance(request, Send):
        return [render_task(task, None)]
    begun = _begun(task)
    is_announced = not task.is_interrupted
    shown: list[OldFrame] = [render_task(begun, _length(request), is_announced=is_announced)]
    if is_announced:
        shown.append(_status_frame(begun))
    if task.is_open and task.state is not begun.state:
        shown.append(_status_frame(task))
    return shown


def render_event(task: Task, event: TaskEvent, *, is_last: bool) -> Sequence[OldFrame]:
    """The updates that an event is."""
    if isinstance(event, StatusEvent):
        return [*_reply_closed(task, event), _status_update(task, event)]
    return _artifact_updates(task, event)


def render_message(context_id: str, message: Message, task_id: str | UnsetType = UNSET) -> OldMessage:
    """A Message, of a task or of none."""
    return OldMessage(
        message.id,
        message.role.value,
        _parts(message.parts),
        _public(message.metadata),
        message.extensions or UNSET,
        message.reference_task_ids or UNSET,
        context_id,
        task_id,
    )


def is_of_files(task: Task) -> bool:
    """Whether a task completed with artifacts of which 0.3 gets to see nothing."""
    return (
        task.state is State.COMPLETED
        and task.message is None
        and bool(task.artifacts)
        and not any(_has_shown(one.parts) for one in task.artifacts)
    )


def media_types(task: Task) -> list[str]:
    """Of the files in its artifacts."""
    parts = [part for one in task.artifacts for part in one.parts if not _is_shown(part)]
    return sorted({part.media_type or "application/octet-stream" for part in parts})


def _length(request: Request) -> int | None:
    return request.history_length if isinstance(request, Send) else None


def _begun(task: Task) -> Task:
    """The task as a send shows it first: 0.3 begins each turn with `submitted`."""
    return replace(task, state=State.SUBMITTED, message=None) if task.is_open else task


def _status_of(task: Task) -> OldStatus:
    """What a task's state is, and what is said with it."""
    if task.state is not State.COMPLETED:
        return _status(task, task.state, task.updated_at, _words(task))
    if is_of_files(task):
        return _status(task, State.FAILED, task.updated_at, _own_words(task, NOT_SHOWABLE))
    return _status(task, State.COMPLETED, task.updated_at, _last_words(task))


def _status(task: Task, state: State, at: str, message: Message | None) -> OldStatus:
    said = UNSET if message is None else render_message(task.context_id, message, task.id)
    return OldStatus(state.value.replace("_", "-"), at, said)


def _status_update(task: Task, event: StatusEvent) -> OldStatusUpdate:
    """The update of an event; the end of a task says what the task says."""
    is_end = event.state in TERMINAL
    status = _status_of(task) if is_end else _status(task, event.state, event.at, event.message)
    metadata = UNSET if event.usage is None else metadata_with_usage(UNSET, event.usage)
    return OldStatusUpdate(task.id, task.context_id, status, is_end, metadata)


def _status_frame(task: Task) -> OldStatusUpdate:
    """A status update with the status of the first frame."""
    return OldStatusUpdate(task.id, task.context_id, _status_of(task), task.is_terminal)


def _artifact_updates(task: Task, event: ArtifactEvent) -> list[OldFrame]:
    """The artifact-update of an event, none if it is of files alone. A reply is closed with its turn."""
    if event.whole:
        return []
    artifact = event.artifact
    whole = task.artifact(artifact.id)
    if not _has_shown(artifact.parts or (whole.parts if whole else ())):
        return []
    append = event.append and not (whole is not None and _begins(whole, artifact))
    closes = event.last_chunk and not artifact.is_reply
    return [OldArtifactUpdate(task.id, task.context_id, _artifact(task, artifact), closes, append or UNSET)]


def _reply_closed(task: Task, event: StatusEvent) -> list[OldFrame]:
    """The artifact-update without parts that closes the reply of a turn, when the event is the turn's end."""
    ends = event.state is State.COMPLETED or (event.state in INTERRUPTED and not event.approvals)
    if task.reply is None or not ends:
        return []
    closed = _artifact(task, Artifact(task.reply_id, ()))
    return [OldArtifactUpdate(task.id, task.context_id, closed, last_chunk=True, append=True)]


def _artifact(task: Task, artifact: Artifact) -> OldArtifact:
    """An Artifact. The agent's replies have names of their own here, which its other artifacts cannot take.

    Artifacts of a remote server keep theirs: its answers hold no such reply.
    """
    if artifact.is_reply:
        return _reply(task, artifact)
    taken = artifact.id.startswith(OUTPUT) and not artifact.turn
    return OldMade(
        f"agent-{artifact.id}" if taken else artifact.id,
        _parts(artifact.parts),
        artifact.name or UNSET,
        artifact.description or UNSET,
        _public(artifact.metadata),
        artifact.extensions or UNSET,
    )


def _reply(task: Task, artifact: Artifact) -> OldReply:
    number = int(artifact.id.removeprefix(REPLY))
    sequence = next((i for i, one in enumerate(task.artifacts, 1) if one.id == artifact.id), number)
    return OldReply(
        f"{OUTPUT}{number:04d}",
        f"{OUTPUT}{number}",
        _parts(artifact.parts),
        {"sequence": sequence, "source": "assistant"},
    )


def _begins(whole: Artifact, piece: Artifact) -> bool:
    """Whether a piece was appended to files alone: then it is the first that 0.3 gets to see of the artifact."""
    shown = [part for part in whole.parts if _is_shown(part)]
    first = next((part for part in piece.parts if _is_shown(part)), None)
    is_after_files = shown[:1] != list(whole.parts[:1])
    return is_after_files and first == shown[0] and shown.count(first) == 1


def _has_shown(parts: Sequence[Part]) -> bool:
    return any(_is_shown(part) for part in parts)


def _is_shown(part: Part) -> bool:
    return part.text is not UNSET or part.data is not UNSET


def _parts(parts: Iterable[Part]) -> list[OldPart]:
    """Parts but files."""
    return [_part(part) for part in parts if _is_shown(part)]


def _part(part: Part) -> OldPart:
    """In 0.3 data is an object; another value is wrapped as the SDKs do it."""
    metadata = _public(part.metadata) if part.metadata else UNSET
    if part.text is not UNSET:
        return OldPart("text", text=part.text, metadata=metadata)
    if isinstance(part.data, dict):
        return OldPart("data", data=part.data, metadata=metadata)
    return OldPart("data", data={"value": part.data}, metadata=_public({**(part.metadata or {}), COMPAT: True}))


def _words(task: Task) -> Message | None:
    """What is said with a state that is not the end of a reply; of a canceled reply, what there is of it."""
    is_cut = task.state is State.CANCELED and task.reply_text
    return reply_message(task) if is_cut else task.message


def _last_words(task: Task) -> Message | None:
    """The agent's own words at the end, else the text of its reply."""
    if task.message is not None:
        return task.message
    if task.reply_text:
        return reply_message(task)
    return None if task.artifacts else _own_words(task, SAID_NOTHING)


def _own_words(task: Task, text: str) -> Message:
    return Message(f"{task.message_id}-end", Role.AGENT, (Part(text=text),))


def _once(history: Iterable[OldMessage]) -> list[OldMessage]:
    """A message that was sent again is in the history once."""
    found: dict[str, OldMessage] = {}
    for message in history:
        found.setdefault(message.message_id, message)
    return list(found.values())


def _public(metadata: Any) -> Any:
    if isinstance(metadata, dict):
        return {name: _public(value) for name, value in metadata.items() if name != PRIVATE}
    return [_public(one) for one in metadata] if isinstance(metadata, list) else metadata
