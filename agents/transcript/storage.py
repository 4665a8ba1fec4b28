"""How much of the hub's storage one owner takes: their files, op-messages, events and token usage of sessions."""

import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from django.db.models import BigIntegerField, Func, Sum

from accounts import quotas
from accounts.quotas import QuotaExceeded
from agents import settings
from agents.models import Event, File, OpMessage, TokenUsage
from kit import sql
from kit.async_db import db_call
from kit.durations import seconds

logger = logging.getLogger(__name__)

MEBIBYTE = 1_048_576
USAGE_ROW_BYTES = 512  # a row of token usage: two texts of up to 128 characters, and its share of indexes
STORAGE_FULL = "your transcripts and files fill your share of the hub: delete some first; this was not kept"
FULL_FOR_S = seconds(60.0)
KNOWN_OWNERS = 10_000


class Bytes(Func):
    """The size of a text, in bytes as it is stored."""

    output_field = BigIntegerField()
    template = "OCTET_LENGTH(%(expressions)s)"

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        """SQLite before 3.43 knows it by another name."""
        return self.as_sql(compiler, connection, template="LENGTH(CAST(%(expressions)s AS BLOB))", **context)


def count_file_bytes(user_id: int) -> int:
    """Live files that this user uploaded or handed on; the same bytes twice count twice."""
    return int(File.objects.live().filter(uploader_id=user_id).aggregate(held=Sum("size", default=0))["held"])


def count_event_bytes(user_id: int) -> int:
    """Events of this user's sessions."""
    events = Event.objects.filter(session__owner_id=user_id)
    return int(events.aggregate(held=Sum(Bytes("payload"), default=0))["held"])


def count_op_message_bytes(user_id: int) -> int:
    """What this user told other operators, in whosever sessions."""
    said = OpMessage.objects.filter(author_id=user_id)
    return int(said.aggregate(held=Sum(Bytes("text"), default=0))["held"])


def count_token_usage_bytes(user_id: int) -> int:
    """What programs of this user's sessions said they used up."""
    return TokenUsage.objects.filter(owner_id=user_id).count() * USAGE_ROW_BYTES


def check_storage_quota(user_id: int, size: int) -> None:
    """Refuse a file or a report; call it in the transaction that stores it.

    Raises:
        QuotaExceeded: with it the user would have more than STORAGE_PER_OWNER_MB.
    """
    most = settings.STORAGE_PER_OWNER_MB
    if not most:
        return
    quotas.lock_owner(user_id)
    if _used_bytes(user_id) + size > most * MEBIBYTE:
        raise QuotaExceeded(f"with this you would have over {most} MiB here: delete some first")


class StorageMeter:
    """Says whether events and op-messages still fit, without asking the database for each.

    It asks when an owner wrote a hundredth of their share since it asked last, so each process may let that much
    too much pass. Questions and replies are always kept, and count. `most_mb` 0: everything fits.
    """

    def __init__(self, most_mb: int, clock: Callable[[], float]) -> None:
        self._most = most_mb * MEBIBYTE
        self._clock = clock
        self._owners: OrderedDict[int, _Share] = OrderedDict()

    async def takes(self, owner_id: int, size: int) -> bool:
        """Count an event or op-message of so many bytes; False when there is no room for it."""
        if not self._most:
            return True
        share = self._owners.pop(owner_id, None) or _Share()
        self._owners[owner_id] = share
        if len(self._owners) > KNOWN_OWNERS:
            self._owners.popitem(last=False)
        share.unseen += size
        if share.is_due(self._clock(), self._most // 100):
            share.looked_at, share.unseen = self._clock(), 0
            share.is_full = await self._is_full(owner_id, size, share.is_full)
        return not share.is_full

    async def _is_full(self, owner_id: int, size: int, was_full: bool) -> bool:
        """What the database says; while it is away, what it said last."""
        try:
            return await db_call(_used_bytes)(owner_id) + size > self._most
        except sql.DATABASE_AWAY as failure:
            logger.warning("storage.not_measured", extra={"failure": type(failure).__name__})
            return was_full


class _Share:
    """What is known of one owner. `unseen`: bytes written since the database was asked."""

    def __init__(self) -> None:
        self.unseen = 0
        self.looked_at: float | None = None
        self.is_full = False

    def is_due(self, now: float, step: int) -> bool:
        if self.looked_at is None:
            return True
        return now - self.looked_at > FULL_FOR_S if self.is_full else self.unseen > step


def _used_bytes(owner_id: int) -> int:
    parts = (count_file_bytes, count_event_bytes, count_op_message_bytes, count_token_usage_bytes)
    return sum(part(owner_id) for part in parts)
