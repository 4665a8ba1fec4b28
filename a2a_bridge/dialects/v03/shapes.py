"""Tasks, messages, artifacts and events as A2A 0.3 writes them. No files, and nothing that `openclaw` names."""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from a2a_bridge.dialects.reading import last
from a2a_bridge.dialects.v03.params import COMPAT
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
)
from agents.transcript.pieces import Json, Part

OUTPUT = "assistant-output-"
PRIVATE = "openclaw"
SAID_NOTHING = "The agent completed without a user-visible reply."
NOT_SHOWABLE = "The reply could not be represented in any output mode of A2A 0.3 here: it holds files only."


def task_json(task: Task, history_length: int | None, *, is_announced: bool = False) -> Json:
    """A Task. The message of its state is the last of its history, unless a status-update is about to add it."""
    status = status_json(task)
    shown: Json = {"kind": "task", "id": task.id, "contextId": task.context_id, "status": status}
    if artifacts := [artifact_json(task, one) for one in task.artifacts if _has_shown(one.parts)]:
        shown["artifacts"] = artifacts
    said = [message_json(task, one) for one in task.history]
    if "message" in status and not is_announced:
        said.append(status["message"])
    shown["history"] = last(_once(said), history_length)
    if task.metadata is not UNSET:
        shown["metadata"] = _public(task.metadata)
    return shown


def as_begun(task: Task) -> Task:
    """The task as a send shows it first: 0.3 begins each turn with `submitted`."""
    return replace(task, state=State.SUBMITTED, message=None) if task.is_open else task


def status_json(task: Task) -> Json:
    """What a task's state is, and what is said with it."""
    if task.state is not State.COMPLETED:
        return _status(task, task.state, task.updated_at, _words(task))
    if is_of_files(task):
        return _status(task, State.FAILED, task.updated_at, _own_words(task, NOT_SHOWABLE))
    return _status(task, State.COMPLETED, task.updated_at, _last_words(task))


def status_update(task: Task, event: StatusEvent) -> Json:
    """A status-update event; the end of a task says what the task says."""
    is_end = event.state in TERMINAL
    status = status_json(task) if is_end else _status(task, event.state, event.at, event.message)
    return _status_event(task, status, is_final=is_end)


def status_frame(task: Task) -> Json:
    """The status-update that says what an opening task says."""
    return _status_event(task, status_json(task), is_final=task.is_terminal)


def artifact_updates(task: Task, event: ArtifactEvent) -> list[Json]:
    """The artifact-update of an event, none if it is of files alone. A reply is closed with its turn."""
    artifact = event.artifact
    whole = task.artifact(artifact.id)
    if not _has_shown(artifact.parts or (whole.parts if whole else ())):
        return []
    append = event.append and not (whole is not None and _begins(whole, artifact))
    closes = event.last_chunk and not artifact.is_reply
    return [_artifact_event(task, artifact, append=append, closes=closes)]


def reply_closed(task: Task, event: StatusEvent) -> list[Json]:
    """The artifact-update without parts that closes the reply of a turn, when the event is the turn's end."""
    ends = event.state is State.COMPLETED or (event.state in INTERRUPTED and not event.approvals)
    if task.reply is None or not ends:
        return []
    return [_artifact_event(task, Artifact(task.reply_id, ()), append=True, closes=True)]


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


def direct_json(context_id: str, message: Message) -> Json:
    """A reply that is no task."""
    return {**_message(message), "contextId": context_id}


def message_json(task: Task, message: Message) -> Json:
    """A Message of a task."""
    return {**_message(message), "contextId": task.context_id, "taskId": task.id}


def artifact_json(task: Task, artifact: Artifact) -> Json:
    """An Artifact. The agent's replies have names of their own here, which its other artifacts cannot take.

    Artifacts of a remote server keep theirs: its answers hold no such reply.
    """
    if artifact.is_reply:
        return _reply_json(task, artifact)
    taken = artifact.id.startswith(OUTPUT) and not artifact.turn
    shown: Json = {
        "artifactId": f"agent-{artifact.id}" if taken else artifact.id,
        "parts": parts_json(artifact.parts),
    }
    if artifact.name:
        shown["name"] = artifact.name
    if artifact.description:
        shown["description"] = artifact.description
    if artifact.metadata is not UNSET:
        shown["metadata"] = _public(artifact.metadata)
    if artifact.extensions:
        shown["extensions"] = artifact.extensions
    return shown


def parts_json(parts: Iterable[Part]) -> list[Json]:
    """Parts but files."""
    return [_part(part) for part in parts if _is_shown(part)]


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


def _part(part: Part) -> Json:
    shown: Json = {"kind": "text", "text": part.text} if part.text is not UNSET else _data(part.data)
    metadata = {**(part.metadata or {}), **shown.get("metadata", {})}
    return {**shown, "metadata": _public(metadata)} if metadata else shown


def _data(data: Any) -> Json:
    """In 0.3 data is an object; another value is wrapped as the SDKs do it."""
    if isinstance(data, dict):
        return {"kind": "data", "data": data}
    return {"kind": "data", "data": {"value": data}, "metadata": {COMPAT: True}}


def _message(message: Message) -> Json:
    shown: Json = {
        "kind": "message",
        "messageId": message.id,
        "role": message.role.value,
        "parts": parts_json(message.parts),
    }
    if message.metadata is not UNSET:
        shown["metadata"] = _public(message.metadata)
    if message.extensions:
        shown["extensions"] = message.extensions
    if message.reference_task_ids:
        shown["referenceTaskIds"] = message.reference_task_ids
    return shown


def _reply_json(task: Task, artifact: Artifact) -> Json:
    number = int(artifact.id.removeprefix(REPLY))
    sequence = next((i for i, one in enumerate(task.artifacts, 1) if one.id == artifact.id), number)
    return {
        "artifactId": f"{OUTPUT}{number:04d}",
        "name": f"{OUTPUT}{number}",
        "parts": parts_json(artifact.parts),
        "metadata": {"sequence": sequence, "source": "assistant"},
    }


def _artifact_event(task: Task, artifact: Artifact, *, append: bool, closes: bool) -> Json:
    shown: Json = {
        "kind": "artifact-update",
        "taskId": task.id,
        "contextId": task.context_id,
        "artifact": artifact_json(task, artifact),
        "lastChunk": closes,
    }
    if append:
        shown["append"] = True
    return shown


def _status_event(task: Task, status: Json, *, is_final: bool) -> Json:
    return {
        "kind": "status-update",
        "taskId": task.id,
        "contextId": task.context_id,
        "status": status,
        "final": is_final,
    }


def _status(task: Task, state: State, at: str, message: Message | None) -> Json:
    shown: Json = {"state": state.value.replace("_", "-"), "timestamp": at}
    if message is not None:
        shown["message"] = message_json(task, message)
    return shown


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


def _once(history: Iterable[Json]) -> list[Json]:
    """A message that was sent again is in the history once."""
    found: dict[str, Json] = {}
    for message in history:
        found.setdefault(message["messageId"], message)
    return list(found.values())


def _public(metadata: Any) -> Any:
    if isinstance(metadata, dict):
        return {name: _public(value) for name, value in metadata.items() if name != PRIVATE}
    return [_public(one) for one in metadata] if isinstance(metadata, list) else metadata
