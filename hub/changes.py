"""The commits to a process's database that its timers know of, and the work that waits for one."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from kit.async_db import DbCall
from kit.sql import Version


class Changes(Protocol):
    """See `kit.sql.SqliteChanges`."""

    def version(self) -> Version | None:
        """Differs after each commit; None: unknown."""


class WaitingRows:
    """Runs a timer's work while any row waits, for its time or for an agent; after that, only a commit adds one.

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
