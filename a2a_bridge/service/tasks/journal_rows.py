"""The journal's rows: what is decided about them, how they are read, and the SQL that writes them.

Run in a database thread, on SQLite and PostgreSQL alike. Each statement has the condition under which it must do
nothing, so that a batch that is tried again or comes late changes nothing: a task that ended, that has newer
events, or that a later release wrote stays as it is.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from typing import NamedTuple

import msgspec
from django.db import OperationalError, connection, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Collate

from a2a_bridge.models import StoredEvent, StoredTask
from a2a_bridge.service.tasks.store import TaskQuery
from a2a_bridge.service.tasks.stored import VERSION, encode, read_events, read_task, written_by_a_later_release
from a2a_bridge.wire.task import Task, TaskEvent, TaskPage, snapshot_is_due
from agents.core.errors import Unavailable
from kit import sql

logger = logging.getLogger(__name__)

LOCK_TRIES = 3
LOCK_FAILURES = frozenset({"40P01", "55P03", "SQLITE_BUSY"})
BY_CODE_POINT = {"postgresql": "C", "sqlite": "BINARY"}

_OURS = f"a2a_bridge_storedtask.schema_version <= {VERSION} AND NOT a2a_bridge_storedtask.has_ended"
_LOCK = "SELECT 1 FROM a2a_bridge_storedtask WHERE id = %s FOR UPDATE"
_BEGIN = """
INSERT INTO a2a_bridge_storedtask (id, caller_id, handle, context_id, chat_id, home, state, has_ended, updated_at,
  seq, snapshot, snapshot_seq, snapshot_bytes, events_bytes, schema_version, is_message)
SELECT %s, accounts_user.id, %s, %s, '', '', '', false, %s, %s, '', 0, 0, 0, {version}, %s
FROM accounts_user WHERE accounts_user.id = %s {hold} ON CONFLICT (id) DO NOTHING
"""
# Both in one, for a task without events in between: the end of most asks is this one statement.
_BEGIN_WHOLE = f"""
INSERT INTO a2a_bridge_storedtask (id, caller_id, handle, context_id, chat_id, home, state, has_ended, updated_at,
  seq, snapshot, snapshot_seq, snapshot_bytes, events_bytes, schema_version, is_message)
SELECT %s, accounts_user.id, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, 0, {VERSION}, %s
FROM accounts_user WHERE accounts_user.id = %s {{hold}} ON CONFLICT (id) DO UPDATE SET chat_id = excluded.chat_id,
  home = excluded.home, state = excluded.state, has_ended = excluded.has_ended, updated_at = excluded.updated_at,
  seq = excluded.seq, snapshot = excluded.snapshot, snapshot_seq = excluded.snapshot_seq,
  snapshot_bytes = excluded.snapshot_bytes, schema_version = excluded.schema_version, is_indexed = false
WHERE (a2a_bridge_storedtask.seq < excluded.seq OR a2a_bridge_storedtask.snapshot = '') AND {_OURS}
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
  schema_version = {VERSION}, is_indexed = false
WHERE id = %s AND (seq < %s OR snapshot = '') AND {_OURS}
"""
_GROW = f"""
UPDATE a2a_bridge_storedtask SET state = %s, updated_at = %s, seq = %s, events_bytes = events_bytes + %s
WHERE id = %s AND seq < %s AND {_OURS}
"""


@dataclass(slots=True)
class Write:
    """New events of a task, written if its last event is still that one. `is_done`: they are kept by now."""

    task: Task
    events: Sequence[TaskEvent] = ()
    expected_seq: int | None = None
    is_done: bool = False
    failure: Unavailable | None = None


class _TaskProgress(NamedTuple):
    """The number of the last event of a task, and its state."""

    seq: int
    has_ended: bool
    schema_version: int


def write(writes: Sequence[Write]) -> None:
    """Decide and write a batch in one transaction; again when it lost a race for a lock, and so did nothing."""
    for _ in range(LOCK_TRIES - 1):
        try:
            return _commit(writes)
        except OperationalError as failure:
            if not _is_lock_failure(failure):
                raise
    return _commit(writes)


def _commit(writes: Sequence[Write]) -> None:
    with transaction.atomic():
        kept = _lock({one.task.id for one in writes})
        statements: list[sql.Query] = []
        for one in writes:
            found = kept.get(one.task.id)
            one.is_done, one.failure = False, None
            if found is not None and found.schema_version > VERSION:
                one.failure = written_by_a_later_release(one.task.id)
            elif _is_needed(one, found):
                statements += _statements(one, found)
                kept[one.task.id] = _TaskProgress(one.task.seq, one.task.is_terminal, VERSION)
        if statements:
            sql.rows_of_each(statements)


def find(task_id: str, caller_id: int, since: datetime) -> Task | None:
    """A caller's task whose state was set since."""
    own = StoredTask.objects.filter(id=task_id, caller_id=caller_id, is_message=False)
    row = own.filter(updated_at__gt=since).first()
    return read_tasks([row])[0] if row is not None else None


def events_after(task_id: str, caller_id: int, seq: int) -> list[TaskEvent] | None:
    """A task's events after that one, None when they are not all there."""
    row = StoredTask.objects.filter(id=task_id, caller_id=caller_id).values_list("seq", flat=True).first()
    if row is None or seq > row:
        return None
    written = StoredEvent.objects.filter(task_id=task_id, seq__gt=seq, seq__lte=row).order_by("seq")
    bodies = list(written.values_list("body", flat=True))
    try:
        return read_events(bodies) if len(bodies) == row - seq else None
    except msgspec.DecodeError:
        logger.error("task.unreadable", extra={"task_id": task_id})
        return None


def page(query: TaskQuery, since: datetime) -> TaskPage:
    """A page of a caller's tasks whose state was set since."""
    own = StoredTask.objects.filter(caller_id=query.caller_id, handle=query.handle, is_message=False)
    meant = own.filter(updated_at__gt=since)
    if query.context_id:
        meant = meant.filter(context_id=query.context_id)
    if query.state is not None:
        meant = meant.filter(state=query.state)
    if query.since:
        meant = meant.filter(updated_at__gte=moment(query.since))
    if query.prefixes:
        meant = meant.filter(_begins_with(query.prefixes))
    if query.other_prefixes:
        meant = meant.exclude(_begins_with(query.other_prefixes))
    rows = list(_from(meant, query.before)[: query.limit + 1])
    tasks = [task for task in read_tasks(rows[: query.limit]) if task is not None]
    return TaskPage(tasks, meant.count(), len(rows) <= query.limit)


def _begins_with(prefixes: Sequence[str]) -> Q:
    return reduce(or_, [Q(id__startswith=prefix) for prefix in prefixes])


def drop(task_id: str, caller_id: int) -> None:
    """Forget a task."""
    StoredTask.objects.filter(id=task_id, caller_id=caller_id).delete()


def locked(rows: QuerySet[StoredTask]) -> QuerySet[StoredTask]:
    """The rows of these tasks, locked until the transaction ends.

    The rows are locked in the order of chat ids, in which the ledger writes the ends of turns, too: neither causes
    a deadlock.
    """
    in_order = Collate(F("chat_id"), BY_CODE_POINT[connection.vendor])
    return rows.order_by(in_order).select_for_update()


def _lock(task_ids: set[str]) -> dict[str, _TaskProgress]:
    """The progress of these tasks."""
    rows = locked(StoredTask.objects.filter(id__in=task_ids))
    return {
        one[0]: _TaskProgress(*one[1:]) for one in rows.values_list("id", "seq", "has_ended", "schema_version")
    }


def _is_lock_failure(failure: OperationalError) -> bool:
    return (sql.state_of(failure) or getattr(failure.__cause__, "sqlite_errorname", None)) in LOCK_FAILURES


def _is_needed(one: Write, kept: _TaskProgress | None) -> bool:
    if one.expected_seq is not None:
        one.is_done = kept is not None and not kept.has_ended and kept.seq == one.expected_seq
        return one.is_done
    one.is_done = True
    return kept is None or (kept.seq < one.task.seq and not kept.has_ended)


def _statements(one: Write, kept: _TaskProgress | None) -> list[sql.Query]:
    """The SQL of a write; with a snapshot when one is due, or when the events do not continue the stored row."""
    events = [event for event in one.events if kept is None or event.seq > kept.seq]
    fits = kept is not None and kept.schema_version == VERSION and events and events[0].seq == kept.seq + 1
    whole = not fits or one.expected_seq is not None or snapshot_is_due(events)
    return writing(one.task, events, begins=kept is None, whole=whole)


def _from(rows: QuerySet[StoredTask], before: tuple[str, str] | None) -> QuerySet[StoredTask]:
    """The rows after the position `before`, newest state first; rows of the same time by descending id."""
    named = rows.annotate(name=Collate(F("id"), BY_CODE_POINT[connection.vendor]))
    if before is not None:
        at, task_id = moment(before[0]), before[1]
        named = named.filter(Q(updated_at__lt=at) | Q(updated_at=at, name__lt=task_id))
    return named.order_by("-updated_at", "-name")


def read_tasks(rows: Sequence[StoredTask]) -> list[Task | None]:
    """The tasks of rows; a task that cannot be read is None."""
    # Select events by the `seq` of the rows in memory: a newer snapshot may be written between the two queries.
    later = [
        Q(task_id=row.id, seq__gt=row.snapshot_seq, seq__lte=row.seq) for row in rows if row.snapshot_seq < row.seq
    ]
    bodies: dict[str, list[str]] = {}
    if later:
        written = StoredEvent.objects.filter(reduce(or_, later)).order_by("seq")
        for task_id, body in written.values_list("task_id", "body"):
            bodies.setdefault(task_id, []).append(body)
    return [read_task(row.id, row.schema_version, row.snapshot, bodies.get(row.id, ())) for row in rows]


def moment(timestamp: str) -> datetime:
    """A task's timestamp as a time."""
    return datetime.fromisoformat(timestamp)


def writing(
    task: Task, events: Sequence[TaskEvent], *, begins: bool, whole: bool, is_message: bool = False
) -> list[sql.Query]:
    """The statements that keep a task and its new events.

    `begins`: the task may have no row yet; no row is written for a deleted caller. `whole`: with the snapshot.
    `is_message`: only the thread of a new row shows the task.
    """
    if begins and whole and not events:
        return [_begin_whole(task, is_message)]
    bodies = [(task.id, event.seq, encode(event).decode()) for event in events]
    added_bytes = sum(len(body) for _, _, body in bodies)
    writes = [_begin(task, events[0].seq - 1 if events else task.seq, is_message)] if begins else []
    if bodies:
        marks = ", ".join(["(%s, %s, %s)"] * len(bodies))
        writes.append(sql.Query(_EVENTS.format(rows=marks), [value for row in bodies for value in row]))
    return [*writes, _become(task, added_bytes) if whole else _grow(task, added_bytes)]


def locking(task: Task) -> list[sql.Query]:
    """Lock the row of a task. SQLite already holds its one write lock."""
    return [sql.Query(_LOCK, [task.id])] if connection.vendor == "postgresql" else []


def _begin(task: Task, seq: int, is_message: bool) -> sql.Query:
    """The insert of a row without a snapshot, with the seq before the first of these events."""
    at = sql.moment(moment(task.updated_at))
    values = [task.id, task.handle, task.context_id, at, seq, is_message, task.caller_id]
    return sql.Query(_BEGIN.format(hold=_hold(), version=VERSION), values)


def _begin_whole(task: Task, is_message: bool) -> sql.Query:
    snapshot = encode(task).decode()
    values = [
        task.id,
        task.handle,
        task.context_id,
        task.chat_id,
        task.home,
        task.state,
        task.is_terminal,
        sql.moment(moment(task.updated_at)),
        task.seq,
        snapshot,
        task.seq,
        len(snapshot),
        is_message,
        task.caller_id,
    ]
    return sql.Query(_BEGIN_WHOLE.format(hold=_hold()), values)


def _hold() -> str:
    """The lock on the caller's row, so that a deletion of the account waits; SQLite has one lock."""
    return "FOR KEY SHARE" if connection.vendor == "postgresql" else ""


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
