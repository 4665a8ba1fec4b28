"""The parts of a hub with several processes, on Redis and Celery (docs/adr/0163).

Other modules import this one where such a hub is built: an embedded hub loads none of these libraries.
"""

import asyncio
import logging
from typing import Any

from kombu.exceptions import OperationalError
from limits import RateLimitItemPerMinute
from limits.aio.storage import RedisStorage
from limits.aio.strategies import MovingWindowRateLimiter
from redis.asyncio import BlockingConnectionPool

from a2a_bridge.service.tasks.redis import RedisTaskStore
from hub.caller_rate import CallerRate, wait_s
from hub.celery import app
from hub.redis_post import RedisPost

__all__ = ["RedisPost", "RedisRate", "RedisTaskStore", "call_worker", "make_caller_rate"]

logger = logging.getLogger(__name__)

CALL_EXPIRES_S = 10
STORE_WITHIN_S = 1.0
MOST_CONNECTIONS = 4


class RedisRate:
    """See `hub.caller_rate.SharedRate`. Raises TimeoutError if Redis does not count an ask within `within_s`."""

    def __init__(self, per_minute: int, url: str, *, within_s: float = STORE_WITHIN_S) -> None:
        self._within_s = within_s
        self._item = RateLimitItemPerMinute(per_minute)
        # Few connections: waiting for one in a burst of asks is faster than opening one for each ask.
        self._pool = BlockingConnectionPool.from_url(url, max_connections=MOST_CONNECTIONS, timeout=within_s)
        options: dict[str, Any] = {"connection_pool": self._pool}
        self._limiter = MovingWindowRateLimiter(RedisStorage(f"async+{url}", implementation="redispy", **options))

    async def retry_in_s(self, caller_id: int) -> int:
        """See `hub.caller_rate.SharedRate`."""
        async with asyncio.timeout(self._within_s):
            if await self._limiter.hit(self._item, "caller", str(caller_id)):
                return 0
            return wait_s(await self._limiter.get_window_stats(self._item, "caller", str(caller_id)))

    async def close(self) -> None:
        """See `hub.caller_rate.SharedRate`."""
        await self._pool.aclose()


def make_caller_rate(per_minute: int, redis_url: str) -> CallerRate:
    """A rate that all processes with that Redis share."""
    return CallerRate(per_minute, RedisRate(per_minute, redis_url))


def call_worker(job: str) -> None:
    """Have a Celery worker run a job soon; a call that fails is logged."""
    try:
        app.send_task(job, expires=CALL_EXPIRES_S, retry=False)
    except OperationalError as failure:
        logger.warning("worker.not_called", extra={"failure": type(failure).__name__})
