"""Writes of the journal that come together: in which transactions they are made, and which of them fail."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction

from a2a_bridge.models import StoredTask
from a2a_bridge.service.tasks import journal
from a2a_bridge.service.tasks.journal import JournalTaskStore
from a2a_bridge.service.tasks.journal_rows import Write
from a2a_bridge.wire.task import Task, after
from agents.core.errors import Unavailable
from tests.contracts.stored_tasks import in_database, keep, opened_journal, story, task

pytestmark = [pytest.mark.ledger, pytest.mark.django_db(transaction=True)]


@pytest.fixture
async def store() -> AsyncIterator[JournalTaskStore]:
    async with opened_journal() as journal:
        yield journal


async def test_many_writes_at_once_are_several_transactions_in_order(store: JournalTaskStore) -> None:
    names = [f"task-{number}" for number in range(40)]
    await asyncio.gather(*(keep(store, task(name), story(chunks=3)) for name in names))
    kept = await in_database(lambda: dict(StoredTask.objects.values_list("pk", "has_ended")))
    assert kept == dict.fromkeys(names, True)
    writes = [Write(task(name), story(chunks=3)) for name in names]
    parts = [*journal.in_parts(writes)]
    assert [one for part in parts for one in part] == writes
    assert {len(part) for part in parts} == {journal.ROWS_AT_ONCE // (1 + len(story(chunks=3)))}
    large = [Write(task("large"), story(chunks=journal.ROWS_AT_ONCE))]
    assert [*journal.in_parts([*writes[:1], *large, *writes[:1]])] == [writes[:1], large, writes[:1]]


async def test_what_was_written_before_the_database_was_lost_counts_as_written(store: JournalTaskStore) -> None:
    looks = iter(range(9))

    def fail_at_the_second(execute: Any, sql: str, *rest: Any) -> Any:
        if sql.startswith("SELECT") and "storedtask" in sql and next(looks):
            raise OperationalError("gone")
        return execute(sql, *rest)

    names = [f"task-{number}" for number in range(journal.ROWS_AT_ONCE // 4 * 2)]
    await store._thread.call(lambda: connection.execute_wrappers.append(fail_at_the_second))
    writing = [store.append(after(task(name), story(chunks=3)), story(chunks=3)) for name in names]
    outcomes = await asyncio.gather(*writing, return_exceptions=True)
    await store._thread.call(connection.execute_wrappers.clear)
    kept = await in_database(lambda: set(StoredTask.objects.values_list("pk", flat=True)))
    assert kept
    assert kept == {name for name, outcome in zip(names, outcomes, strict=True) if outcome is None}
    assert {type(outcome) for outcome in outcomes} == {type(None), Unavailable}


async def test_one_that_the_database_refuses_does_not_fail_its_neighbours(store: JournalTaskStore) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("SQLite takes every text of any length")
    refused = task("task-1", context_id="a\0b")
    results = await asyncio.gather(
        store.append(after(refused, story()), story()),
        keep(store, task("task-2"), story()),
        return_exceptions=True,
    )
    assert [type(one) for one in results] == [Unavailable, Task]


@pytest.mark.slow
@pytest.mark.usefixtures("short_lock_wait")
async def test_a_journal_whose_database_is_locked_says_so_and_is_there_again_after(
    store: JournalTaskStore,
) -> None:
    if connection.vendor == "postgresql":
        pytest.skip("PostgreSQL locks rows, and no other transaction holds these")
    made = await keep(store, task())

    def hold() -> None:
        with transaction.atomic():
            asyncio.run_coroutine_threadsafe(check(), loop).result()

    async def check() -> None:
        with pytest.raises(Unavailable):
            await store.append(after(made, story()), story())
        await store.put(task("task-2"))
        with pytest.raises(Unavailable):  # nothing more will happen to it
            await store.put(after(task("task-3"), story()))

    loop = asyncio.get_running_loop()
    await in_database(hold)
    await store.append(after(made, story()), story())
    assert await store.find("task-1", caller_id=1) == after(made, story())
