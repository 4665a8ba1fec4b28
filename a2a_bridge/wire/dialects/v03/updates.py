"""The events of one stream as the updates of A2A 0.3."""

from collections.abc import Sequence

from msgspec import UNSET
from msgspec.structs import replace

from a2a_bridge.wire.dialects.v03.shapes import (
    OldArtifactUpdate,
    OldFrame,
    OldStatusUpdate,
    public,
    render_artifact,
    render_status,
    status_of,
)
from a2a_bridge.wire.task import (
    INTERRUPTED,
    TERMINAL,
    Artifact,
    ArtifactEvent,
    State,
    StatusEvent,
    Task,
    TaskEvent,
)


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
    return OldStatusUpdate(task.id, task.context_id, status, is_last, public(event.shown_metadata))
