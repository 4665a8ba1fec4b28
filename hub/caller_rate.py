"""The callers' rate limit, by the `limits` library: in process memory, and in Redis for several processes.

Messages between agents of one owner have a rate of their own, counted by credential in each process. Asks of
venues have none here: the key that sent the envelope was counted already.
"""

import asyncio
import logging
import math
import threading
import time
from typing import Protocol

from limits import RateLimitItemPerMinute, WindowStats
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from agents.core.ports import MESSAGES_A_SECOND, MESSAGES_AT_ONCE, Clock
from agents.core.types import Ask
from agents.models.choices import Surface
from kit.account_pace import TokenBucket
from kit.durations import seconds
from kit.newest import NewestEntries

logger = logging.getLogger(__name__)

RETRY_REDIS_AFTER_S = seconds(5.0)
SHARED_AT_ONCE = 4  # asks that one process has counted at a time; further asks wait here, not in the store
MAX_SENDERS = 10_000


class MessageRate:
    """The messages of each credential in this process: MESSAGES_A_SECOND, and MESSAGES_AT_ONCE after a pause.

    Each process counts for itself: a sender usually has one connection, and Redis would cost one round trip more.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._buckets = NewestEntries[int, TokenBucket](MAX_SENDERS)

    def retry_in_s(self, credential_id: int) -> int:
        """Count one message; 0 when it is within the rate, else seconds until the next would be."""
        bucket = self._buckets.get(credential_id)
        if bucket is None:
            bucket = TokenBucket(MESSAGES_A_SECOND, MESSAGES_AT_ONCE, self._clock)
        # The bucket that is dropped is of a sender that sent nothing for longest: it is full, or nearly.
        self._buckets[credential_id] = bucket
        return math.ceil(bucket.take())


class SharedRate(Protocol):
    """Counts the asks of a caller over several processes."""

    async def retry_in_s(self, caller_id: int) -> int:
        """Count one ask; 0 when it is within the rate, else seconds until the next ask would be.

        Raises any exception, within a short time, when it cannot count.
        """

    async def close(self) -> None:
        """Close its connections."""


class CallerRate:
    """Limits the asks a minute of one caller, over all processes with the same `shared`; messages apart.

    `per_minute` 0: callers ask, and agents send messages, as fast as they like.
    When `shared` fails, this process counts alone and tries `shared` again 5 s later: without Redis each process
    has the limit for itself, less the asks of the last minute that it let pass before.
    """

    def __init__(
        self, per_minute: int, shared: SharedRate | None = None, *, clock: Clock = time.monotonic
    ) -> None:
        self._item = RateLimitItemPerMinute(per_minute)
        self._messages = MessageRate(clock)
        self._alone = MovingWindowRateLimiter(MemoryStorage())
        self._counting = threading.Lock()  # the loop's thread counts, and the ledger's
        self._shared = shared
        # A burst waits for its turn here: its own length must not look like a store that does not answer.
        self._shared_slots = asyncio.Semaphore(SHARED_AT_ONCE)
        self._away_until = 0.0
        self.is_local = self._shared is None

    async def retry_in_s(self, ask: Ask) -> int:
        """See `agents.core.ports.AskLimits`."""
        if ask.surface is Surface.AGNT or self._shared is None or ask.credential_id is not None:
            return self.count(ask)
        retry_in_s = 0
        async with self._shared_slots:
            if time.monotonic() >= self._away_until:
                try:
                    retry_in_s = await self._shared.retry_in_s(ask.caller_id)
                except Exception as failure:  # noqa: BLE001  whatever fails the store
                    logger.warning("rate.alone", extra={"failure": type(failure).__name__})
                    self._away_until = time.monotonic() + RETRY_REDIS_AFTER_S
        # Counted here too: without the store this process goes on from what it has let pass.
        return retry_in_s or self.count(ask)

    def count(self, ask: Ask) -> int:
        """See `agents.core.ports.AskLimits`."""
        if ask.surface is Surface.AGNT or not self._item.amount:
            return 0
        with self._counting:
            if ask.credential_id is not None:
                return self._messages.retry_in_s(ask.credential_id)
            if self._alone.hit(self._item, "caller", str(ask.caller_id)):
                return 0
            return wait_s(self._alone.get_window_stats(self._item, "caller", str(ask.caller_id)))

    async def close(self) -> None:
        """See `agents.core.ports.AskLimits`."""
        if self._shared is not None:
            await self._shared.close()


def wait_s(window: WindowStats) -> int:
    """Seconds until a window takes another ask."""
    return max(1, math.ceil(window.reset_time - time.time()))
