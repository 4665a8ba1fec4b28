"""Tasks in the database, which survive everything that the hub survives (docs/adr/0045).

The store also bounds the age and number of tasks: old tasks are deleted in small batches, each a transaction of
its own.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from typing import TypeVar

from django.db import DatabaseError, InterfaceError, transaction
from django.db.models import Count, F, Q, QuerySet, Sum

from a2a_bridge.models import StoredEvent, StoredTask
from a2a_bridge.service.tasks import journal_rows
from a2a_bridge.service.tasks.journal_rows import Write
from a2a_bridge.service.tasks.store import MAY_RUN, TaskQuery, may_run
from a2a_bridge.wire.task import OPEN, State, Task, TaskEvent, TaskPage
from agents.core.errors import Unavailable
from kit import batches, sql
from kit.async_db import DbThread, db_call
from kit.batch_writer import Batcher
from kit.clock import approximate_now, db_now

logger = logging.getLogger(__name__)

TASKS_A_CALLER = 10_000
BYTES_A_CALLER = 256 * 1024 * 1024
DELETE_AT_ONCE = 200
ROWS_AT_ONCE = 50  # or those of one write, in a transaction: other writers wait for it

_SIZE = F("snapshot_bytes") + F("events_bytes")

T = TypeVar("T")


class JournalTaskStore:
    """See `TaskStore`. Events that are written at the same time, of any tasks, share a transaction.

    The ledger writes the end of a turn, in the transaction that settles the turn (`writes`). A task is deleted
    `kept_days` after its state was set last; a caller's oldest finished tasks are deleted sooner above a limit.
    """

    def __init__(self, *, kept_days: int) -> None:
        self._kept = timedelta(days=kept_days)
        self._writing = Batcher(self._write)
        self._thread = DbThread("journal")

    def put_now(self, task: Task) -> bool:
        """See `TaskStore`."""
        return False

    async def put(self, task: Task) -> None:
        """See `TaskStore`.

        If the database is out of reach, the failure is logged: the next event of the task writes the task too.

        Raises:
            Unavailable: an ended task was not written. It gets no more events, so the caller must try again.
        """
        try:
            await self._do(Write(task))
        except Unavailable:
            if task.is_terminal:
                raise
            logger.warning("task.not_put", extra={"task_id": task.id})

    def append_now(self, task: Task, events: Sequence[TaskEvent]) -> bool:
        """See `TaskStore`."""
        return False

    async def append(self, task: Task, events: Sequence[TaskEvent]) -> None:
        """See `TaskStore`."""
        await self._do(Write(task, events))

    async def replace(self, task: Task, events: Sequence[TaskEvent], *, expected_seq: int) -> bool:
        """See `TaskStore`."""
        return await self._do(Write(task, events, expected_seq))

    async def find(self, task_id: str, *, caller_id: int) -> Task | None:
        """See `TaskStore`."""
        return await _read(lambda: journal_rows.find(task_id, caller_id, self._since()))

    async def events_after(self, task: Task, seq: int) -> Sequence[TaskEvent] | None:
        """See `TaskStore`."""
        return await _read(lambda: journal_rows.events_after(task.id, task.caller_id, seq))

    async def page(self, query: TaskQuery) -> TaskPage:
        """See `TaskStore`."""
        return await _read(lambda: journal_rows.page(query, self._since()))

    async def drop(self, task: Task) -> None:
        """See `TaskStore`."""
        try:
            await _read(lambda: journal_rows.drop(task.id, task.caller_id))
        except Unavailable:
            logger.warning("task.not_dropped", extra={"task_id": task.id})

    def writes(self, task: Task, events: Sequence[TaskEvent], *, is_message: bool = False) -> Sequence[sql.Query]:
        """See `TaskStore`."""
        writing = journal_rows.writing(task, events, begins=True, whole=True, is_message=is_message)
        return [*journal_rows.locking(task), *writing]

    async def close(self) -> None:
        """See `TaskStore`."""
        await self._writing.drain()
        await self._thread.close()

    def _since(self) -> datetime:
        return approximate_now() - self._kept

    async def _do(self, write: Write) -> bool:
        """Write with concurrent writes; returns `Write.is_done`."""
        try:
            await self._writing.add(write)
        except (DatabaseError, InterfaceError) as failure:
            raise _out_of_reach(failure) from None
        if write.failure is not None:
            raise write.failure
        return write.is_done

    async def _write(self, writes: Sequence[Write]) -> None:
        """Write each part in one transaction; if the database refuses it, each of its writes in one of its own."""
        parts = [*in_parts(writes)]
        for number, some in enumerate(parts):
            try:
                await self._thread.call(partial(journal_rows.write, some))
            except sql.DATABASE_UNAVAILABLE as failure:
                for write in chain.from_iterable(parts[number:]):
                    write.failure = _out_of_reach(failure)
                return
            except DatabaseError:
                for write in some:
                    await self._write_alone(write)

    async def _write_alone(self, write: Write) -> None:
        try:
            await self._thread.call(lambda: journal_rows.write([write]))
        except (DatabaseError, InterfaceError) as failure:
            write.failure = _out_of_reach(failure)


async def _read(look: Callable[[], T]) -> T:
    try:
        return await db_call(look)()
    except (DatabaseError, InterfaceError) as failure:
        raise _out_of_reach(failure) from None


def in_parts(writes: Sequence[Write]) -> Iterator[Sequence[Write]]:
    """The writes, in order, with at most `ROWS_AT_ONCE` tasks and events together."""
    some: list[Write] = []
    rows = 0
    for one in writes:
        rows += 1 + len(one.events)
        if some and rows > ROWS_AT_ONCE:
            yield some
            some, rows = [], 1 + len(one.events)
        some.append(one)
    yield some


def _out_of_reach(failure: Exception) -> Unavailable:
    logger.warning("tasks.journal_failed", extra={"failure": type(failure).__name__})
    return Unavailable("the task store is out of reach")


def forget_old(kept_days: int) -> int:
    """Delete tasks whose state was set more than `kept_days` ago; returns their number."""
    old = StoredTask.objects.filter(updated_at__lte=db_now() - timedelta(days=kept_days))
    return sum(delete_tasks(old, ids) for ids in batches.key_batches(old.order_by("updated_at"), DELETE_AT_ONCE))


def trim(*, tasks_a_caller: int = TASKS_A_CALLER, bytes_a_caller: int = BYTES_A_CALLER) -> int:
    """Delete the oldest finished tasks of callers above a limit; returns the number of deleted tasks."""
    sums = StoredTask.objects.values("caller_id").annotate(count=Count("pk"), held=Sum(_SIZE))
    crowded = sums.filter(Q(count__gt=tasks_a_caller) | Q(held__gt=bytes_a_caller))
    now = db_now()
    may_wait = Q(state=State.INPUT_REQUIRED, updated_at__gt=now - MAY_RUN)  # for an approval, see `may_run`
    ended = StoredTask.objects.exclude(Q(state__in=OPEN) | may_wait)
    gone = 0
    for caller_id in list(crowded.values_list("caller_id", flat=True)):
        spent = list(_spent(caller_id, tasks_a_caller, bytes_a_caller, now))
        for start in range(0, len(spent), DELETE_AT_ONCE):
            gone += delete_tasks(ended, spent[start : start + DELETE_AT_ONCE])
    return gone


def _spent(caller_id: int, most: int, most_bytes: int, now: datetime) -> Iterator[str]:
    """The ids of a caller's tasks beyond the newest that fit, except tasks that an agent may work on."""
    mine = StoredTask.objects.filter(caller_id=caller_id).annotate(held=_SIZE).order_by("-updated_at", "-pk")
    count = size_bytes = 0
    for task_id, state, at, held in mine.values_list("pk", "state", "updated_at", "held").iterator():
        count, size_bytes = count + 1, size_bytes + held
        if (count > most or size_bytes > most_bytes) and not may_run(state, at, now):
            yield task_id


def delete_tasks(meant: QuerySet[StoredTask], task_ids: list[str]) -> int:
    """Delete these tasks, each after its events, a batch at a time; returns the number of deleted tasks.

    A task that changed meanwhile, so that it is not old any more, stays.
    """
    tasks = meant.filter(pk__in=task_ids)
    for events in batches.key_batches(StoredEvent.objects.filter(task__in=tasks)):
        StoredEvent.objects.filter(pk__in=events).delete()
    with transaction.atomic():
        held = list(journal_rows.locked(tasks).values_list("pk", flat=True))
        deleted = StoredTask.objects.filter(pk__in=held).delete()[1]
    return deleted.get(StoredTask._meta.label, 0)
