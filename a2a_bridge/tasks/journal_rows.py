"""The journal's transactions: what is decided about its rows, and how they are read. In a database thread."""

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
from a2a_bridge.tasks import journal_sql
from a2a_bridge.tasks.record import Task, TaskEvent, snapshot_is_due
from a2a_bridge.tasks.store import TaskPage, TaskQuery
from a2a_bridge.tasks.stored import VERSION, read_events, read_task, written_by_a_later_release
from agents.errors import Unavailable
from kit import sql

logger = logging.getLogger(__name__)

LOCK_TRIES = 3
LOCK_FAILURES = frozenset({"40P01", "55P03", "SQLITE_BUSY"})
BY_CODE_POINT = {"postgresql": "C", "sqlite": "BINARY"}


@dataclass(slots=True)
class Write:
    """What happened to a task, if its last event is still that one. `is_done`: it is kept, now or already."""

    task: Task
    events: Sequence[TaskEvent] = ()
    expected_seq: int | None = None
    is_done: bool = False
    failure: Unavailable | None = None


class _Kept(NamedTuple):
    """How far a task is."""

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
                kept[one.task.id] = _Kept(one.task.seq, one.task.is_terminal, VERSION)
        if statements:
            sql.write_each(statements)


def find(task_id: str, caller_id: int, since: datetime) -> Task | None:
    """A caller's task whose state was set since."""
    row = StoredTask.objects.filter(id=task_id, caller_id=caller_id, updated_at__gt=since).first()
    return _tasks([row])[0] if row is not None else None


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
    meant = StoredTask.objects.filter(caller_id=query.caller_id, handle=query.handle, updated_at__gt=since)
    if query.context_id:
        meant = meant.filter(context_id=query.context_id)
    if query.state is not None:
        meant = meant.filter(state=query.state)
    if query.since:
        meant = meant.filter(updated_at__gte=journal_sql.moment(query.since))
    if query.prefixes:
        meant = meant.filter(_begins_with(query.prefixes))
    if query.other_prefixes:
        meant = meant.exclude(_begins_with(query.other_prefixes))
    rows = list(_from(meant, query.before)[: query.limit + 1])
    tasks = [task for task in _tasks(rows[: query.limit]) if task is not None]
    return TaskPage(tasks, meant.count(), len(rows) <= query.limit)


def _begins_with(prefixes: Sequence[str]) -> Q:
    return reduce(or_, [Q(id__startswith=prefix) for prefix in prefixes])


def drop(task_id: str, caller_id: int) -> None:
    """Forget a task."""
    StoredTask.objects.filter(id=task_id, caller_id=caller_id).delete()


def locked(rows: QuerySet[StoredTask]) -> QuerySet[StoredTask]:
    """These tasks as they are; nobody else takes them further before the transaction ends.

    The ledger writes the ends of turns in the order of their chat ids; so does this: nobody waits in a circle.
    """
    in_order = Collate(F("chat_id"), BY_CODE_POINT[connection.vendor])
    return rows.order_by(in_order).select_for_update()


def _lock(task_ids: set[str]) -> dict[str, _Kept]:
    """How far these tasks are."""
    rows = locked(StoredTask.objects.filter(id__in=task_ids))
    return {one[0]: _Kept(*one[1:]) for one in rows.values_list("id", "seq", "has_ended", "schema_version")}


def _is_lock_failure(failure: OperationalError) -> bool:
    return (sql.state_of(failure) or getattr(failure.__cause__, "sqlite_errorname", None)) in LOCK_FAILURES


def _is_needed(one: Write, kept: _Kept | None) -> bool:
    if one.expected_seq is not None:
        one.is_done = kept is not None and not kept.has_ended and kept.seq == one.expected_seq
        return one.is_done
    one.is_done = True
    return kept is None or (kept.seq < one.task.seq and not kept.has_ended)


def _statements(one: Write, kept: _Kept | None) -> list[sql.Query]:
    """The snapshot is written when it is due, and when there is none to which the events fit."""
    events = [event for event in one.events if kept is None or event.seq > kept.seq]
    fits = kept is not None and kept.schema_version == VERSION and events and events[0].seq == kept.seq + 1
    whole = not fits or one.expected_seq is not None or snapshot_is_due(events)
    return journal_sql.writing(one.task, events, begins=kept is None, whole=whole)


def _from(rows: QuerySet[StoredTask], before: tuple[str, str] | None) -> QuerySet[StoredTask]:
    """The last set first, of the same moment the greater id; after that position."""
    named = rows.annotate(name=Collate(F("id"), BY_CODE_POINT[connection.vendor]))
    if before is not None:
        at, task_id = journal_sql.moment(before[0]), before[1]
        named = named.filter(Q(updated_at__lt=at) | Q(updated_at=at, name__lt=task_id))
    return named.order_by("-updated_at", "-name")


def _tasks(rows: Sequence[StoredTask]) -> list[Task | None]:
    """The tasks of rows; None where one cannot be read."""
    late = [row.id for row in rows if row.snapshot_seq < row.seq]
    events: dict[str, list[tuple[int, str]]] = {}
    if late:
        written = StoredEvent.objects.filter(task_id__in=late, seq__gt=F("task__snapshot_seq")).order_by("seq")
        for task_id, seq, body in written.values_list("task_id", "seq", "body"):
            events.setdefault(task_id, []).append((seq, body))
    return [_task(row, events.get(row.id, ())) for row in rows]


def _task(row: StoredTask, later: Sequence[tuple[int, str]]) -> Task | None:
    """A newer snapshot may have come between two looks: what this one knows of is enough."""
    bodies = [body for seq, body in later if row.snapshot_seq < seq <= row.seq]
    return read_task(row.id, row.schema_version, row.snapshot, bodies)
