"""The callers' rate limit, by the `limits` library: in process memory, or in Redis for several processes."""

import asyncio
import logging
import math
import time
from typing import Any

from limits import RateLimitItemPerMinute
from limits.aio.storage import MemoryStorage, RedisStorage, Storage
from limits.aio.strategies import MovingWindowRateLimiter
from redis.asyncio import ConnectionPool

logger = logging.getLogger(__name__)

STORE_WITHIN_S = 0.05


class NoLimits:
    """CALLER_RATE_PER_MINUTE=0: everybody asks as fast as they like."""

    async def retry_in_s(self, caller_id: int) -> int:
        """See `agents.ports.Limits`."""
        return 0

    async def close(self) -> None:
        """See `agents.ports.Limits`."""


class CallerRate:
    """At most so many asks a minute of one caller, over all processes that name the same Redis.

    Opens when Redis does not answer within 50 ms: a lost Redis costs the limit, never the service. The budget
    does not depend on it.
    """

    def __init__(self, per_minute: int, redis_url: str = "") -> None:
        self._pool = ConnectionPool.from_url(redis_url) if redis_url else None
        self._item = RateLimitItemPerMinute(per_minute)
        self._limiter = MovingWindowRateLimiter(self._storage(redis_url))

    async def retry_in_s(self, caller_id: int) -> int:
        """See `agents.ports.Limits`."""
        try:
            async with asyncio.timeout(STORE_WITHIN_S):
                if await self._limiter.hit(self._item, "caller", str(caller_id)):
                    return 0
                window = await self._limiter.get_window_stats(self._item, "caller", str(caller_id))
        except Exception as failure:  # noqa: BLE001  any failure of the store opens the limit
            logger.warning("rate.open", extra={"failure": type(failure).__name__})
            return 0
        return max(1, math.ceil(window.reset_time - time.time()))

    async def close(self) -> None:
        """See `agents.ports.Limits`."""
        if self._pool is not None:
            await self._pool.aclose()

    def _storage(self, redis_url: str) -> Storage:
        if self._pool is None:
            return MemoryStorage()
        options: dict[str, Any] = {"connection_pool": self._pool}
        return RedisStorage(f"async+{redis_url}", implementation="redispy", **options)
