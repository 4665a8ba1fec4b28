"""Reads tasks of the journal into threads, with the words by which searches find them (docs/adr/0197).

The ledger writes nothing for threads: a task whose snapshot is new waits in an index of the journal
(`stored_task_to_index`) until a job, or the page that its caller opens, reads it.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.text import Truncator

from a2a_bridge.models import StoredTask, Thread, ThreadTask
from a2a_bridge.service.tasks.journal_rows import locked, read_tasks
from a2a_bridge.service.tasks.stored import VERSION
from a2a_bridge.service.threads.exchanges import Exchange, read_exchange
from a2a_bridge.wire.task import INTERRUPTED, Task
from agents.models import Agent, Turn
from kit import batches

AT_ONCE = 50
SEARCHED_CHARS = 10_000  # of the questions of a task, and of its answers
TITLE_CHARS = 80
NO_TEXT = "(no text)"
MOST_OF_CALLER = 2_000


class ThreadKey(NamedTuple):
    """What makes tasks parts of one thread."""

    caller_id: int
    agent_id: int
    context_id: str


class _Read(NamedTuple):
    """A task that was read. `title`: of its thread, if the task is its first."""

    key: ThreadKey
    exchange: Exchange
    title: str
    last_asked_at: datetime


def word_of(caller_id: int) -> str:
    """The word by which the index finds the rows of a caller; no such word begins another."""
    return f"u{caller_id}x"


def index_all() -> int:
    """Read all tasks that ended, or wait for their callers, since they were read last; returns their number."""
    rows = _unread(StoredTask.objects.all())
    return sum(map(_index, batches.key_batches(rows, AT_ONCE)))


def index_of_caller(caller_id: int) -> int:
    """Read a caller's tasks, for a page that must show the last question; returns their number.

    After an upgrade a caller may have thousands of unread tasks: the job reads those beyond a limit.
    """
    unread = _unread(StoredTask.objects.filter(caller=caller_id))
    ids = list(unread.values_list("pk", flat=True)[:MOST_OF_CALLER])
    return sum(_index(ids[start : start + AT_ONCE]) for start in range(0, len(ids), AT_ONCE))


def delete_empty() -> int:
    """Delete threads whose last task was deleted; returns their number."""
    empty = Thread.objects.filter(tasks=None)
    return sum(delete_if_empty(keys) for keys in batches.key_batches(empty))


@transaction.atomic
def delete_if_empty(thread_ids: Sequence[int]) -> int:
    """Delete those of these threads that have no task now; returns their number.

    A reader locks the row of a thread before the thread gets a task, so none gets one meanwhile.
    """
    held = lock_threads(Thread.objects.filter(pk__in=thread_ids))
    empty = Thread.objects.filter(pk__in=[one.pk for one in held], tasks=None)
    return empty.delete()[0]


def lock_threads(threads: QuerySet[Thread]) -> list[Thread]:
    """The rows of these threads, locked until the transaction ends; always in the same order."""
    return list(threads.order_by("pk").select_for_update())


def _unread(tasks: QuerySet[StoredTask]) -> QuerySet[StoredTask]:
    return tasks.filter(Q(has_ended=True) | Q(state__in=INTERRUPTED), is_indexed=False)


def _index(task_ids: Sequence[str]) -> int:
    """Read these tasks into their threads; returns how many were read.

    Tasks are read before the transaction, which locks other writers of SQLite out. A task that changed since then
    stays unread.
    """
    rows = list(_unread(StoredTask.objects.filter(pk__in=task_ids)))
    found = _exchanges_of(_readable(rows))
    with transaction.atomic():
        unread = locked(_unread(StoredTask.objects.filter(pk__in=task_ids)))
        unchanged = set(unread.values_list("pk", "seq")) & {(row.pk, row.seq) for row in rows}
        read = [pk for pk, _ in unchanged]
        _keep([one for one in found if one.exchange.task_id in set(read)])
        StoredTask.objects.filter(pk__in=read).update(is_indexed=True)
    return len(read)


def _exchanges_of(tasks: Sequence[Task]) -> list[_Read]:
    """The tasks with the agent and the time of their asks; those without an agent are left out."""
    asks = Turn.objects.filter(chat_id__in=[one.chat_id for one in tasks])
    turns: dict[str, tuple[int | None, datetime]] = {
        row[0]: (row[1], row[2]) for row in asks.values_list("chat_id", "agent_id", "asked_at")
    }
    agents = _agents_by_handle(one.handle for one in tasks if one.chat_id not in turns)
    known = ThreadTask.objects.filter(task__in=[one.id for one in tasks])
    first_asked = dict(known.values_list("task_id", "asked_at"))
    found = []
    for task in tasks:
        without_turn = agents.get(task.handle.lower()), datetime.fromisoformat(task.updated_at)
        agent_id, last = turns.get(task.chat_id, without_turn)
        if agent_id is None:  # an agent that is gone
            continue
        exchange = read_exchange(task, first_asked.get(task.id, last))
        key = ThreadKey(task.caller_id, agent_id, task.context_id)
        found.append(_Read(key, exchange, _title_of(exchange.question), last))
    return found


def _keep(found: Sequence[_Read]) -> None:
    """Write the threads and the words of tasks."""
    threads = _threads_of(found)
    ThreadTask.objects.bulk_create(
        [
            ThreadTask(
                thread=threads[one.key],
                task_id=one.exchange.task_id,
                asked_at=one.exchange.asked_at,
                whose=word_of(one.key.caller_id),
                question=_searched(one.exchange.question),
                answer=_searched(one.exchange.answer),
            )
            for one in found
        ],
        update_conflicts=True,
        unique_fields=["task"],
        update_fields=["question", "answer"],
    )


def _threads_of(found: Sequence[_Read]) -> dict[ThreadKey, Thread]:
    """The threads of these tasks by their keys: new ones are made, and others learn when they were asked.

    Their rows are locked, so that none is deleted before it has its task.
    """
    in_order = sorted(found, key=lambda one: one.exchange.asked_at)
    threads = _lock_threads_of(found)
    # Of several tasks of a new thread, and of several readers, the first one makes the row. The row of another
    # reader may be deleted before it is locked here.
    while new := [one for one in in_order if one.key not in threads]:
        Thread.objects.bulk_create(map(_begin, new), ignore_conflicts=True)
        threads = _lock_threads_of(found)
    for one in found:
        thread = threads[one.key]
        if one.last_asked_at > thread.last_asked_at:
            thread.last_asked_at = one.last_asked_at
            later = Thread.objects.filter(pk=thread.pk, last_asked_at__lt=one.last_asked_at)
            later.update(last_asked_at=one.last_asked_at, archived_at=None)
        if one.exchange.asked_at < thread.began_at:
            thread.began_at = one.exchange.asked_at
            Thread.objects.filter(pk=thread.pk, began_at__gt=thread.began_at).update(began_at=thread.began_at)
    return threads


def _begin(first: _Read) -> Thread:
    asked_at = first.exchange.asked_at
    return Thread(**first.key._asdict(), title=first.title, began_at=asked_at, last_asked_at=first.last_asked_at)


def _lock_threads_of(found: Sequence[_Read]) -> dict[ThreadKey, Thread]:
    keys = {one.key for one in found}
    rows = Thread.objects.filter(
        caller__in={one.caller_id for one in keys}, context_id__in={one.context_id for one in keys}
    )
    by_key = {ThreadKey(row.caller_id, row.agent_id, row.context_id): row for row in lock_threads(rows)}
    return {key: row for key, row in by_key.items() if key in keys}


def _readable(rows: Sequence[StoredTask]) -> list[Task]:
    """The tasks of rows, without those that no release up to this one can read."""
    ours = [row for row in rows if row.schema_version <= VERSION]
    return [task for task in read_tasks(ours) if task is not None]


def _agents_by_handle(handles: Iterable[str]) -> dict[str, int]:
    """The agents of tasks whose turn has no row, such as asks that were refused often, by handle in lower case."""
    wanted = {one.lower() for one in handles}
    if not wanted:
        return {}
    return dict(Agent.objects.kept().filter(handle_key__in=wanted).values_list("handle_key", "pk"))


def _searched(text: str) -> str:
    return text[:SEARCHED_CHARS].replace("\0", " ")


def _title_of(question: str) -> str:
    """The beginning of a question as it was typed, in one line: a parser of Markdown would slow the start."""
    line = " ".join(question[:SEARCHED_CHARS].replace("\0", "").split())
    return Truncator(line).chars(TITLE_CHARS) or NO_TEXT
