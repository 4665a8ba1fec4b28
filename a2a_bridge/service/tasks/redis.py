"""Tasks in Redis: for several web processes, so that any of them answers.

An index has an entry for each task of a caller: enough to choose a page, and which tasks to drop.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from a2a_bridge.service.tasks.redis_scripts import (
    READ,
    READ_EVENTS,
    WRITE,
    Run,
    agent_unreachable,
    answers,
    client,
    in_time,
    index_key,
    sure_answers,
    task_keys,
)
from a2a_bridge.service.tasks.store import ASKING_TTL_S, TaskQuery, may_run, ttl_s
from a2a_bridge.service.tasks.stored import (
    VERSION,
    Written,
    encode,
    read_events,
    read_task,
    written_by_a_later_release,
)
from a2a_bridge.wire.task import State, Task, TaskEvent, TaskPage, snapshot_is_due
from agents.core.errors import Unavailable
from kit import sql
from kit.batch_writer import Batcher
from kit.clock import approximate_now

logger = logging.getLogger(__name__)

TASKS_A_CALLER = 2_000
BYTES_A_CALLER = 64 * 1024 * 1024
KEEP_OF_TEN = 9  # deleting frees a tenth, so that the next write need not count all tasks again

Answer = tuple[bytes, int, int]
NOTHING: Answer = (b"kept", 0, 0)


class IndexEntry(msgspec.Struct, frozen=True, array_like=True):
    """One task. Redis itself adds the bytes; the id is the line's name."""

    updated_at: str
    state: State
    handle: str
    context_id: str
    expires_ms: int
    size_bytes: int = 0
    id: str = ""

    @property
    def position(self) -> tuple[str, str]:
        """The position of the entry in a list."""
        return self.updated_at, self.id


_decode = msgspec.json.Decoder(IndexEntry).decode


@dataclass(slots=True)
class _Write:
    """One run of WRITE; its `answer` is there once the batch was sent."""

    task: Task
    run: Run
    answer: Answer | Exception = NOTHING


class RedisTaskStore:
    """See `TaskStore`. Writes of the same time travel together, and wait for Redis one second at most.

    A chunk of a reply adds an event; the snapshot is written anew when the state changes, and now and then. A
    caller's oldest finished tasks go above either limit; the memory in all is bounded by the server's `maxmemory`.
    The store tries nothing twice: a caller that needs certainty tries again.
    """

    def __init__(
        self, url: str, *, tasks_a_caller: int = TASKS_A_CALLER, bytes_a_caller: int = BYTES_A_CALLER
    ) -> None:
        self._redis = client(url)
        self._tasks_a_caller = tasks_a_caller
        self._bytes_a_caller = bytes_a_caller
        self._writing = Batcher(self._write)

    def put_now(self, task: Task) -> bool:
        """See `TaskStore`."""
        return False

    async def put(self, task: Task) -> None:
        """See `TaskStore`.

        If Redis is out of reach, the failure is logged, and the task is lost unless more happens to it.
        """
        try:
            await self._do(_writing("put", task))
        except Unavailable:
            logger.warning("task.not_put", extra={"task_id": task.id})

    def append_now(self, task: Task, events: Sequence[TaskEvent]) -> bool:
        """See `TaskStore`."""
        return False

    async def append(self, task: Task, events: Sequence[TaskEvent]) -> None:
        """See `TaskStore`."""
        if await self._do(_writing("append", task, events, whole=snapshot_is_due(events))) == b"whole":
            await self._do(_writing("append", task, events))

    async def replace(self, task: Task, events: Sequence[TaskEvent], *, expected_seq: int) -> bool:
        """See `TaskStore`."""
        return await self._do(_writing("replace", task, events, expected_seq=expected_seq)) == b"kept"

    async def find(self, task_id: str, *, caller_id: int) -> Task | None:
        """See `TaskStore`."""
        return _read(task_id, *await sure_answers(self._redis, [Run(READ, task_keys(caller_id, task_id))]))

    async def events_after(self, task: Task, seq: int) -> Sequence[TaskEvent] | None:
        """See `TaskStore`."""
        (found,) = await sure_answers(self._redis, [Run(READ_EVENTS, task_keys(task.caller_id, task.id), (seq,))])
        try:
            return None if found is None else read_events(found)
        except msgspec.DecodeError:
            logger.error("task.unreadable", extra={"task_id": task.id})
            return None

    async def page(self, query: TaskQuery) -> TaskPage:
        """See `TaskStore`."""
        meant = choose_entries(await self._lines(query.caller_id), query)
        rest = [one for one in meant if query.before is None or one.position < query.before]
        ids = [one.id for one in rest[: query.limit]]
        found = await sure_answers(
            self._redis, [Run(READ, task_keys(query.caller_id, task_id)) for task_id in ids]
        )
        tasks = [task for task_id, one in zip(ids, found, strict=True) if (task := _read(task_id, one))]
        return TaskPage(tasks, len(meant), len(rest) <= query.limit)

    async def drop(self, task: Task) -> None:
        """See `TaskStore`."""
        try:
            await in_time(self._forget(task.caller_id, [task.id]))
        except Unavailable:
            logger.warning("task.not_dropped", extra={"task_id": task.id})

    def writes(self, task: Task, events: Sequence[TaskEvent], *, is_message: bool = False) -> Sequence[sql.Query]:
        """See `TaskStore`."""
        return ()

    async def close(self) -> None:
        """See `TaskStore`."""
        await self._redis.aclose()

    async def _do(self, write: _Write) -> bytes:
        """Run one write in a batch with concurrent writes; returns the answer of the script."""
        await self._writing.add(write)
        if isinstance(write.answer, Exception):
            raise agent_unreachable(write.answer)
        if write.answer[0] == b"later":
            raise written_by_a_later_release(write.task.id)
        return write.answer[0]

    async def _write(self, writes: Sequence[_Write]) -> None:
        crowded = set()
        for write, answer in zip(writes, await answers(self._redis, [one.run for one in writes]), strict=True):
            write.answer = answer
            if not isinstance(answer, Exception) and self._is_too_much(*answer[1:]):
                crowded.add(write.task.caller_id)
        for caller_id in crowded:
            await self._make_room(caller_id)

    def _is_too_much(self, count: int, size_bytes: int) -> bool:
        return count > self._tasks_a_caller or size_bytes > self._bytes_a_caller

    async def _make_room(self, caller_id: int) -> None:
        try:
            lines = await self._lines(caller_id)
            gone = spent(lines, most=self._tasks_a_caller, most_bytes=self._bytes_a_caller)
            kept_bytes = sum(one.size_bytes for one in lines) - sum(one.size_bytes for one in gone)
            await in_time(self._forget(caller_id, [one.id for one in gone], kept_bytes))
        except Unavailable:
            logger.warning("tasks.no_room_made", extra={"caller_id": caller_id})

    async def _forget(self, caller_id: int, task_ids: Sequence[str], kept_bytes: int | None = None) -> None:
        pipe = self._redis.pipeline(transaction=False)
        for task_id in task_ids:
            task, events, index, old = task_keys(caller_id, task_id)
            pipe.delete(task, events, old)
            pipe.hdel(index, task_id)
        if kept_bytes is not None:
            pipe.hset(index_key(caller_id), "", str(kept_bytes))
        await pipe.execute()

    async def _lines(self, caller_id: int) -> list[IndexEntry]:
        return read_index_entries(await in_time(self._redis.hgetall(index_key(caller_id))))


def _writing(
    how: str, task: Task, events: Sequence[TaskEvent] = (), *, whole: bool = True, expected_seq: int = -1
) -> _Write:
    """`whole`: with the snapshot. The arguments are in the order in which WRITE takes them."""
    arguments: list[str | bytes | int] = [
        how,
        expected_seq,
        task.seq,
        ttl_s(task) * 1000,
        VERSION,
        int(task.is_terminal),
        encode(task) if whole else b"",
        task.id,
        make_index_entry(task),
        ASKING_TTL_S * 1000,
        events[0].seq if events else task.seq + 1,
        *[encode(event) for event in events],
    ]
    return _Write(task, Run(WRITE, task_keys(task.caller_id, task.id), arguments))


def _read(task_id: str, found: tuple[int, bytes | None, list[Written]]) -> Task | None:
    version, snapshot, later = found
    return read_task(task_id, version, snapshot, later) if snapshot is not None else None


def make_index_entry(task: Task) -> bytes:
    """The line of a task without its end: `,<bytes>]` follows."""
    expires_ms = _now_ms() + ttl_s(task) * 1000
    line = (task.updated_at, task.state, task.handle, task.context_id, expires_ms)
    return msgspec.json.encode(line)[:-1]


def read_index_entries(listing: Mapping[Any, Any]) -> list[IndexEntry]:
    """The lines of a list, of any age."""
    return [
        msgspec.structs.replace(_decode(line), id=task_id.decode()) for task_id, line in listing.items() if task_id
    ]


def choose_entries(lines: Sequence[IndexEntry], query: TaskQuery) -> list[IndexEntry]:
    """The lines that a query means on all pages, in its order."""
    now_ms = _now_ms()
    meant = [one for one in lines if one.expires_ms > now_ms and query.takes(one)]
    return sorted(meant, key=lambda one: one.position, reverse=True)


def spent(lines: Sequence[IndexEntry], *, most: int, most_bytes: int) -> list[IndexEntry]:
    """The tasks to give up: expired ones, then the oldest without a working agent, until a tenth is free."""
    now, now_ms = approximate_now(), _now_ms()
    given_up = [one for one in lines if one.expires_ms <= now_ms]
    kept = sorted((one for one in lines if one.expires_ms > now_ms), key=lambda one: one.position)
    count, size_bytes = len(kept), sum(one.size_bytes for one in kept)
    for one in kept:
        if count <= most * KEEP_OF_TEN // 10 and size_bytes <= most_bytes * KEEP_OF_TEN // 10:
            break
        if not may_run(one.state, datetime.fromisoformat(one.updated_at), now):
            given_up.append(one)
            count, size_bytes = count - 1, size_bytes - one.size_bytes
    return given_up


def _now_ms() -> int:
    return int(approximate_now().timestamp() * 1000)
