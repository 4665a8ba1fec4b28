"""Tasks, messages, artifacts and the updates of a stream as A2A 0.3 writes them, without what `openclaw` names."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from a2a_bridge.wire.dialects.reading import last
from a2a_bridge.wire.dialects.v03.params import COMPAT
from a2a_bridge.wire.requests import Request, Send
from a2a_bridge.wire.task import (
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


class OldFile(Struct, frozen=True, rename="camel"):
    """A file: its content as base64, or where it is."""

    bytes: str | UnsetType = UNSET
    uri: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET
    name: str | UnsetType = UNSET


class OldPart(Struct, frozen=True):
    """Text, a file, or data: an object."""

    kind: Literal["text", "file", "data"]
    text: str | UnsetType = UNSET
    file: OldFile | UnsetType = UNSET
    data: Json | UnsetType = UNSET
    metadata: Json | UnsetType = UNSET


class OldMessage(Struct, frozen=True, rename="camel", tag_field="kind", tag="message"):
    """A message, or a reply that is no task."""

    message_id: str
    role: Literal["user", "agent"]
    parts: list[OldPart]
    metadata: Json | UnsetType = UNSET
    extensions: Sequence[str] | UnsetType = UNSET
    reference_task_ids: Sequence[str] | UnsetType = UNSET
    context_id: str | UnsetType = UNSET
    task_id: str | UnsetType = UNSET


class OldStatus(Struct, frozen=True):
    """The state of a task, with its time and message."""

    state: str
    timestamp: Time
    message: OldMessage | UnsetType = UNSET


class OldArtifact(Struct, frozen=True, rename="camel"):
    """An artifact of a task, with its parts; a reply of the agent (`OldReply`) or another artifact (`OldMade`)."""

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
    status = status_of(task)
    said = [render_message(task.context_id, one, task.id) for one in task.history]
    if status.message is not UNSET and not is_announced:
        said.append(status.message)
    artifacts = [render_artifact(task, one) for one in task.artifacts]
    return OldTask(
        id=task.id,
        context_id=task.context_id,
        status=status,
        artifacts=artifacts or UNSET,
        history=last(_once(said), history_length),
        metadata=public(metadata_with_usage(task.metadata, task.usage)),
    )


def render_answer(task: Task, request: Request) -> OldTask:
    """The task as a send shows it first."""
    return render_task(_begun(task), _length(request))


def render_opening(task: Task, request: Request) -> Sequence[OldFrame]:
    """For a send, its task as `submitted`, the same as an event, and its state if that is another; else the task.

    A refused task is shown as `submitted` first, too: some clients stop at a first Task that has ended.
    """
    if not isinstance(request, Send):
        return [render_task(task, None)]
    if task.is_interrupted:
        return [render_task(task, _length(request))]
    begun = _submitted(task)
    shown: list[OldFrame] = [render_task(begun, _length(request), is_announced=True), _status_frame(begun)]
    if task.state is not begun.state:
        shown.append(_status_frame(task))
    return shown


def render_artifact(task: Task, artifact: Artifact) -> OldArtifact:
    """An Artifact. The agent's replies have names of their own here, which its other artifacts cannot take.

    Artifacts of a remote server keep theirs: its answers hold no such reply.
    """
    if artifact.is_reply:
        return _reply(task, artifact)
    taken = artifact.id.startswith(OUTPUT) and not artifact.turn
    return OldMade(
        f"agent-{artifact.id}" if taken else artifact.id,
        render_parts(artifact.parts),
        artifact.name or UNSET,
        artifact.description or UNSET,
        public(artifact.metadata),
        artifact.extensions or UNSET,
    )


def status_of(task: Task) -> OldStatus:
    """The state of a task, and the message with it."""
    return render_status(task, task.state, task.updated_at, _words(task))


def render_status(task: Task, state: State, at: str, message: Message | None) -> OldStatus:
    """A status of a task."""
    said = UNSET if message is None else render_message(task.context_id, message, task.id)
    return OldStatus(state.value.replace("_", "-"), at, said)


def render_message(context_id: str, message: Message, task_id: str | UnsetType = UNSET) -> OldMessage:
    """A Message, of a task or of none."""
    return OldMessage(
        message.id,
        message.role.value,
        render_parts(message.parts),
        public(message.metadata),
        message.extensions or UNSET,
        message.reference_task_ids or UNSET,
        context_id,
        task_id,
    )


def _length(request: Request) -> int | None:
    return request.history_length if isinstance(request, Send) else None


def _begun(task: Task) -> Task:
    """The task as a send shows it first: 0.3 begins each turn with `submitted`."""
    return _submitted(task) if task.is_open else task


def _submitted(task: Task) -> Task:
    return replace(task, state=State.SUBMITTED, message=None)


def _status_frame(task: Task) -> OldStatusUpdate:
    """A status update with the status of a task."""
    return OldStatusUpdate(task.id, task.context_id, status_of(task), task.is_terminal)


def _reply(task: Task, artifact: Artifact) -> OldReply:
    number = int(artifact.id.removeprefix(REPLY))
    sequence = next((i for i, one in enumerate(task.artifacts, 1) if one.id == artifact.id), number)
    return OldReply(
        f"{OUTPUT}{number:04d}",
        f"{OUTPUT}{number}",
        render_parts(artifact.parts),
        {"sequence": sequence, "source": "assistant"},
    )


def render_parts(parts: Iterable[Part]) -> list[OldPart]:
    """The parts of a message or an artifact."""
    return [_part(part) for part in parts]


def _part(part: Part) -> OldPart:
    """A part. A data part of 0.3 is an object, so another value is wrapped as the SDKs do it."""
    metadata = public(part.metadata) if part.metadata else UNSET
    if part.text is not UNSET:
        return OldPart("text", text=part.text, metadata=metadata)
    if part.data is UNSET:
        file = OldFile(part.raw, part.url, part.media_type or UNSET, part.filename or UNSET)
        return OldPart("file", file=file, metadata=metadata)
    if isinstance(part.data, dict):
        return OldPart("data", data=part.data, metadata=metadata)
    return OldPart("data", data={"value": part.data}, metadata=public({**(part.metadata or {}), COMPAT: True}))


def _words(task: Task) -> Message | None:
    """The message of a state. The text of a reply is in its artifact alone: clients join all texts of a task."""
    if task.state is State.COMPLETED and task.message is None and not task.artifacts:
        return Message(f"{task.message_id}-end", Role.AGENT, (Part(text=SAID_NOTHING),))
    return task.message


def _once(history: Iterable[OldMessage]) -> list[OldMessage]:
    """A message that was sent again is in the history once."""
    found: dict[str, OldMessage] = {}
    for message in history:
        found.setdefault(message.message_id, message)
    return list(found.values())


def public(metadata: Any) -> Any:
    """Metadata without the members that are private to OpenClaw."""
    if isinstance(metadata, dict):
        return {name: public(value) for name, value in metadata.items() if name != PRIVATE}
    return [public(one) for one in metadata] if isinstance(metadata, list) else metadata


class StreamedTask:
    """A task as one stream has shown it. A stream may be behind its task: what it shows depends on what it showed.

    The updates, added up by the official SDKs, equal the task. The Python SDK ignores the metadata of appended
    parts, the JavaScript SDK adds it: such an artifact is shown anew, whole, before the end of the stream. Names
    of appended parts are left out: the one ignores them, too, the other takes them over.
    """

    def __init__(self, task: Task) -> None:
        self._open_reply = task.reply_id if task.reply is not None and task.is_running else ""
        self._to_show_anew: dict[str, None] = {}

    def render_event(self, task: Task, event: TaskEvent, *, is_last: bool) -> Sequence[OldFrame]:
        """The updates that an event is."""
        if isinstance(event, ArtifactEvent):
            return [] if event.whole else [self._artifact_update(task, event)]
        anew = self._shown_anew(task) if is_last else []
        return [
            *self._reply_closed(task, event),
            *anew,
            status_update(task, event, is_last=event.state in TERMINAL),
        ]

    def _artifact_update(self, task: Task, event: ArtifactEvent) -> OldArtifactUpdate:
        """A reply is closed with its turn."""
        artifact = event.artifact
        if artifact.is_reply:
            self._open_reply = artifact.id
        elif not event.append:
            self._to_show_anew.pop(artifact.id, None)
        else:
            artifact = replace(artifact, name="", description="", extensions=())
            if artifact.metadata is not UNSET:
                self._to_show_anew[artifact.id] = None
        closes = event.last_chunk and not artifact.is_reply
        return _update(task, artifact, is_last=closes, appends=event.append)

    def _reply_closed(self, task: Task, event: StatusEvent) -> list[OldFrame]:
        """The artifact-update without parts that closes the reply of a turn, when the event is the turn's end."""
        ends = event.state is State.COMPLETED or (event.state in INTERRUPTED and not event.approvals)
        if not ends or not self._open_reply:
            return []
        closer = Artifact(self._open_reply, ())
        self._open_reply = ""
        return [_update(task, closer, is_last=True, appends=True)]

    def _shown_anew(self, task: Task) -> list[OldFrame]:
        whole = [task.artifact(one) for one in self._to_show_anew]
        self._to_show_anew.clear()
        return [_update(task, one, is_last=True, appends=False) for one in whole if one is not None]


def _update(task: Task, artifact: Artifact, *, is_last: bool, appends: bool) -> OldArtifactUpdate:
    shown = render_artifact(task, artifact)
    return OldArtifactUpdate(task.id, task.context_id, shown, is_last, appends or UNSET)


def status_update(task: Task, event: StatusEvent, *, is_last: bool) -> OldStatusUpdate:
    """The update of an event; the end of a task says what the task says. `is_last`: the stream ends with it."""
    is_end = event.state in TERMINAL
    status = status_of(task) if is_end else render_status(task, event.state, event.at, event.message)
    metadata = public(metadata_with_usage(event.metadata, event.usage))
    return OldStatusUpdate(task.id, task.context_id, status, is_last, metadata)
