"""Timers that look at rows which wait: for a time, or for an agent to come."""

from collections.abc import Awaitable, Callable

from hub.ended_access import Changes
from kit.async_db import DbCall
from kit.sql import Version


class WaitingRows:
    """Runs a timer's work while any row waits. Where none did, the next commit is the first that can add one.

    `are_any`: whether a row waits, asked of the database in another thread.
    """

    def __init__(
        self, changes: Changes, call: DbCall, are_any: Callable[[], bool], work: Callable[[], Awaitable[object]]
    ) -> None:
        self._changes = changes
        self._call = call
        self._are_any = are_any
        self._work = work
        self._empty_at: Version | None = None  # the version of the database in which no row waited

    async def look(self) -> None:
        """Run the work, unless no row waits."""
        version = self._changes.version()
        if version is not None and version == self._empty_at:
            return
        self._empty_at = None
        if await self._call(self._are_any):
            await self._work()
        else:
            self._empty_at = version
