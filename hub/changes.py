"""The commits to a process's database that its timers know of, and the work that waits for one."""

import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from kit.async_db import DbCall

Version = tuple[int, int]


class Changes:
    """The commits to a database that other machines write to are unknown: every look reads the tables."""

    def version(self) -> Version | None:
        """A version that differs after each commit; None: unknown."""
        return None

    def close(self) -> None:
        """Close what a look needs; the next call of `version` opens it again."""


class SqliteChanges(Changes):
    """Notices commits to a SQLite file by any program (docs/adr/0060). Use each instance in one thread.

    The hub's connections stay with the file that they opened: a database is replaced while the hub is stopped.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._opened = 0

    def version(self) -> Version | None:
        """See `Changes`. The call takes microseconds and waits for no lock."""
        try:
            if self._connection is None:
                address = f"{self._path.absolute().as_uri()}?mode=rw"
                self._connection = sqlite3.connect(address, timeout=0, uri=True)
                self._opened += 1  # each connection counts from its own beginning
            commits: int = self._connection.execute("PRAGMA data_version").fetchone()[0]
        except sqlite3.Error:
            self.close()
            return None
        return self._opened, commits

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None


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
