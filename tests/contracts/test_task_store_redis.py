"""Tasks in Redis: what it holds, what it gives up, what the release before left there, and Redis away."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import redis.asyncio

from a2a_bridge.service.tasks.redis import RedisTaskStore
from a2a_bridge.service.tasks.store import ASKING_TTL_S, ENDED_TTL_S, OPEN_TTL_S, TaskQuery
from a2a_bridge.wire.task import State, after
from agents.core.errors import Unavailable
from agents.transcript.pieces import Part
from lab.hub_storage import DistributedStorages
from lab.processes import free_port
from tests.contracts.stored_tasks import HANDLE, chunk, ended, keep, state, story, task
from tests.listening import listening

KEY = "clawbridge:tasks:1:task-1"
OLD_KEY = "clawbridge:task:1:task-1"

Server = Any  # redis.asyncio.Redis says its answers may be awaitable or not


@pytest.fixture
async def server(distributed_storages: DistributedStorages) -> AsyncIterator[Server]:
    async with redis.asyncio.Redis.from_url(distributed_storages.servers.redis_url(501)) as client:
        await client.flushdb()
        yield client


@pytest.fixture
async def store(distributed_storages: DistributedStorages) -> AsyncIterator[RedisTaskStore]:
    kept = RedisTaskStore(distributed_storages.servers.redis_url(501), tasks_a_caller=10, bytes_a_caller=100_000)
    yield kept
    await kept.close()


def written_before(**members: Any) -> bytes:
    """A task as the release before wrote it."""
    old = {
        "id": "task-1",
        "caller_id": 1,
        "handle": HANDLE,
        "chat_id": "chat-1",
        "message_id": "m-1",
        "question": ["what?", "when?"],
        "state": "completed",
        "updated_at": "2030-01-01T00:00:00.000Z",
        "text": "so",
        "reply_id": "msg-1",
    }
    return msgspec.json.encode(old | members)


@pytest.mark.distributed
@pytest.mark.slow
class TestWithRedis:
    async def test_tasks_expire(self, server: Server, store: RedisTaskStore) -> None:
        for made, events, ttl_s in (
            (task("open"), story(end=None), OPEN_TTL_S),
            (task("asking"), story(end=State.INPUT_REQUIRED), ASKING_TTL_S),
            (task("done"), story(), ENDED_TTL_S),
        ):
            await keep(store, made, events)
            for key in (f"clawbridge:tasks:1:{made.id}", f"clawbridge:tasks:1:{made.id}:events"):
                assert ttl_s - 60 < await server.ttl(key) <= ttl_s
        assert await server.ttl("clawbridge:tasks:1") > ASKING_TTL_S - 60

    async def test_a_caller_keeps_only_so_many_and_the_oldest_finished_go_first(
        self, server: Server, store: RedisTaskStore
    ) -> None:
        await store.put(task("open"))
        await store.put(ended("other", caller_id=2))
        for number in range(25):
            await store.put(ended(f"task-{number:02}"))
        kept = [number for number in range(25) if await store.find(f"task-{number:02}", caller_id=1)]
        assert kept == list(range(kept[0], 25))
        assert 8 <= len(kept) <= 10
        assert (await store.page(TaskQuery(caller_id=1, handle=HANDLE))).total == len(kept) + 1
        assert await store.find("open", caller_id=1) is not None
        assert await store.find("other", caller_id=2) is not None
        assert len([key async for key in server.scan_iter("clawbridge:tasks:1:*")]) == len(kept) + 1

    async def test_a_caller_keeps_only_so_many_bytes(self, server: Server, store: RedisTaskStore) -> None:
        for number in range(9):
            long = [state(1, State.WORKING), chunk(2, "x" * 20_000), state(3, State.COMPLETED)]
            await keep(store, task(f"task-{number}"), long)
        assert await store.find("task-0", caller_id=1) is None
        assert await store.find("task-8", caller_id=1) is not None
        assert int(await server.hget("clawbridge:tasks:1", "")) <= 100_000

    async def test_a_chunk_adds_an_event_and_leaves_the_snapshot(
        self, server: Server, store: RedisTaskStore
    ) -> None:
        made = await keep(store, task(), story(chunks=1, end=None))
        first = await server.hget(KEY, "snapshot")
        made = after(made, [chunk(3)])
        await store.append(made, [chunk(3)])
        assert await server.hget(KEY, "snapshot") == first
        assert await store.find("task-1", caller_id=1) == made
        done = after(made, [state(4, State.COMPLETED)])
        await store.append(done, [state(4, State.COMPLETED)])
        assert await server.hget(KEY, "snapshot") != first

    async def test_what_happens_to_a_task_that_redis_lost_is_kept_from_then_on(
        self, server: Server, store: RedisTaskStore
    ) -> None:
        made = await keep(store, task(), story(end=None))
        await server.flushdb()
        await server.script_flush()
        made = after(made, [chunk(5)])
        await store.append(made, [chunk(5)])
        assert await store.find("task-1", caller_id=1) == made
        assert await store.events_after(made, 4) == [chunk(5)]
        assert await store.events_after(made, 3) is None

    async def test_a_task_whose_events_redis_gave_up_is_absent_until_its_next_snapshot(
        self, server: Server, store: RedisTaskStore
    ) -> None:
        made = await keep(store, task(), story(end=None))
        await server.delete(f"{KEY}:events")
        assert await store.find("task-1", caller_id=1) is None
        assert await store.events_after(made, 1) is None

    async def test_a_finished_task_of_the_release_before_is_read(
        self, server: Server, store: RedisTaskStore
    ) -> None:
        await server.set(OLD_KEY, written_before())
        found = await store.find("task-1", caller_id=1)
        assert found is not None
        assert (found.state, found.context_id, found.chat_id) == (State.COMPLETED, "m-1", "chat-1")
        assert [part.text for part in found.history[0].parts] == ["what?", "when?"]
        assert found.reply is not None
        assert found.reply.parts == (Part(text="so"),)
        await server.set(OLD_KEY, written_before(state="failed", text="why"))
        failed = await store.find("task-1", caller_id=1)
        assert failed is not None
        assert failed.message is not None
        assert failed.message.parts == (Part(text="why"),)

    async def test_an_open_task_of_the_release_before_is_written_anew_when_it_ends(
        self, server: Server, store: RedisTaskStore
    ) -> None:
        await server.set(OLD_KEY, written_before(state="working", text=""))
        found = await store.find("task-1", caller_id=1)
        assert found is not None
        end = state(1, State.FAILED, "gone")
        assert not await store.replace(after(found, [end]), [end], expected_seq=1)
        assert await store.replace(after(found, [end]), [end], expected_seq=0)
        assert await store.find("task-1", caller_id=1) == after(found, [end])
        assert not await server.exists(OLD_KEY)
        assert (await store.page(TaskQuery(caller_id=1, handle=HANDLE))).total == 1

    async def test_a_task_of_a_later_release_is_not_touched(
        self, server: Server, store: RedisTaskStore, caplog: pytest.LogCaptureFixture
    ) -> None:
        made = await keep(store, task(), story(end=None))
        await server.hset(KEY, mapping={"version": 3, "snapshot": "whatever it may be"})
        before = await server.hgetall(KEY)
        with pytest.raises(Unavailable):
            await store.find("task-1", caller_id=1)
        later = after(made, [chunk(5)])
        with pytest.raises(Unavailable):
            await store.append(later, [chunk(5)])
        with pytest.raises(Unavailable):
            await store.replace(later, [chunk(5)], expected_seq=4)
        assert await server.hgetall(KEY) == before
        assert "task.of_a_later_release" in caplog.messages

    async def test_a_broken_record_is_absent_and_logged(
        self, server: Server, store: RedisTaskStore, caplog: pytest.LogCaptureFixture
    ) -> None:
        await keep(store, task(), story())
        await server.hset(KEY, "snapshot", b'{"id": 7')
        assert await store.find("task-1", caller_id=1) is None
        assert (await store.page(TaskQuery(caller_id=1, handle=HANDLE))).tasks == []
        await server.set("clawbridge:task:1:task-2", b"\xff")
        assert await store.find("task-2", caller_id=1) is None
        assert caplog.messages.count("task.unreadable") == 3


async def _fails(store: RedisTaskStore) -> None:
    made, events = task(), story()
    await store.put(made)
    await store.drop(made)
    for answer in (
        store.find("task-1", caller_id=1),
        store.append(after(made, events), events),
        store.replace(after(made, events), events, expected_seq=0),
        store.events_after(made, 0),
        store.page(TaskQuery(caller_id=1, handle=HANDLE)),
    ):
        with pytest.raises(Unavailable):
            await answer


async def test_a_store_out_of_reach_says_so_when_asked_and_never_fails_an_ask() -> None:
    store = RedisTaskStore(f"redis://127.0.0.1:{free_port()}/0")
    await _fails(store)
    await store.close()


@pytest.mark.slow
async def test_a_redis_that_does_not_answer_is_waited_for_a_second() -> None:
    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with listening(hold) as port:
        store = RedisTaskStore(f"redis://127.0.0.1:{port}/0")
        started = time.monotonic()
        with pytest.raises(Unavailable):
            await store.find("task-1", caller_id=1)
        await store.put(task())
        assert 0.9 < time.monotonic() - started < 5
        await store.close()
