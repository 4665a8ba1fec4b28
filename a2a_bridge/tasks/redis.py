"""Tasks in Redis: for several web processes, so that any of them answers GetTask."""

import logging
import time
from collections.abc import Sequence

import msgspec
from redis.asyncio import Redis
from redis.exceptions import RedisError

from a2a_bridge.tasks.record import TASK_TTL_S, Task
from agents.errors import Unavailable
from kit.batcher import Batcher

logger = logging.getLogger(__name__)

WITHIN_S = 1.0
OPEN_TTL_S = 15 * 60
TASKS_A_CALLER = 5_000
BYTES_A_TASK = 2 * 1024 * 1024

_decode = msgspec.json.Decoder(Task).decode
_encode = msgspec.json.Encoder().encode


class RedisTaskStore:
    """See `TaskStore`. A caller's tasks stand in one sorted set, so that the oldest go when there are too many.

    The memory in all is bounded by the server's own `maxmemory`. Lost with Redis: an ask does not fail for it.
    Tasks that are put at the same time travel together.
    """

    def __init__(self, url: str, *, tasks_a_caller: int = TASKS_A_CALLER) -> None:
        self._redis = Redis.from_url(url, socket_timeout=WITHIN_S, socket_connect_timeout=WITHIN_S)
        self._tasks_a_caller = tasks_a_caller
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

    async def close(self) -> None:
        """See `TaskStore`."""
        await self._redis.aclose()

    async def _write(self, tasks: Sequence[Task]) -> None:
        now = time.time()
        indexed: dict[int, dict[str, float]] = {}
        pipe = self._redis.pipeline(transaction=False)
        for task in tasks:
            ttl_s = TASK_TTL_S if task.is_terminal else OPEN_TTL_S
            pipe.set(_key(task.caller_id, task.id), _encode(task), ex=ttl_s)
            indexed.setdefault(task.caller_id, {})[task.id] = now + ttl_s
        for caller_id, expiries in indexed.items():
            pipe.zadd(_index(caller_id), expiries)
            pipe.expire(_index(caller_id), TASK_TTL_S)
            pipe.zcard(_index(caller_id))
        counts = (await pipe.execute())[-1 : -3 * len(indexed) - 1 : -3]
        for caller_id, kept in zip(reversed(indexed), counts, strict=True):
            if kept > self._tasks_a_caller:
                await self._shrink(caller_id, now)

    async def _shrink(self, caller_id: int, now: float) -> None:
        """Forget what expired, then the oldest above the limit."""
        await self._redis.zremrangebyscore(_index(caller_id), "-inf", now)
        over = await self._redis.zcard(_index(caller_id)) - self._tasks_a_caller
        victims: list[tuple[bytes, float]] = []
        if over > 0:
            victims = await self._redis.zpopmin(_index(caller_id), over)  # type: ignore[assignment]
        if victims:
            await self._redis.delete(*(_key(caller_id, str(task_id, "ascii")) for task_id, _ in victims))


def _key(caller_id: int, task_id: str) -> str:
    return f"clawbridge:task:{caller_id}:{task_id}"


def _index(caller_id: int) -> str:
    return f"clawbridge:tasks:{caller_id}"
