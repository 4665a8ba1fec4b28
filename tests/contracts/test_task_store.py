"""One contract, every memory."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import redis.asyncio

from a2a_bridge.tasks.memory import MemoryTaskStore
from a2a_bridge.tasks.record import OPEN_TTL_S, TASK_TTL_S, State, Task, TaskStore
from a2a_bridge.tasks.redis import RedisTaskStore
from agents.errors import Unavailable
from tests.homes import GrownHomes
from tests.servers import free_port

GROWN = [pytest.mark.grown, pytest.mark.slow]


class Clock:
    """A clock that moves when told to."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def task(task_id: str = "task-1", *, caller_id: int = 1, state: State = State.COMPLETED, text: str = "so") -> Task:
    return Task(
        id=task_id,
        caller_id=caller_id,
        handle="o/s",
        chat_id=f"chat-{task_id}",
        message_id="m",
        question=("what?",),
        state=state,
        updated_at="2026-01-01T00:00:00Z",
        text=text,
    )


@pytest.fixture
def redis_url(grown_homes: GrownHomes) -> str:
    return grown_homes.servers.redis_url(500)


@pytest.fixture(params=["memory", pytest.param("redis", marks=GROWN)])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[TaskStore]:
    if request.param == "memory":
        yield MemoryTaskStore(Clock())
        return
    url = request.getfixturevalue("redis_url")
    async with redis.asyncio.Redis.from_url(url) as server:
        await server.flushdb()
    kept = RedisTaskStore(url)
    yield kept
    await kept.close()


async def test_a_task_is_found_by_the_caller_that_made_it(store: TaskStore) -> None:
    await store.put(task())
    assert await store.find("task-1", caller_id=1) == task()


async def test_a_task_does_not_exist_for_anybody_else(store: TaskStore) -> None:
    await store.put(task())
    assert await store.find("task-1", caller_id=2) is None
    assert await store.find("task-2", caller_id=1) is None


async def test_the_end_replaces_the_beginning(store: TaskStore) -> None:
    await store.put(task(state=State.WORKING, text=""))
    await store.put(task())
    found = await store.find("task-1", caller_id=1)
    assert found is not None
    assert found.is_terminal


async def test_tasks_put_at_once_are_all_kept(store: TaskStore) -> None:
    for number in range(50):
        await store.put(task(f"task-{number}", caller_id=number % 3))
    found = [await store.find(f"task-{number}", caller_id=number % 3) for number in range(50)]
    assert None not in found


async def test_a_finished_task_is_gone_30_minutes_after_its_end() -> None:
    clock = Clock()
    store = MemoryTaskStore(clock)
    await store.put(task())
    clock.now += TASK_TTL_S - 1
    assert await store.find("task-1", caller_id=1) is not None
    clock.now += 1
    assert await store.find("task-1", caller_id=1) is None


async def test_an_open_task_whose_end_never_came_is_forgotten_too() -> None:
    clock = Clock()
    store = MemoryTaskStore(clock)
    await store.put(task(state=State.WORKING))
    clock.now += OPEN_TTL_S - 1
    assert await store.find("task-1", caller_id=1) is not None
    clock.now += 1
    assert await store.find("task-1", caller_id=1) is None


async def test_a_task_nobody_was_told_of_can_be_dropped(store: TaskStore) -> None:
    await store.put(task(state=State.WORKING))
    await store.drop(task())
    await store.drop(task("never-put"))
    assert await store.find("task-1", caller_id=1) is None


def test_a_task_weighs_what_its_texts_weigh_in_memory() -> None:
    assert task(text="x" * 1000 + "\U0001f980").size_bytes > 4_000
    many = msgspec.structs.replace(task(), question=("ab",) * 64)
    assert many.size_bytes > 64 * 50


async def test_a_callers_oldest_finished_tasks_go_first_when_they_fill_their_share() -> None:
    store = MemoryTaskStore(Clock(), max_bytes_a_caller=10_000)
    await store.put(task("open", state=State.WORKING))
    await store.put(task("other", caller_id=2))
    for number in range(20):
        await store.put(task(f"task-{number}", text="x" * 900))
    kept = [number for number in range(20) if await store.find(f"task-{number}", caller_id=1)]
    assert kept == list(range(kept[0], 20))
    assert 0 < kept[0] < 19
    assert await store.find("open", caller_id=1) is not None
    assert await store.find("other", caller_id=2) is not None


async def test_all_tasks_together_stay_within_the_memory() -> None:
    store = MemoryTaskStore(Clock(), max_bytes=20_000)
    for caller_id in range(40):
        await store.put(task(caller_id=caller_id, text="x" * 900))
    kept = [caller_id for caller_id in range(40) if await store.find("task-1", caller_id=caller_id)]
    assert kept == list(range(kept[0], 40))
    assert len(kept) * task(text="x" * 900).size_bytes <= 20_000


@pytest.mark.grown
@pytest.mark.slow
async def test_redis_lets_tasks_expire_and_keeps_only_so_many_of_a_caller(redis_url: str) -> None:
    async with redis.asyncio.Redis.from_url(redis_url) as server:
        await server.flushdb()
        store = RedisTaskStore(redis_url, tasks_a_caller=10)
        for number in range(25):
            await store.put(task(f"task-{number:02}"))
        kept = [number for number in range(25) if await store.find(f"task-{number:02}", caller_id=1)]
        assert kept == list(range(15, 25))
        assert 0 < await server.ttl(f"clawbridge:task:1:task-{kept[0]:02}") <= TASK_TTL_S
        await store.close()


async def test_a_store_out_of_reach_says_so_when_asked_and_never_fails_an_ask() -> None:
    store = RedisTaskStore(f"redis://127.0.0.1:{free_port()}/0")
    await store.put(task())
    with pytest.raises(Unavailable):
        await store.find("task-1", caller_id=1)
    await store.close()


def test_a_task_survives_its_encoding() -> None:
    original: Any = task(text="ä\n\u2028")
    assert msgspec.json.decode(msgspec.json.encode(original), type=Task) == original
