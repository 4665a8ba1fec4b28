"""One thread as its caller reads it: its questions with their answers, a bounded part at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import Q

from a2a_bridge.models import StoredTask, Thread, ThreadTask
from a2a_bridge.service.tasks.journal_rows import read_tasks
from a2a_bridge.service.tasks.stored import VERSION
from a2a_bridge.service.threads.exchanges import Exchange, read_exchange
from a2a_bridge.wire.task import Task
from agents.models import Turn

PART_TASKS = 200
PART_CHARS = 200_000
TEXT_CHARS = 12_000  # of one text on a page; files have all of it
SAID, FILES, NOTES, NOTE_CHARS = 50, 20, 20, 400
READ_AT_ONCE = 20
MAX_UNDER_WAY = 10


@dataclass(frozen=True, slots=True)
class UnderWay:
    """A question that is being answered."""

    chat_id: str
    task_id: str
    question: str
    asked_at: datetime


@dataclass(frozen=True, slots=True)
class ThreadPart:
    """Exchanges of a thread, the oldest first. `before`: for `read_part`, the part before this one."""

    exchanges: Sequence[Exchange]
    before: int | None = None


def read_part(
    thread: Thread, before: int | None = None, *, tasks: int = PART_TASKS, chars: int = PART_CHARS
) -> ThreadPart:
    """The last exchanges of a thread, or those before a task that an earlier part named.

    A part has at most `tasks` exchanges, and ends once their texts have `chars` characters.
    """
    found: list[tuple[int, Exchange]] = []
    size = 0
    for pk, whole in walk(thread, before, newest_first=True, at_most=tasks + 1):
        exchange = cut(whole)
        size += exchange.size_chars
        if found and (len(found) == tasks or size > chars):
            return ThreadPart([one for _, one in reversed(found)], found[-1][0])
        found.append((pk, exchange))
    return ThreadPart([one for _, one in reversed(found)])


def cut(exchange: Exchange) -> Exchange:
    """The exchange with the beginnings of long texts and lists, for a page."""
    said = [
        replace(one, text=one.text[:TEXT_CHARS], is_cut=len(one.text) > TEXT_CHARS, files=one.files[:FILES])
        for one in exchange.said[:SAID]
    ]
    notes = [note[:NOTE_CHARS] for note in exchange.notes[:NOTES]]
    return replace(exchange, said=said, notes=notes, reason=exchange.reason[:TEXT_CHARS])


def read_exchange_of(task_id: str, caller_id: int) -> Exchange | None:
    """The exchange of one task of a caller; None if the journal does not keep it."""
    row = ThreadTask.objects.filter(task=task_id, thread__caller=caller_id).select_related("task").first()
    task = _task_of(row.task) if row else None
    return read_exchange(task, row.asked_at) if row and task else None


def find_under_way(thread: Thread) -> list[UnderWay]:
    """The questions of a thread that are being answered now."""
    asked = Turn.objects.open().filter(caller=thread.caller_id, agent=thread.agent_id)
    open_turns = asked.filter(context_id=thread.context_id).order_by("pk")[:MAX_UNDER_WAY]
    return [UnderWay(one.chat_id, one.task_id, one.question, one.asked_at) for one in open_turns]


def walk(
    thread: Thread, before: int | None = None, *, newest_first: bool = False, at_most: int | None = None
) -> Iterator[tuple[int, Exchange]]:
    """Read the exchanges of a thread, a few at a time. `before`: begin behind the exchange with this key."""
    for pk, asked_at, task in walk_tasks(thread, before, newest_first=newest_first, at_most=at_most):
        yield pk, read_exchange(task, asked_at)


def walk_tasks(
    thread: Thread, before: int | None = None, *, newest_first: bool = False, at_most: int | None = None
) -> Iterator[tuple[int, datetime, Task]]:
    """Read the tasks of a thread in the order in which they were asked, each with its key and time."""
    order = ("-asked_at", "-pk") if newest_first else ("asked_at", "pk")
    rows = thread.tasks.order_by(*order)
    if before is not None:
        start = thread.tasks.filter(pk=before).values_list("asked_at", flat=True).first()
        if start is None:
            return
        rows = rows.filter(Q(asked_at__lt=start) | Q(asked_at=start, pk__lt=before))
    keys = list(rows.values_list("pk", flat=True)[:at_most])
    for begin in range(0, len(keys), READ_AT_ONCE):
        some = keys[begin : begin + READ_AT_ONCE]
        for row in ThreadTask.objects.filter(pk__in=some).order_by(*order).select_related("task"):
            if (task := _task_of(row.task)) is not None:
                yield row.pk, row.asked_at, task


def _task_of(row: StoredTask) -> Task | None:
    return read_tasks([row])[0] if row.schema_version <= VERSION else None
