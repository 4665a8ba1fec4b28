"""One contract, every memory."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import redis.asyncio

from a2a_bridge.service.tasks.journal import JournalTaskStore
from a2a_bridge.service.tasks.memory import MemoryTaskStore
from a2a_bridge.service.tasks.redis import RedisTaskStore
from a2a_bridge.service.tasks.store import TaskQuery, TaskStore
from a2a_bridge.wire.task import State, Task, TaskEvent, after
from kit.async_db import db_call
from lab.hub_storage import DistributedStorages
from tests.contracts.stored_tasks import (
    HANDLE,
    Clock,
    at,
    chunk,
    ended,
    keep,
    make_callers,
    state,
    story,
    task,
    with_message,
)

GROWN = [pytest.mark.distributed, pytest.mark.slow]
JOURNAL = [pytest.mark.ledger, pytest.mark.django_db(transaction=True)]

Pair = tuple[TaskStore, TaskStore]


@pytest.fixture
def redis_url(distributed_storages: DistributedStorages) -> str:
    return distributed_storages.servers.redis_url(500)


@asynccontextmanager
async def _redis(url: str) -> AsyncIterator[Pair]:
    async with redis.asyncio.Redis.from_url(url) as server:
        await server.flushdb()
    pair = RedisTaskStore(url), RedisTaskStore(url)
    yield pair
    for store in pair:
        await store.close()


@pytest.fixture(
    params=["memory", pytest.param("redis", marks=GROWN), pytest.param("journal", marks=JOURNAL)],
)
async def pair(request: pytest.FixtureRequest) -> AsyncIterator[Pair]:
    """A store as two processes see it; in memory that is one."""
    if request.param == "memory":
        store = MemoryTaskStore(Clock())
        yield store, store
    elif request.param == "redis":
        async with _redis(request.getfixturevalue("redis_url")) as stores:
            yield stores
    else:
        await db_call(make_callers)()
        journals = JournalTaskStore(kept_days=7), JournalTaskStore(kept_days=7)
        yield journals
        for journal in journals:
            await journal.close()


@pytest.fixture
def store(pair: Pair) -> TaskStore:
    return pair[0]


async def found(store: TaskStore, task_id: str = "task-1", caller_id: int = 1) -> Task:
    kept = await store.find(task_id, caller_id=caller_id)
    assert kept is not None
    return kept


async def events_of(store: TaskStore, made: Task, seq: int = 0) -> list[TaskEvent]:
    events = await store.events_after(made, seq)
    assert events is not None
    return list(events)


async def test_a_task_is_found_by_the_caller_that_made_it_alone(pair: Pair) -> None:
    await pair[0].put(task())
    assert await found(pair[1]) == task()
    assert await pair[1].find("task-1", caller_id=2) is None
    assert await pair[1].find("task-2", caller_id=1) is None


async def test_what_happens_is_kept_in_order_and_without_a_gap(pair: Pair) -> None:
    events = story(chunks=200)
    made = await keep(pair[0], task(), events)
    assert await found(pair[1]) == made == after(task(), events)
    assert await events_of(pair[1], made) == events
    assert await events_of(pair[1], made, 150) == events[150:]
    assert await events_of(pair[1], made, made.seq) == []


async def test_what_happens_in_the_middle_is_found_at_once(pair: Pair) -> None:
    made = task()
    await pair[0].put(made)
    for event in story(chunks=70, end=None):
        made = after(made, [event])
        await pair[0].append(made, [event])
        assert await found(pair[1]) == made


async def test_events_written_again_with_later_ones_are_there_once(store: TaskStore) -> None:
    events = story(chunks=5, end=None)
    made = await keep(store, task(), events[:3])
    await store.append(made, events[:3])
    await store.append(after(made, events[3:]), events)
    await store.append(made, events[1:3])
    assert await found(store) == after(task(), events)
    assert await events_of(store, made) == events


async def test_appends_at_once_do_not_mix_tasks_up(pair: Pair) -> None:
    made = [task(f"task-{number}", caller_id=1 + number % 2) for number in range(30)]
    ends = await asyncio.gather(*(keep(pair[number % 2], one, story(number)) for number, one in enumerate(made)))
    for number, end in enumerate(ends):
        assert await found(pair[0], end.id, end.caller_id) == end
        assert await events_of(pair[0], end) == story(number)


async def test_a_task_put_again_stays_what_it_became(store: TaskStore) -> None:
    made = await keep(store, task(), story(end=None))
    await store.put(task())
    assert await found(store) == made


async def test_a_task_that_ended_stays_as_it_ended(store: TaskStore) -> None:
    made = await keep(store, task(), story())
    late = after(made, [chunk(made.seq + 1, "late")])
    await store.append(late, [chunk(made.seq + 1, "late")])
    await store.put(late)
    assert not await store.replace(late, [chunk(made.seq + 1, "late")], expected_seq=made.seq)
    assert await found(store) == made
    assert await events_of(store, made) == story()


async def test_an_unannounced_task_is_kept_with_its_end_alone(store: TaskStore) -> None:
    await store.put(ended())
    assert await found(store) == ended()
    assert await events_of(store, ended(), 3) == []
    assert await store.events_after(ended(), 2) is None
    assert await store.events_after(ended(), 4) is None
    assert await store.events_after(task("never-put"), 0) is None


async def test_a_replacement_keeps_what_it_brings_besides_events(pair: Pair) -> None:
    asking = await keep(pair[0], task(), story(end=State.INPUT_REQUIRED))
    working = state(asking.seq + 1, State.WORKING)
    begun = after(with_message(asking, "this"), [working])
    assert await pair[1].replace(begun, [working], expected_seq=asking.seq)
    assert await found(pair[0]) == begun
    assert await events_of(pair[0], begun, asking.seq) == [working]


async def test_only_one_of_several_replacements_at_once_stands(pair: Pair) -> None:
    for number in range(20):
        asking = await keep(pair[0], task(f"task-{number}"), story(end=State.INPUT_REQUIRED))
        ends = [state(asking.seq + 1, State.CANCELED, str(n)) for n in range(6)]
        tries = [
            pair[n % 2].replace(after(asking, [end]), [end], expected_seq=asking.seq) for n, end in enumerate(ends)
        ]
        won = await asyncio.gather(*tries)
        assert won.count(True) == 1
        assert await found(pair[0], asking.id) == after(asking, [ends[won.index(True)]])


async def test_a_replacement_of_what_is_not_there_is_refused(store: TaskStore) -> None:
    events = story(end=None)
    assert not await store.replace(after(task(), events), events, expected_seq=0)
    assert await store.find("task-1", caller_id=1) is None


async def test_an_unannounced_task_can_be_dropped(store: TaskStore) -> None:
    await keep(store, task(), story(end=None))
    await store.drop(task())
    await store.drop(task("never-put"))
    assert await store.find("task-1", caller_id=1) is None
    assert (await store.page(TaskQuery(caller_id=1, handle=HANDLE))).total == 0


async def test_pages_follow_each_other_from_the_last_set_on(pair: Pair) -> None:
    order = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5]
    made = [task(f"task-{n:02}", updated_at=at(when)) for n, when in enumerate(order)]
    await asyncio.gather(*(pair[0].put(one) for one in made))
    wanted = sorted(made, key=lambda one: (one.updated_at, one.id), reverse=True)
    seen: list[Task] = []
    before = None
    for _ in range(3):
        page = await pair[1].page(TaskQuery(caller_id=1, handle=HANDLE, before=before, limit=4))
        assert page.total == len(made)
        seen += page.tasks
        assert page.is_last == (len(seen) == len(made))
        before = seen[-1].updated_at, seen[-1].id
    assert seen == wanted


async def test_a_page_shows_what_was_asked_for(store: TaskStore) -> None:
    await keep(store, task("other-caller", caller_id=2))
    await keep(store, task("other-agent", handle="o/t"))
    await keep(store, task("other-context", context_id="context-2"))
    await keep(store, task("done", updated_at=at(5)), story())
    await keep(store, task("asking"), story(chunks=8, end=State.INPUT_REQUIRED))

    async def ids(**wanted: Any) -> list[str]:
        page = await store.page(TaskQuery(caller_id=1, **{"handle": HANDLE} | wanted))
        assert page.total == len(page.tasks)
        return [one.id for one in page.tasks]

    assert await ids() == ["asking", "done", "other-context"]
    assert await ids(context_id="context-2") == ["other-context"]
    assert await ids(state=State.COMPLETED) == ["done"]
    assert await ids(since=at(5)) == ["asking", "done"]
    assert await ids(since=at(6)) == ["asking"]
    assert await ids(handle="o/t") == ["other-agent"]
    assert await ids(context_id="absent") == []
    assert await ids(prefixes=("do", "a")) == ["asking", "done"]
    assert await ids(other_prefixes=("do", "a")) == ["other-context"]


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.deep) for seed in range(1, 6))])
async def test_whatever_happens_it_is_what_a_plain_table_would_hold(pair: Pair, seed: int) -> None:
    chance = random.Random(seed)
    table: dict[str, tuple[Task, list[TaskEvent]]] = {}
    for _ in range(150):
        store, task_id = chance.choice(pair), f"task-{chance.randrange(6)}"
        if task_id not in table:
            table[task_id] = task(task_id, context_id=f"context-{chance.randrange(2)}"), []
            await store.put(table[task_id][0])
            continue
        kept, events = table[task_id]
        match chance.choice(["chunk", "status", "again", "replace", "lose", "drop"]):
            case "chunk" | "status" as kind:
                new = _random_events(chance, kept.seq, kind)
                became = after(kept, new)
                await store.append(became, [*events[-chance.randrange(3) or len(events) :], *new])
                if not kept.is_terminal:
                    table[task_id] = became, [*events, *new]
            case "again":
                await store.append(kept, events[-3:])
            case "replace":
                new = [state(kept.seq + 1, chance.choice(list(State)), "again")]
                became = after(with_message(kept, "more"), new)
                won = await store.replace(became, new, expected_seq=kept.seq)
                assert won != kept.is_terminal
                if won:
                    table[task_id] = became, [*events, *new]
            case "lose":
                new = [state(kept.seq, State.CANCELED)]
                assert not await store.replace(after(kept, new), new, expected_seq=kept.seq - 1)
            case "drop" if chance.random() < 0.2:
                await store.drop(kept)
                del table[task_id]
        await _check(chance.choice(pair), table, chance)


def _random_events(chance: random.Random, seq: int, kind: str) -> list[TaskEvent]:
    if kind == "chunk":
        return [chunk(seq + n, str(n)) for n in range(1, chance.randrange(2, 5))]
    ends = [State.WORKING] * 6 + [State.INPUT_REQUIRED, State.COMPLETED]
    return [state(seq + 1, chance.choice(ends), chance.choice(["", "note"]))]


async def _check(store: TaskStore, table: dict[str, tuple[Task, list[TaskEvent]]], chance: random.Random) -> None:
    task_id = f"task-{chance.randrange(6)}"
    kept, events = table.get(task_id, (None, []))
    assert await store.find(task_id, caller_id=1) == kept
    if kept is not None:
        seq = chance.randrange(kept.seq + 1)
        assert await events_of(store, kept, seq) == events[seq:]
    query = TaskQuery(caller_id=1, handle=HANDLE, context_id=chance.choice(["", "context-1"]), limit=3)
    page = await store.page(query)
    wanted = [one for one, _ in table.values() if query.takes(one)]
    wanted.sort(key=lambda one: (one.updated_at, one.id), reverse=True)
    assert (list(page.tasks), page.total, page.is_last) == (wanted[:3], len(wanted), len(wanted) <= 3)
