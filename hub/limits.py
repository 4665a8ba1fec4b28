"""The callers' rate limit, by the `limits` library: in process memory, or in Redis for several processes."""

import asyncio
import logging
import math
import time

from limits import RateLimitItemPerMinute
from limits.aio.strategies import MovingWindowRateLimiter
from limits.storage import storage_from_string

logger = logging.getLogger(__name__)

REDIS_WITHIN_S = 0.05


class NoLimits:
    """CALLER_RATE_PER_MINUTE=0: everybody asks as fast as they like."""

    async def retry_in_s(self, caller_id: int) -> int:
        return 0


class CallerRate:
    """At most so many asks a minute of one caller, over all that share the storage.

    Opens when the storage does not answer within 50 ms: a lost Redis costs the limit, never the service. The
    budget does not depend on it.
    """

    def __init__(self, per_minute: int, storage_url: str) -> None:
        self._item = RateLimitItemPerMinute(per_minute)
        options = {"implementation": "redispy"} if "redis" in storage_url else {}
        self._limiter = MovingWindowRateLimiter(storage_from_string(storage_url, **options))

    async def retry_in_s(self, caller_id: int) -> int:
        """See `agents.ports.Limits`."""
        try:
            async with asyncio.timeout(REDIS_WITHIN_S):
                if await self._limiter.hit(self._item, "caller", str(caller_id)):
                    return 0
                window = await self._limiter.get_window_stats(self._item, "caller", str(caller_id))
        except Exception as failure:  # noqa: BLE001  any failure of the store opens the limit
            logger.warning("rate.open", extra={"failure": type(failure).__name__})
            return 0
        return max(1, math.ceil(window.reset_time - time.time()))
