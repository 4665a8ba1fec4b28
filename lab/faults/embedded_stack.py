"""A hub that is one process with SQLite."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from lab.faults.disk import Disk
from lab.faults.stack import FaultStack, Row
from lab.hub_storage import SQLITE_FILE, embedded_storage
from lab.processes import free_port

LOCKED_FOR_S = 60.0
TIMES = ("_at", "_until")  # how the names of columns with a time end


@dataclass
class EmbeddedStack(FaultStack):
    """A running embedded hub: it has neither servers nor a worker."""

    processes: int = 1
    disk: Disk | None = None

    async def start(self) -> None:
        """Start the process."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.disk = Disk(self.folder / "data")
        self.urls = [f"http://127.0.0.1:{free_port()}"]
        self.web = [None]
        await self.create_hub(embedded_storage(self.disk.folder))
        await self.serve(0)

    def stop(self) -> None:
        """Kill the process; the folder stays."""
        for program in self.web:
            if program is not None:
                program.kill()
        if self.disk is not None:
            self.disk.close()

    def sql(self, statement: str, *values: object) -> list[Row]:
        """Rows of the hub's database, for a statement that PostgreSQL takes, too."""
        given = [_as_stored(value) for value in values]
        with closing(self._connect()) as database, database:
            return database.execute(statement.replace("%s", "?"), given).fetchall()

    def rows(self, statement: str) -> list[dict[str, Any]]:
        """See `FaultStack.rows`."""
        with closing(self._connect()) as database:
            cursor = database.execute(statement)
            names = [column[0] for column in cursor.description]
            return [
                {name: _as_read(name, value) for name, value in zip(names, row, strict=True)} for row in cursor
            ]

    def now(self) -> datetime:
        """See `FaultStack.now`."""
        return datetime.now(UTC)

    def dump(self) -> bytes:
        """See `FaultStack.dump`."""
        with closing(self._connect()) as database:
            return "\n".join(database.iterdump()).encode()

    async def start_worker(self, **env: object) -> None:
        """There is none: the process itself runs the jobs."""

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.hub.home.folder / SQLITE_FILE, timeout=LOCKED_FOR_S)


def _as_stored(value: object) -> object:
    return f"{value:%Y-%m-%d %H:%M:%S.%f}" if isinstance(value, datetime) else value


def _as_read(name: str, value: Any) -> Any:
    if value is None or not name.endswith(TIMES):
        return value
    return datetime.fromisoformat(value).replace(tzinfo=UTC)
