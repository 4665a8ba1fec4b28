"""Tasks for the stores to keep, and the events that happen to them."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import msgspec
from django.core.management.color import no_style
from django.db import connection

from a2a_bridge.service.tasks.journal import JournalTaskStore
from a2a_bridge.service.tasks.store import TaskStore
from a2a_bridge.wire.task import (
    Artifact,
    ArtifactEvent,
    Message,
    Role,
    State,
    StatusEvent,
    Task,
    TaskEvent,
    after,
)
from accounts.models import User
from agents.transcript.pieces import Part
from kit.async_db import db_call

T = TypeVar("T")

HANDLE = "o/s"


class Clock:
    """A clock that moves when told to."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def at(number: int) -> str:
    """The timestamp of the so many-th millisecond."""
    return f"2030-01-01T00:00:{number // 1000:02}.{number % 1000:03}Z"


def task(task_id: str = "task-1", **members: Any) -> Task:
    """A task as it was made."""
    said = Message("m", Role.USER, (Part(text="what?"), Part(data={"x": [None, "ä\n\u2028"]})))
    made: dict[str, Any] = {
        "id": task_id,
        "caller_id": 1,
        "handle": HANDLE,
        "context_id": "context-1",
        "chat_id": f"chat-{task_id}",
        "home": "here",
        "state": State.SUBMITTED,
        "updated_at": at(0),
        "history": (said,),
    }
    return Task(**made | members)


def chunk(seq: int, text: str = "x") -> ArtifactEvent:
    """A piece of the reply."""
    return ArtifactEvent(seq, at(seq), Artifact("reply-1", (Part(text=text),)), append=seq > 2)


def state(seq: int, value: State, text: str = "") -> StatusEvent:
    """The state is set, with words or without."""
    words = Message(f"said-{seq}", Role.AGENT, (Part(text=text),)) if text else None
    return StatusEvent(seq, at(seq), value, words)


def story(chunks: int = 3, end: State | None = State.COMPLETED) -> list[TaskEvent]:
    """The events of a task: the agent works, replies in pieces, and ends, or asks."""
    events: list[TaskEvent] = [state(1, State.WORKING), *[chunk(seq, f"{seq} ") for seq in range(2, chunks + 2)]]
    return [*events, state(chunks + 2, end, "so")] if end else events


async def in_database(function: Callable[[], T]) -> T:
    """Call a function that uses the database."""
    return await db_call(function)()


def make_callers() -> None:
    """The callers 1 and 2, whose tasks these are."""
    for number in (1, 2):
        User.objects.get_or_create(pk=number, defaults={"login": f"caller-{number}", "github_id": number})
    with connection.cursor() as cursor:  # the next user gets the id after these
        for statement in connection.ops.sequence_reset_sql(no_style(), [User]):
            cursor.execute(statement)


async def keep(store: TaskStore, made: Task, events: Sequence[TaskEvent] = ()) -> Task:
    """Put a task and tell the store each event as it happens; the task it became."""
    await store.put(made)
    for event in events:
        made = after(made, [event])
        await store.append(made, [event])
    return made


def ended(task_id: str = "task-1", text: str = "so", **members: Any) -> Task:
    """A task that ended before any caller was told of it."""
    events = [state(1, State.WORKING), chunk(2, text), state(3, State.COMPLETED)]
    return after(task(task_id, **members), events)


def with_message(made: Task, text: str) -> Task:
    """The same with one more message of its caller."""
    return msgspec.structs.replace(made, history=(*made.history, Message("m2", Role.USER, (Part(text=text),))))


@asynccontextmanager
async def opened_journal() -> AsyncIterator[JournalTaskStore]:
    """A journal that keeps the tasks of `make_callers` for a week."""
    await in_database(make_callers)
    journal = JournalTaskStore(kept_days=7)
    yield journal
    await journal.close()
