"""Tasks, messages, artifacts and events as A2A 1.0 writes them. Absent members are left out, never null."""

from msgspec import UNSET

from a2a_bridge.dialects.reading import last
from a2a_bridge.requests import PushTarget
from a2a_bridge.tasks.record import Artifact, ArtifactEvent, Message, Role, State, StatusEvent, Task
from agents.transcript.pieces import Json, Part

STATE_NAMES = {state: f"TASK_STATE_{state.name}" for state in State}
ROLE_NAMES = {role: f"ROLE_{role.name}" for role in Role}


def task_json(task: Task, history_length: int | None, *, with_artifacts: bool = True) -> Json:
    """A Task."""
    shown: Json = {"id": task.id, "contextId": task.context_id, "status": _status(task)}
    if with_artifacts and task.artifacts:
        shown["artifacts"] = [artifact_json(one) for one in task.artifacts]
    if history := last([message_json(task, one) for one in task.history], history_length):
        shown["history"] = history
    if task.metadata is not UNSET:
        shown["metadata"] = task.metadata
    return shown


def message_json(task: Task, message: Message) -> Json:
    """A Message of a task."""
    return {**direct_json(task.context_id, message), "taskId": task.id}


def direct_json(context_id: str, message: Message) -> Json:
    """A Message that belongs to no task."""
    shown: Json = {
        "messageId": message.id,
        "contextId": context_id,
        "role": ROLE_NAMES[message.role],
        "parts": [part_json(part) for part in message.parts],
    }
    if message.metadata is not UNSET:
        shown["metadata"] = message.metadata
    if message.extensions:
        shown["extensions"] = message.extensions
    if message.reference_task_ids:
        shown["referenceTaskIds"] = message.reference_task_ids
    return shown


def artifact_json(artifact: Artifact) -> Json:
    """An Artifact, whole or a piece of one."""
    shown: Json = {"artifactId": artifact.id, "parts": [part_json(part) for part in artifact.parts]}
    if artifact.name:
        shown["name"] = artifact.name
    if artifact.description:
        shown["description"] = artifact.description
    if artifact.metadata is not UNSET:
        shown["metadata"] = artifact.metadata
    if artifact.extensions:
        shown["extensions"] = artifact.extensions
    return shown


def part_json(part: Part) -> Json:
    """A Part."""
    shown: Json = {}
    for name, value in (("text", part.text), ("raw", part.raw), ("url", part.url), ("data", part.data)):
        if value is not UNSET:
            shown[name] = value
    if part.media_type:
        shown["mediaType"] = part.media_type
    if part.filename:
        shown["filename"] = part.filename
    if part.metadata is not UNSET:
        shown["metadata"] = part.metadata
    return shown


def status_update(task: Task, event: StatusEvent) -> Json:
    """A TaskStatusUpdateEvent."""
    return {"taskId": task.id, "contextId": task.context_id, "status": _status_of(task, event)}


def artifact_update(task: Task, event: ArtifactEvent) -> Json:
    """A TaskArtifactUpdateEvent."""
    shown: Json = {"taskId": task.id, "contextId": task.context_id, "artifact": artifact_json(event.artifact)}
    if event.append:
        shown["append"] = True
    if event.last_chunk:
        shown["lastChunk"] = True
    return shown


def push_json(task_id: str, target: PushTarget) -> Json:
    """A TaskPushNotificationConfig."""
    shown: Json = {"taskId": task_id, "id": target.config_id, "url": target.url}
    if target.token:
        shown["token"] = target.token
    if target.scheme:
        shown["authentication"] = {"scheme": target.scheme}
        if target.credentials:
            shown["authentication"]["credentials"] = target.credentials
    return shown


def _status(task: Task) -> Json:
    shown: Json = {"state": STATE_NAMES[task.state], "timestamp": task.updated_at}
    if task.message is not None:
        shown["message"] = message_json(task, task.message)
    return shown


def _status_of(task: Task, event: StatusEvent) -> Json:
    shown: Json = {"state": STATE_NAMES[event.state], "timestamp": event.at}
    if event.message is not None:
        shown["message"] = message_json(task, event.message)
    return shown
