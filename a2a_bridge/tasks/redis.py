"""Tasks in Redis: for several web processes, so that any of them answers."""

from redis.asyncio import Redis

from a2a_bridge.tasks.memory import MemoryTaskStore


class RedisTaskStore(MemoryTaskStore):
    """See `TaskStore`."""

    def __init__(self, url: str) -> None:
        super().__init__(lambda: 0.0)
        self._redis = Redis.from_url(url)
