"""The journal: what it holds and for how long, its rows of other releases, and ends written by the ledger."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from django.db import IntegrityError, connection, transaction

from a2a_bridge import jobs
from a2a_bridge.models import StoredEvent, StoredTask
from a2a_bridge.service.tasks import journal, journal_rows
from a2a_bridge.service.tasks.journal import JournalTaskStore
from a2a_bridge.service.tasks.pieces import plain_end
from a2a_bridge.service.tasks.redis import IndexEntry, spent
from a2a_bridge.service.tasks.store import TaskQuery
from a2a_bridge.wire.task import State, Task, after
from accounts.models import User
from agents.core.errors import Unavailable
from agents.core.ledger.batch import commit
from agents.core.ledger.work import Settle
from agents.core.types import SettledTurn
from agents.models import Turn
from agents.models.choices import Outcome
from kit.clock import iso
from tests.contracts.rows import COMPLETED, HOME, admitted, ask, published
from tests.contracts.stored_tasks import (
    HANDLE,
    at,
    chunk,
    ended,
    in_database,
    keep,
    opened_journal,
    state,
    story,
    task,
)
from tests.contracts.test_task_store_redis import written_before

pytestmark = [pytest.mark.ledger, pytest.mark.django_db(transaction=True)]


@pytest.fixture
async def store() -> AsyncIterator[JournalTaskStore]:
    async with opened_journal() as journal:
        yield journal


def row(task_id: str = "task-1") -> StoredTask:
    return StoredTask.objects.get(pk=task_id)


async def change(task_id: str = "task-1", **columns: Any) -> None:
    await in_database(lambda: StoredTask.objects.filter(pk=task_id).update(**columns))


def days_ago(days: float) -> datetime:
    return datetime.now(UTC) - timedelta(days=days)


async def test_a_chunk_adds_an_event_and_leaves_the_snapshot(store: JournalTaskStore) -> None:
    made = await keep(store, task(), story(chunks=1, end=None))
    before = await in_database(row)
    made = after(made, [chunk(3)])
    await store.append(made, [chunk(3)])
    now = await in_database(row)
    assert (now.snapshot, now.snapshot_seq, now.seq) == (before.snapshot, before.snapshot_seq, 3)
    assert await store.find("task-1", caller_id=1) == made
    done = after(made, [state(4, State.COMPLETED)])
    await store.append(done, [state(4, State.COMPLETED)])
    now = await in_database(row)
    assert (now.snapshot_seq, now.has_ended, now.state) == (4, True, "completed")


async def test_a_snapshot_that_is_written_between_two_looks_hides_no_event(store: JournalTaskStore) -> None:
    made = await keep(store, task(), story(chunks=3, end=None))
    last = state(made.seq + 1, State.COMPLETED)
    writes = [journal_rows.Write(after(made, [last]), [last])]

    def write_before_the_second_look(execute: Any, sql: str, *rest: Any) -> Any:
        if writes and "storedevent" in sql:
            journal_rows.write([writes.pop()])
        return execute(sql, *rest)

    def find() -> Task | None:
        with connection.execute_wrapper(write_before_the_second_look):
            return journal_rows.find("task-1", 1, days_ago(1))

    assert await in_database(find) == made
    assert not writes


async def test_tasks_are_gone_when_their_days_are_over(store: JournalTaskStore) -> None:
    await keep(store, task("old"), story())
    await keep(store, task("young"), story())
    await change("old", updated_at=days_ago(7.01))
    await change("young", updated_at=days_ago(6.99))
    assert await store.find("old", caller_id=1) is None
    assert await store.find("young", caller_id=1) is not None
    page = await store.page(TaskQuery(caller_id=1, handle=HANDLE))
    assert ([one.id for one in page.tasks], page.total) == (["young"], 1)
    assert await in_database(lambda: jobs.forget_tasks(7)) == 1
    assert await in_database(lambda: jobs.forget_tasks(7)) == 0
    assert await in_database(lambda: set(StoredEvent.objects.values_list("task_id", flat=True))) == {"young"}


async def test_a_callers_oldest_finished_tasks_go_when_there_are_too_many(store: JournalTaskStore) -> None:
    for number in range(12):
        await keep(store, task(f"task-{number:02}"), story())
        await change(f"task-{number:02}", updated_at=days_ago(3 - number / 10))
    await keep(store, task("open"))
    await change("open", updated_at=days_ago(5))
    await keep(store, ended("other", caller_id=2))
    trim: Callable[[], int] = lambda: journal.trim(tasks_a_caller=10)  # noqa: E731
    assert await in_database(trim) == 2
    assert await in_database(trim) == 0
    kept = await in_database(lambda: set(StoredTask.objects.values_list("pk", flat=True)))
    assert kept == {"open", "other", *(f"task-{number:02}" for number in range(2, 12))}


async def test_a_callers_oldest_finished_tasks_go_when_they_weigh_too_much(store: JournalTaskStore) -> None:
    for number in range(5):
        events = [state(1, State.WORKING), chunk(2, "x" * 10_000), state(3, State.COMPLETED)]
        await keep(store, task(f"task-{number}"), events)
        await change(f"task-{number}", updated_at=days_ago(3 - number / 10))
    held = await in_database(row)
    assert 20_000 < held.snapshot_bytes + held.events_bytes < 24_000
    assert await in_database(lambda: journal.trim(bytes_a_caller=75_000)) == 2
    assert await store.find("task-1", caller_id=1) is None
    assert await store.find("task-2", caller_id=1) is not None
    assert await in_database(jobs.trim_tasks) == 0


async def test_a_task_that_may_wait_for_an_approval_is_not_given_up(store: JournalTaskStore) -> None:
    await keep(store, task(), story(end=State.INPUT_REQUIRED))
    for age, gone in ((timedelta(minutes=74), 0), (timedelta(minutes=76), 1)):
        await change(updated_at=datetime.now(UTC) - age)
        assert await in_database(lambda: journal.trim(tasks_a_caller=0)) == gone


def test_redis_gives_up_no_task_that_may_wait_for_an_approval() -> None:
    ages = {"young": timedelta(minutes=74), "old": timedelta(minutes=76)}
    lines = [
        IndexEntry(iso(datetime.now(UTC) - age), State.INPUT_REQUIRED, HANDLE, "c", 2**52, 1, name)
        for name, age in ages.items()
    ]
    assert [one.id for one in spent(lines, most=0, most_bytes=0)] == ["old"]


@contextmanager
def resumed_meanwhile() -> Iterator[None]:
    """The first event of a task goes: that is when its caller answers, and its agent goes on."""
    is_resumed = False

    def resume(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal is_resumed
        if not is_resumed and sql.startswith("DELETE"):
            is_resumed = True
            StoredTask.objects.update(state="working", seq=6, updated_at=datetime.now(UTC))
            StoredEvent.objects.create(task_id="task-1", seq=6, body="{}")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(resume):
        yield
    assert is_resumed


@pytest.mark.parametrize("forget", [lambda: journal.trim(tasks_a_caller=0), lambda: journal.forget_old(7)])
async def test_a_task_that_goes_on_while_old_ones_go_stays(
    store: JournalTaskStore, forget: Callable[[], int]
) -> None:
    await keep(store, task(), story(end=State.INPUT_REQUIRED))
    await change(updated_at=days_ago(8))

    def forgets_none() -> bool:
        with resumed_meanwhile():
            return forget() == 0

    assert await in_database(forgets_none)
    assert (await in_database(row)).state == "working"
    assert await in_database(StoredEvent.objects.filter(task_id="task-1", seq=6).exists)


async def test_tasks_go_with_their_callers_account(store: JournalTaskStore) -> None:
    made = await keep(store, task(), story(end=None))
    await keep(store, ended("other", caller_id=2))
    await in_database(lambda: User.objects.get(pk=1).delete())
    assert await store.find("task-1", caller_id=1) is None
    await store.append(after(made, [chunk(5)]), [chunk(5)])
    await store.put(task("task-2"))
    left = await in_database(lambda: list(StoredTask.objects.values_list("pk", flat=True)))
    assert left == ["other"]
    assert await in_database(lambda: set(StoredEvent.objects.values_list("task_id", flat=True))) == set()


def _written_before(**members: Any) -> None:
    """A row as a journal of version 1 would hold it: a snapshot, no events."""
    is_open = members.get("state") == "working"
    StoredTask.objects.create(
        id="task-1",
        caller_id=1,
        handle=HANDLE,
        context_id="m-1",
        chat_id="chat-1",
        home="",
        state=members.get("state", "completed"),
        has_ended=not is_open,
        updated_at=datetime(2030, 1, 1, tzinfo=UTC),
        seq=0,
        snapshot=written_before(**members).decode(),
        snapshot_seq=0,
        snapshot_bytes=300,
        events_bytes=0,
        schema_version=1,
    )


async def test_a_record_of_version_1_is_read_and_written_anew_with_its_next_event(
    store: JournalTaskStore,
) -> None:
    await in_database(lambda: _written_before(state="working", text=""))
    found = await store.find("task-1", caller_id=1)
    assert found is not None
    assert (found.state, found.context_id, found.seq) == (State.WORKING, "m-1", 0)
    assert (await in_database(row)).schema_version == 1
    said = [chunk(1, "late")]
    await store.append(after(found, said), said)
    now = await in_database(row)
    assert (now.schema_version, now.snapshot_seq) == (2, 1)
    assert await store.find("task-1", caller_id=1) == after(found, said)


async def test_a_finished_record_of_version_1_is_read(store: JournalTaskStore) -> None:
    await in_database(_written_before)
    found = await store.find("task-1", caller_id=1)
    assert found is not None
    assert found.reply is not None
    assert [part.text for part in found.reply.parts] == ["so"]
    page = await store.page(TaskQuery(caller_id=1, handle=HANDLE))
    assert list(page.tasks) == [found]


async def test_a_task_of_a_later_release_is_not_touched(
    store: JournalTaskStore, caplog: pytest.LogCaptureFixture
) -> None:
    made = await keep(store, task(), story(end=None))
    await keep(store, task("task-2"))
    await change(schema_version=3, snapshot="whatever it may be")
    later = after(made, [chunk(5)])
    with pytest.raises(Unavailable):
        await store.find("task-1", caller_id=1)
    results = await asyncio.gather(
        store.append(later, [chunk(5)]),
        store.replace(later, [chunk(5)], expected_seq=4),
        keep(store, task("task-2"), story()),
        return_exceptions=True,
    )
    assert [type(one) for one in results] == [Unavailable, Unavailable, Task]
    await in_database(lambda: _settled_with(store, later, [chunk(5)]))
    now = await in_database(row)
    assert (now.schema_version, now.snapshot, now.seq) == (3, "whatever it may be", 4)
    assert await in_database(StoredEvent.objects.filter(task_id="task-1").count) == 4
    assert "task.of_a_later_release" in caplog.messages


async def test_a_broken_record_is_absent_and_logged(
    store: JournalTaskStore, caplog: pytest.LogCaptureFixture
) -> None:
    made = await keep(store, task(), story())
    await keep(store, task("task-2"), story(end=None))
    await change(snapshot='{"id": 7')
    await in_database(lambda: StoredEvent.objects.filter(task_id="task-2", seq=3).update(body="[]"))
    for task_id in ("task-1", "task-2"):
        assert await store.find(task_id, caller_id=1) is None
    assert (await store.page(TaskQuery(caller_id=1, handle=HANDLE))).tasks == []
    made = await keep(store, task("task-2"))
    assert await store.events_after(made, 2) is None
    assert caplog.messages.count("task.unreadable") == 5


# What the ledger writes.


def _settled_with(store: JournalTaskStore, made: Task, events: Any) -> SettledTurn:
    """Settle a turn, and the task with it."""
    turn = admitted(ask(published(), "caller-1"))
    result = commit([Settle(turn, COMPLETED, lambda _: store.writes(made, events))], home=HOME).results[0]
    assert isinstance(result, SettledTurn)
    return result


async def test_the_end_of_a_task_is_in_the_journal_with_the_end_of_its_turn(store: JournalTaskStore) -> None:
    """The end is durable by the commit alone, whatever happens to the process afterwards."""
    made, end = await keep(store, task(), story(end=None)), story()[4:]
    await in_database(lambda: _settled_with(store, after(made, end), end))
    assert await store.find("task-1", caller_id=1) == after(task(), story())
    assert await store.events_after(made, 0) == story()


async def test_an_unannounced_task_is_written_whole_with_its_end(store: JournalTaskStore) -> None:
    await in_database(lambda: _settled_with(store, after(task(), story()), story()))
    assert await store.find("task-1", caller_id=1) == after(task(), story())
    assert await store.events_after(task(), 0) == story()


async def test_a_plain_reply_is_one_row_and_can_be_read(store: JournalTaskStore) -> None:
    replied = plain_end(task(), SettledTurn(Outcome.COMPLETED, "", "so"), at(9))
    await in_database(lambda: _settled_with(store, replied, ()))
    assert await store.find("task-1", caller_id=1) == replied
    assert await store.events_after(replied, 0) is None
    assert await in_database(StoredEvent.objects.count) == 0


async def test_an_end_written_again_or_late_changes_nothing(store: JournalTaskStore) -> None:
    done = await keep(store, task(), story())
    other = after(task(), [*story(end=None), state(5, State.FAILED, "too late")])
    for made in (done, other, after(other, [chunk(6)])):
        await in_database(lambda made=made: _settled_with(store, made, [*story(), chunk(6)]))
    assert await store.find("task-1", caller_id=1) == done
    assert await store.events_after(done, 0) == story()


async def test_an_end_that_overlaps_what_is_there_adds_the_rest(store: JournalTaskStore) -> None:
    await keep(store, task(), story()[:2])
    await in_database(lambda: _settled_with(store, after(task(), story()), story()))
    assert await store.events_after(task(), 0) == story()


async def test_a_transaction_that_fails_leaves_neither_end(store: JournalTaskStore) -> None:
    made, end = await keep(store, task(), story(end=None)), story()[4:]

    def settle_and_fail() -> None:
        with transaction.atomic():
            _settled_with(store, after(made, end), end)
            raise IntegrityError("as when the connection breaks")

    with pytest.raises(IntegrityError):
        await in_database(settle_and_fail)
    assert await store.find("task-1", caller_id=1) == made
    assert await in_database(Turn.objects.filter(outcome="completed").count) == 0


async def test_the_end_of_a_deleted_callers_task_is_not_written_and_its_turn_ends(store: JournalTaskStore) -> None:
    gone = msgspec.structs.replace(after(task(), story()), caller_id=999_999)
    settled = await in_database(lambda: _settled_with(store, gone, story()))
    assert settled.outcome == "completed"
    assert await in_database(StoredTask.objects.count) == 0
    assert await in_database(StoredEvent.objects.count) == 0
