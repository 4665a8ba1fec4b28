"""Takes records of messages in the event loop, and writes them in batches in a thread (docs/adr/0138).

The database has each record before (docs/adr/0153): a process that is killed loses none.
"""

import asyncio
import itertools
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress

from gateway.service.sessions.entries import Record
from gateway.service.sessions.writing import write_or_log
from kit import sql
from kit.async_db import DbThread
from kit.batcher import Batcher

logger = logging.getLogger(__name__)

PAUSE_S = 0.25  # between batches: on SQLite each takes the one write lock, which turns need, too
MOST_WAITING_BYTES = 33_554_432
MOST_AT_ONCE = 200  # messages of a transaction: while it runs, SQLite lets no turn be written
TRY_AGAIN_S = 0.5
TRIES = 5  # then a failure is logged, and a process that ends leaves the rest to another one


class SessionRecorder:
    """The messages of one process that are yet to be written to sessions, in the order in which they came.

    `write_records`: writes some, see `gateway.service.sessions.writing.write_or_log`.
    """

    def __init__(
        self, process_id: str, write_records: Callable[[Sequence[Record]], object] = write_or_log
    ) -> None:
        self.process_id = process_id
        self._write_records = write_records
        self._is_closing = False
        self._writing: Batcher[tuple[Record, int] | None] = Batcher(self._write)
        self._thread = DbThread("sessions")
        self._may_write_at = 0.0
        self._flushing = 0
        self._urgent = asyncio.Event()
        self._waiting = 0
        self._waiting_bytes = 0

    async def add(self, record: Record, size: int) -> None:
        """Write a message with one of the next batches; waits only while too much waits. `size`: in bytes."""
        self._waiting += 1
        self._waiting_bytes += size
        self._writing.put((record, size))
        if self._waiting_bytes > MOST_WAITING_BYTES:
            await self.flush()

    async def flush(self, within_s: float | None = None) -> None:
        """Return when all that was added is written, or the time is over; at once when nothing waits."""
        if not self._waiting:
            return
        self._flushing += 1
        self._urgent.set()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    await self._writing.add(None)
        finally:
            self._flushing -= 1
            if not self._flushing:
                self._urgent.clear()

    async def close(self) -> None:
        """Write what waits, and end the thread."""
        self._is_closing = True
        await self.flush()
        await self._thread.close()

    async def _write(self, items: Sequence[tuple[Record, int] | None]) -> None:
        added = [item for item in items if item is not None]
        if not added:
            return
        await self._pause()
        try:
            records = [record for record, _ in added]
            for start in range(0, len(records), MOST_AT_ONCE):
                await self._write_all(records[start : start + MOST_AT_ONCE])
        finally:
            self._may_write_at = asyncio.get_running_loop().time() + PAUSE_S
            self._waiting -= len(added)
            self._waiting_bytes -= sum(size for _, size in added)

    async def _pause(self) -> None:
        left_s = self._may_write_at - asyncio.get_running_loop().time()
        if left_s > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._urgent.wait()

    async def _write_all(self, records: Sequence[Record]) -> None:
        """Write these, whenever the database takes them. What it does not take until the end stays held."""
        for attempt in itertools.count(1):
            try:
                await self._thread.call(self._write_records, records)
            except sql.AWAY:
                if attempt == TRIES:
                    logger.exception("gateway.sessions_wait", extra={"entries": len(records)})
                if self._is_closing and attempt >= TRIES:
                    return
                await asyncio.sleep(TRY_AGAIN_S)
            else:
                return
