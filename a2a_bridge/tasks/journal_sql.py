"""The journal's SQL, for SQLite and PostgreSQL alike.

Each statement says itself when it must do nothing, so that a batch that is tried again, or one that comes late,
changes nothing: a task that ended, one that is further on, and one that a later release wrote stay as they are.
"""

from collections.abc import Sequence
from datetime import datetime

from django.db import connection

from a2a_bridge.tasks.record import Task, TaskEvent
from a2a_bridge.tasks.stored import VERSION, encode
from kit import sql

_OURS = f"a2a_bridge_storedtask.schema_version <= {VERSION} AND NOT a2a_bridge_storedtask.has_ended"
_LOCK = "SELECT 1 FROM a2a_bridge_storedtask WHERE id = %s FOR UPDATE"
_BEGIN = """
INSERT INTO a2a_bridge_storedtask (id, caller_id, handle, context_id, chat_id, home, state, has_ended, updated_at,
  seq, snapshot, snapshot_seq, snapshot_bytes, events_bytes, schema_version)
SELECT %s, accounts_user.id, %s, %s, '', '', '', {no}, %s, %s, '', 0, 0, 0, {version}
FROM accounts_user WHERE accounts_user.id = %s {hold} ON CONFLICT (id) DO NOTHING
"""
_EVENTS = f"""
INSERT INTO a2a_bridge_storedevent (task_id, seq, body)
SELECT a2a_bridge_storedtask.id, v.column2, v.column3 FROM (VALUES {{rows}}) AS v
JOIN a2a_bridge_storedtask ON a2a_bridge_storedtask.id = v.column1
WHERE v.column2 > a2a_bridge_storedtask.seq AND {_OURS} ON CONFLICT (task_id, seq) DO NOTHING
"""
_BECOME = f"""
UPDATE a2a_bridge_storedtask SET chat_id = %s, home = %s, state = %s, has_ended = %s, updated_at = %s,
  seq = %s, snapshot = %s, snapshot_seq = %s, snapshot_bytes = %s, events_bytes = events_bytes + %s,
  schema_version = {VERSION}
WHERE id = %s AND (seq < %s OR snapshot = '') AND {_OURS}
"""
_GROW = f"""
UPDATE a2a_bridge_storedtask SET state = %s, updated_at = %s, seq = %s, events_bytes = events_bytes + %s
WHERE id = %s AND seq < %s AND {_OURS}
"""


def moment(timestamp: str) -> datetime:
    """A task's timestamp as a time."""
    return datetime.fromisoformat(timestamp)


def writing(task: Task, events: Sequence[TaskEvent], *, begins: bool, whole: bool) -> list[sql.Query]:
    """What keeps a task and what happened to it.

    `begins`: it may not be there yet; it is never written for a caller who is gone. `whole`: with its snapshot.
    """
    bodies = [(task.id, event.seq, encode(event).decode()) for event in events]
    added_bytes = sum(len(body) for _, _, body in bodies)
    writes = [_begin(task, events[0].seq - 1 if events else task.seq)] if begins else []
    if bodies:
        marks = ", ".join(["(%s, %s, %s)"] * len(bodies))
        writes.append(sql.Query(_EVENTS.format(rows=marks), [value for row in bodies for value in row]))
    return [*writes, _become(task, added_bytes) if whole else _grow(task, added_bytes)]


def locking(task: Task) -> list[sql.Query]:
    """Waits for whoever else writes to the task. SQLite already holds its one write lock."""
    return [sql.Query(_LOCK, [task.id])] if connection.vendor == "postgresql" else []


def _begin(task: Task, seq: int) -> sql.Query:
    """An empty row, as the task was before these events."""
    is_grown = connection.vendor == "postgresql"
    statement = _BEGIN.format(
        no="false" if is_grown else "0", hold="FOR KEY SHARE" if is_grown else "", version=VERSION
    )
    at = sql.moment(moment(task.updated_at))
    return sql.Query(statement, [task.id, task.handle, task.context_id, at, seq, task.caller_id])


def _become(task: Task, added_bytes: int) -> sql.Query:
    snapshot = encode(task).decode()
    values = [
        task.chat_id,
        task.home,
        task.state,
        task.is_terminal,
        sql.moment(moment(task.updated_at)),
        task.seq,
        snapshot,
        task.seq,
        len(snapshot),
        added_bytes,
        task.id,
        task.seq,
    ]
    return sql.Query(_BECOME, values)


def _grow(task: Task, added_bytes: int) -> sql.Query:
    at = sql.moment(moment(task.updated_at))
    return sql.Query(_GROW, [task.state, at, task.seq, added_bytes, task.id, task.seq])
