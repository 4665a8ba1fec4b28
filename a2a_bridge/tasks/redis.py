"""Tasks in Redis: for several web processes, so that any of them answers GetTask."""

import logging
from collections import OrderedDict, deque
from collections.abc import Sequence

import msgspec
from redis.asyncio import Redis
from redis.exceptions import RedisError

from a2a_bridge.tasks.record import OPEN_TTL_S, TASK_TTL_S, Task
from agents.errors import Unavailable
from kit.batcher import Batcher

logger = logging.getLogger(__name__)

WITHIN_S = 1.0
TASKS_A_CALLER = 2_000
CALLERS = 10_000
BYTES_A_TASK = 2 * 1024 * 1024

_decode = msgspec.json.Decoder(Task).decode
_encode = msgspec.json.Encoder().encode


class RedisTaskStore:
    """See `TaskStore`. Every task is one key that expires; tasks put at the same time travel together.

    Each process remembers the tasks it put and deletes a caller's oldest above the limit; the memory in all is
    bounded by the server's own `maxmemory`. Lost with Redis: an ask does not fail for it.
    """

    def __init__(self, url: str, *, tasks_a_caller: int = TASKS_A_CALLER) -> None:
        self._redis = Redis.from_url(url, socket_timeout=WITHIN_S, socket_connect_timeout=WITHIN_S)
        self._tasks_a_caller = tasks_a_caller
        self._put: OrderedDict[int, deque[str]] = OrderedDict()
        self._writing = Batcher(self._write)

    async def put(self, task: Task) -> None:
        """See `TaskStore`."""
        if task.size_bytes > BYTES_A_TASK:
            return
        try:
            await self._writing.add(task)
        except (RedisError, OSError) as failure:
            logger.warning("tasks.not_kept", extra={"failure": type(failure).__name__})

    async def find(self, task_id: str, *, caller_id: int) -> Task | None:
        """See `TaskStore`."""
        try:
            kept = await self._redis.get(_key(caller_id, task_id))
        except (RedisError, OSError):
            raise Unavailable("the task store is out of reach") from None
        return _decode(kept) if kept else None

    async def drop(self, task: Task) -> None:
        """See `TaskStore`."""
        try:
            await self._redis.delete(_key(task.caller_id, task.id))
        except (RedisError, OSError) as failure:
            logger.warning("tasks.not_dropped", extra={"failure": type(failure).__name__})

    async def close(self) -> None:
        """See `TaskStore`."""
        await self._redis.aclose()

    async def _write(self, tasks: Sequence[Task]) -> None:
        pipe = self._redis.pipeline(transaction=False)
        for task in tasks:
            ttl_s = TASK_TTL_S if task.is_terminal else OPEN_TTL_S
            pipe.set(_key(task.caller_id, task.id), _encode(task), ex=ttl_s)
            if task.is_terminal and (victim := self._remember(task)):
                pipe.delete(victim)
        await pipe.execute()

    def _remember(self, task: Task) -> str | None:
        """Note a finished task; the key of the caller's oldest when that makes one too many."""
        mine = self._put.setdefault(task.caller_id, deque())
        self._put.move_to_end(task.caller_id)
        if len(self._put) > CALLERS:
            self._put.popitem(last=False)  # their tasks expire by themselves
        mine.append(_key(task.caller_id, task.id))
        return mine.popleft() if len(mine) > self._tasks_a_caller else None


def _key(caller_id: int, task_id: str) -> str:
    return f"clawbridge:task:{caller_id}:{task_id}"
