"""The push notifications of a task as SQL, for the transaction that settles its turn or one of its own.

Every status, and each artifact once it is whole, not its chunks.
"""

from collections.abc import Sequence

from django.db import connection
from msgspec import to_builtins

from a2a_bridge.wire.dialects.v1.shapes import StreamEvent, render_status_update, render_whole
from a2a_bridge.wire.task import StatusEvent, Task, TaskEvent
from agents.transcript.pieces import Json
from kit import sql
from webhooks.service.outbox import as_json

_END = """
UPDATE a2a_bridge_pushconfig SET ended_seq = %s, touched_at = {now} WHERE task_id = %s AND ended_seq IS NULL
"""
_QUEUE = """
INSERT INTO a2a_bridge_push
    (config_id, seq, payload, status, attempts, queued_at, next_attempt_at, last_error, traceparent)
SELECT c.id, v.column1, v.column2, 'pending', 0, {now}, {now}, '', %s
FROM a2a_bridge_pushconfig c, (VALUES {rows}) AS v
WHERE c.task_id = %s AND {which} {lock}
ON CONFLICT (config_id, seq) DO NOTHING
"""
_RETURN = "UPDATE a2a_bridge_pushconfig SET chat_id = %s WHERE task_id = %s AND ended_seq IS NULL"
# A delete under way is not waited for: whom it takes away need not be told.
_LOCK = {"sqlite": "", "postgresql": "FOR KEY SHARE OF c SKIP LOCKED"}


def queue_pushes(task: Task, events: Sequence[TaskEvent], traceparent: str = "") -> list[sql.Query]:
    """Queue the notifications of these events to every address of the task. `task`: its state after the events.

    A task ends once, by its process or by `a2a_bridge.service.pushes.missed_ends`. Again changes nothing.
    """
    told = [(event.seq, payload) for event in events if (payload := payload_of(task, event))]
    if not told:
        return []
    now = sql.NOW[connection.vendor]
    rows = ", ".join(["(%s, %s)"] * len(told))
    which = "c.ended_seq = %s" if task.is_terminal else "c.ended_seq IS NULL"
    queue = _QUEUE.format(now=now, rows=rows, which=which, lock=_LOCK[connection.vendor])
    values = [traceparent, *(value for pair in told for value in pair), task.id]
    if not task.is_terminal:
        return [sql.Query(queue, values)]
    return [sql.Query(_END.format(now=now), [task.seq, task.id]), sql.Query(queue, [*values, task.seq])]


def return_to_turn(task: Task) -> sql.Query:
    """Set the turn of a task's push addresses back to the task's: the later turn was unsent, and ends no task."""
    return sql.Query(_RETURN, [task.chat_id, task.id])


def payload_of(task: Task, event: TaskEvent) -> str:
    """The JSON of an event, a stream response of A2A 1.0; empty when the event is not sent."""
    if isinstance(event, StatusEvent):
        return _as_json(StreamEvent(status_update=render_status_update(task, event)))
    artifact = task.artifact(event.artifact.id)
    if not event.last_chunk or artifact is None:
        return ""
    return _as_json(StreamEvent(artifact_update=render_whole(task, artifact)))


def _as_json(shown: StreamEvent) -> str:
    payload: Json = to_builtins(shown)
    return as_json(payload)
