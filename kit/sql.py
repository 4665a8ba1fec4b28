"""Plain SQL on Django's connection, for statements that the ORM would compile anew on every ask; advisory locks.

The ledger has a connection of its own: `agents.core.ledger.database`.
"""

import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from django.db import (
    DEFAULT_DB_ALIAS,
    InterfaceError,
    InternalError,
    OperationalError,
    connection,
    connections,
)
from django.db.backends.base.base import BaseDatabaseWrapper

Row = tuple[Any, ...]

# The database is out of reach, full, or takes no writes (PostgreSQL then says InternalError): nothing was done.
AWAY = (OperationalError, InterfaceError, InternalError)


# What SQLite says when a file cannot grow: no space left, a quota, a limit of the process.
DISK_FULL = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE})


def is_disk_full(failure: Exception) -> bool:
    """Whether SQLite had no room for a write."""
    return getattr(failure.__cause__, "sqlite_errorcode", None) in DISK_FULL


def state_of(failure: Exception) -> str | None:
    """The SQLSTATE by which PostgreSQL refused; None without one, as of SQLite's failures."""
    state: str | None = getattr(failure.__cause__, "sqlstate", None)
    return state


class Query(NamedTuple):
    """A statement and its values."""

    statement: str
    values: Sequence[Any] = ()


def rows(statement: str, values: Sequence[Any] = ()) -> list[Row]:
    """Run one statement and fetch what it returns, if anything.

    SQLite is asked without Django's cursor, which costs several times what such a statement does.
    """
    home = connections[DEFAULT_DB_ALIAS]
    if _is_plain_sqlite(home):
        home.ensure_connection()
        with home.wrap_database_errors:
            found: list[Row] = home.connection.execute(_for_sqlite(statement), values).fetchall()
            return found
    with home.cursor() as cursor:
        cursor.execute(statement, values)
        return _fetched(cursor)


def _is_plain_sqlite(home: BaseDatabaseWrapper) -> bool:
    """Whether it is SQLite, and neither a broken transaction nor watched, of which Django's cursor takes care."""
    is_watched = home.queries_logged or home.execute_wrappers
    return home.vendor == "sqlite" and not home.needs_rollback and not is_watched


@lru_cache(maxsize=1024)
def _for_sqlite(statement: str) -> str:
    """A statement with SQLite's own placeholders; `%%` is a percent sign."""
    return "%".join(part.replace("%s", "?") for part in statement.split("%%"))


def rows_of_each(queries: Sequence[Query]) -> list[list[Row]]:
    """What each statement returns, if anything, in their order; PostgreSQL runs them in one round trip.

    Each still sees what was committed before it ran, not before the first.
    """
    if connection.vendor != "postgresql":
        return [rows(query.statement, query.values) for query in queries]
    with connection.cursor() as cursor:
        values = [value for query in queries for value in query.values]
        cursor.execute("; ".join(query.statement for query in queries), values)
        found: list[list[Row]] = [_fetched(cursor)]
        while cursor.nextset():
            found.append(_fetched(cursor))
        return found


def _fetched(cursor: Any) -> list[Row]:
    fetched: list[Row] = cursor.fetchall() if cursor.description else []
    return fetched


def run(statement: str, values: Sequence[Any] = ()) -> int:
    """Run one statement; how many rows it changed."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        changed: int = cursor.rowcount
        return changed


def marks(values: Iterable[object]) -> str:
    """The placeholders of an IN list: one `%s` for each value."""
    return ",".join("%s" for _ in values)


def moment(when: datetime) -> Any:
    """An aware datetime as this database stores it."""
    return connection.ops.adapt_datetimefield_value(when)


@contextmanager
def advisory_lock(name: str) -> Iterator[bool]:
    """A lock over the whole database: True for the one holder of the name, until the block ends; else False.

    PostgreSQL frees the name when its connection dies. On SQLite one process does such work.
    """
    if connection.vendor != "postgresql":
        yield True
        return
    # Not `hash`, which differs between processes.
    key = zlib.crc32(name.encode())
    with connection.cursor() as cursor:
        # Held by the connection, not by a transaction: the work in the block commits several times.
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [key])
        [is_ours] = cursor.fetchone()
    try:
        yield is_ours
    finally:
        if is_ours:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [key])
