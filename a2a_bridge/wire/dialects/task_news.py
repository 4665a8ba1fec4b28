"""The dialects of MCP and of chat completions: surfaces that show tasks themselves.

The results of this dialect are the hub's own tasks. See `a2a_bridge.wire.dialects.dialect`.
"""

from collections.abc import Sequence
from dataclasses import replace

from msgspec import Struct

from a2a_bridge.wire.dialects.dialect import Dialect, keep_error, renders_alike
from a2a_bridge.wire.dialects.v1 import V1
from a2a_bridge.wire.task import ArtifactEvent, Task, TaskEvent
from agents.models.choices import Surface
from agents.transcript.pieces import plain_text_in, text_in


class TaskNews(Struct, frozen=True):
    """A frame of a stream: a task as it is by now, and what its agent sent with the event that made it so.

    `text`: added to its reply; `note`: the text of a status message while it works.
    """

    task: Task
    text: str = ""
    note: str = ""


def make_task_dialect(surface: Surface) -> Dialect:
    """The dialect of a surface.

    The process itself makes the requests of this dialect, so it has no methods and no wire.
    """
    return replace(
        V1,
        name=surface.value,
        surface=surface,
        versions=frozenset(),
        headers=(),
        bindings=(),
        methods={},
        replays=False,
        render_task=lambda task, history_length: task,
        render_answer=lambda task, request: task,
        render_opening=lambda task, request: [TaskNews(task, text=task.reply_text)],
        follow=renders_alike(_render_event),
        error=keep_error,
    )


def _render_event(task: Task, event: TaskEvent, *, is_last: bool) -> Sequence[TaskNews]:
    if not isinstance(event, ArtifactEvent):
        note = text_in(event.message.parts) if event.message and not is_last else ""
        return [TaskNews(task, note=note)]
    if event.lead is not None:
        return [TaskNews(task, text=event.lead + plain_text_in(event.artifact.parts))]
    is_reply = event.artifact.id == task.reply_id and (event.append or not event.last_chunk)
    return [TaskNews(task, text=text_in(event.artifact.parts) if is_reply else "")]
