"""The check that events and op-messages still fit into the storage of their owner."""

import logging
from collections.abc import Callable

from accounts.quotas import MEBIBYTE
from agents import limits
from kit import sql
from kit.async_db import db_call
from kit.durations import seconds
from kit.newest import NewestEntries

logger = logging.getLogger(__name__)

STORAGE_FULL = "your transcripts and files fill your share of the hub: delete some first; this was not kept"
FULL_FOR_S = seconds(60.0)
KNOWN_OWNERS = 10_000


class StorageMeter:
    """Says whether events and op-messages still fit, without asking the database for each.

    The meter queries the database when an owner wrote a hundredth of their share since the last query, so each
    process may let that much too much pass. Questions and replies are always kept, and count. `most_mb` 0:
    everything fits.
    """

    def __init__(self, most_mb: int, clock: Callable[[], float]) -> None:
        self._most = most_mb * MEBIBYTE
        self._clock = clock
        self._owners = NewestEntries[int, _Share](KNOWN_OWNERS)

    async def takes(self, owner_id: int, size: int) -> bool:
        """Count an event or op-message of so many bytes; False when there is no room for it."""
        if not self._most:
            return True
        share = self._owners[owner_id] = self._owners.get(owner_id) or _Share()
        share.unseen += size
        if share.is_due(self._clock(), self._most // 100):
            share.looked_at, share.unseen = self._clock(), 0
            share.is_full = await self._is_full(owner_id, size, share.is_full)
        return not share.is_full

    async def _is_full(self, owner_id: int, size: int, was_full: bool) -> bool:
        """The state that the database reports; while it is away, the state that it reported last."""
        try:
            return await db_call(limits.STORAGE.count_used)(owner_id) + size > self._most
        except sql.DATABASE_UNAVAILABLE as failure:
            logger.warning("storage.not_measured", extra={"failure": type(failure).__name__})
            return was_full


class _Share:
    """The storage of one owner. `unseen`: bytes written since the database was asked."""

    def __init__(self) -> None:
        self.unseen = 0
        self.looked_at: float | None = None
        self.is_full = False

    def is_due(self, now: float, step: int) -> bool:
        if self.looked_at is None:
            return True
        return now - self.looked_at > FULL_FOR_S if self.is_full else self.unseen > step
