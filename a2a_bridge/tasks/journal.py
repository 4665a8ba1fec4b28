"""Tasks in the database, which survive everything that the hub survives (docs/adr/0045)."""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from django.db import DatabaseError, InterfaceError

from a2a_bridge.tasks import journal_rows, journal_sql
from a2a_bridge.tasks.journal_rows import Write
from a2a_bridge.tasks.record import Task, TaskEvent
from a2a_bridge.tasks.store import TaskPage, TaskQuery
from agents.errors import Unavailable
from kit import sql
from kit.async_db import DbThread, db_call
from kit.batcher import Batcher
from kit.clock import near_now

logger = logging.getLogger(__name__)

T = TypeVar("T")


class JournalTaskStore:
    """See `TaskStore`. What is written at the same time, of whatever tasks, is one transaction.

    The end of a turn is written by the ledger, in the transaction that settles it (`writes`). A task goes so many
    days after its state was set last; a caller's oldest finished ones sooner when there are too many.
    """

    def __init__(self, *, kept_days: int) -> None:
        self._kept = timedelta(days=kept_days)
        self._writing = Batcher(self._write)
        self._thread = DbThread("journal")

    async def put(self, task: Task) -> None:
        """See `TaskStore`. When the database is away that is logged: it is kept when more happens to it.

        Raises:
            Unavailable: nothing more will, it has ended; try again.
        """
        try:
            await self._do(Write(task))
        except Unavailable:
            if task.is_terminal:
                raise
            logger.warning("task.not_put", extra={"task_id": task.id})

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

    def writes(self, task: Task, events: Sequence[TaskEvent]) -> Sequence[sql.Query | sql.Insert]:
        """See `TaskStore`."""
        return [*journal_sql.locking(task), *journal_sql.writing(task, events, begins=True, whole=True)]

    async def close(self) -> None:
        """See `TaskStore`."""
        await self._thread.close()

    def _since(self) -> datetime:
        return near_now() - self._kept

    async def _do(self, write: Write) -> bool:
        """Write it, with others; whether it was done."""
        try:
            await self._writing.add(write)
        except (DatabaseError, InterfaceError) as failure:
            raise _out_of_reach(failure) from None
        if write.failure is not None:
            raise write.failure
        return write.is_done

    async def _write(self, writes: Sequence[Write]) -> None:
        """One transaction; one by one when a piece of it may be at fault."""
        try:
            await self._thread.call(lambda: journal_rows.write(writes))
        except sql.AWAY:
            raise
        except DatabaseError:
            for write in writes:
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


def _out_of_reach(failure: Exception) -> Unavailable:
    logger.warning("tasks.journal_failed", extra={"failure": type(failure).__name__})
    return Unavailable("the task store is out of reach")
