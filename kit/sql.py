"""Plain SQL on Django's connection: statements that the ORM cannot express, and those of other modules
(docs/adr/0005).

The ledger has a connection of its own: `agents.core.ledger.database`.
"""

import sqlite3
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
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
    transaction,
)
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BooleanField, QuerySet
from django.db.models.expressions import RawSQL

Row = tuple[Any, ...]

# The moment of a statement, as Django stores it: SQLite compares texts. By vendor; `%` doubled, as beside `%s`.
NOW = {"sqlite": "strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now')", "postgresql": "clock_timestamp()"}
MAX_KEYS_KEPT = 128
APPLICATION_NAME = "clawbridge"  # by which PostgreSQL tells the hub's connections from others
END_STOPPED_TRANSACTIONS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND usename = current_user AND application_name = %s
  AND state <> 'idle' AND wait_event = 'ClientRead' AND state_change < clock_timestamp() - interval '10 seconds'
"""
_BYTES = {
    "sqlite": "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
    "postgresql": "SELECT pg_database_size(current_database())",
}

# The database is out of reach, full, or takes no writes (PostgreSQL then says InternalError): nothing was done.
DATABASE_UNAVAILABLE = (OperationalError, InterfaceError, InternalError)


# Errors of SQLite when a file cannot grow: no space left, a quota, a limit of the process.
DISK_FULL = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE})


def is_disk_full(failure: Exception) -> bool:
    """True if SQLite reported a full disk."""
    return getattr(failure.__cause__, "sqlite_errorcode", None) in DISK_FULL


def state_of(failure: Exception) -> str | None:
    """The SQLSTATE of a failure on PostgreSQL; None for failures without one, such as those of SQLite."""
    state: str | None = getattr(failure.__cause__, "sqlstate", None)
    return state


class Query(NamedTuple):
    """A statement and its values."""

    statement: str
    values: Sequence[Any] = ()


def rows(statement: str, values: Sequence[Any] = ()) -> list[Row]:
    """Run one statement; returns its rows, if any.

    On SQLite the statement bypasses Django's cursor, which takes several times as long as a short statement.
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
    """True if the connection is SQLite and needs nothing from Django's cursor: no query log, no execute wrappers,
    and no broken transaction.
    """
    is_watched = home.queries_logged or home.execute_wrappers
    return home.vendor == "sqlite" and not home.needs_rollback and not is_watched


@lru_cache(maxsize=1024)
def _for_sqlite(statement: str) -> str:
    """A statement with SQLite's own placeholders; `%%` is a percent sign."""
    return "%".join(part.replace("%s", "?") for part in statement.split("%%"))


def rows_of_each(queries: Sequence[Query]) -> list[list[Row]]:
    """The rows that each statement returns, in their order; PostgreSQL runs the statements in one round trip.

    Each query still sees the rows that were committed before that query ran, not before the first query.
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


class _Compiled(NamedTuple):
    """The SQL of a queryset, the values before its keys, and the converters of the driver's values."""

    statement: str
    constants: Sequence[Any]
    converters: Mapping[int, tuple[Sequence[Callable[..., Any]], Any]]


class KeyedQuery:
    """A queryset of values about some keys, compiled once for each number of keys.

    The class is for queries that run with every request: Django compiles a queryset anew each time, which takes
    ten times as long as such a query. `about` makes the queryset from keys, which must be its last parameters; the
    parameters before the keys are constants. `holds_keys`: locks the rows, so that none is deleted until the
    transaction ends; leaves out rows that another transaction is deleting. The lock is FOR KEY SHARE, which blocks
    only deletes and which the ORM does not support.
    """

    def __init__(self, about: Callable[[Sequence[Any]], QuerySet[Any, Any]], *, holds_keys: bool = False) -> None:
        self._about = about
        self._holds_keys = holds_keys
        self._compiled: dict[int, _Compiled] = {}

    def rows(self, keys: Collection[Any]) -> list[Row]:
        """The rows of the query for these keys."""
        if not keys:
            return []
        statement, constants, converters = self._compiled.get(len(keys)) or self._compile(len(keys))
        found = rows(statement, [*constants, *keys])
        return [_converted(row, converters) for row in found] if converters else found

    def _compile(self, count: int) -> _Compiled:
        found = self._about(range(count))
        compiler = found.query.get_compiler(DEFAULT_DB_ALIAS)
        statement, values = compiler.as_sql()
        if [*map(str, values[-count:])] != [*map(str, range(count))]:
            raise ValueError(f"its keys are not its last parameters: {statement}")
        if self._holds_keys and connection.vendor == "postgresql":
            statement += f" FOR KEY SHARE OF {connection.ops.quote_name(found.model._meta.db_table)} SKIP LOCKED"
        converters = compiler.get_converters([one for one, _, _ in compiler.select])
        compiled = _Compiled(statement, values[:-count], converters)
        if count <= MAX_KEYS_KEPT:
            self._compiled[count] = compiled
        return compiled


class AnyRow:
    """Asks whether a queryset has any row. The queryset, whose values are constants, is compiled once.

    The class is for queries that timers run in vain each second: see `KeyedQuery`.
    """

    def __init__(self, found: QuerySet[Any, Any]) -> None:
        self._found = found
        self._query: Query | None = None

    def __call__(self) -> bool:
        """True if the queryset has a row."""
        if self._query is None:  # not in `__init__`: modules must not use the connection while they are imported
            self._query = Query(*self._found.order_by().values("pk")[:1].query.sql_with_params())
        return bool(rows(*self._query))


def is_one_of(column: str, values: Sequence[str]) -> RawSQL:
    """The condition that a column has one of these values, which are constants of the code, as literals.

    SQLite uses a partial index only for a query that repeats the index's condition, with its literals.
    """
    listed = ", ".join("'" + value.replace("'", "''") + "'" for value in values)
    return RawSQL(f"{column} IN ({listed})", (), output_field=BooleanField())  # noqa: S611


def _converted(row: Row, converters: Mapping[int, tuple[Sequence[Callable[..., Any]], Any]]) -> Row:
    values = list(row)
    for position, (functions, expression) in converters.items():
        for function in functions:
            values[position] = function(values[position], expression, connection)
    return tuple(values)


def first_rows_of_each(found: QuerySet[Any, Any], column: str, keys: Collection[Any], most: int) -> list[Row]:
    """The first rows of an ordered queryset of values, without filters, for each of these keys in a column.

    The database reads the rows of each key by an index. On SQLite the ORM cannot make a union of slices.
    """
    if not keys:
        return []
    statement, [_] = found.filter(**{column: next(iter(keys))})[:most].query.sql_with_params()
    return rows(" UNION ALL ".join([f"SELECT * FROM ({statement}) AS part"] * len(keys)), list(keys))


def rows_of_all(found: Sequence[QuerySet[Any, Any]]) -> list[Row]:
    """The rows of several querysets of values, in one statement; each part is read along its index."""
    if not found:
        return []
    parts = [one.query.sql_with_params() for one in found]
    statement = " UNION ALL ".join(f"SELECT * FROM ({part}) AS part" for part, _ in parts)
    return rows(statement, [value for _, values in parts for value in values])


@contextmanager
def advisory_lock(name: str) -> Iterator[bool]:
    """Try to take a database-wide lock for the block; yields True if it was taken, False if it is held elsewhere.

    PostgreSQL releases the lock when the connection ends. On SQLite one process does such work, without a lock.
    """
    if connection.vendor != "postgresql":
        yield True
        return
    # Not by `hash`, whose values differ between processes.
    key = zlib.crc32(name.encode())
    # A lock of the connection, not of a transaction: the block may commit several transactions.
    [[is_ours]] = rows("SELECT pg_try_advisory_lock(%s)", [key])
    try:
        yield is_ours
    finally:
        if is_ours:
            rows("SELECT pg_advisory_unlock(%s)", [key])


def end_stopped_transactions() -> None:
    """End the hub's connections to PostgreSQL whose client stopped within a transaction: they may hold locks.

    PostgreSQL's own limit of idle transactions (`hub/postgresql.py`) ends none of psycopg's pipelines: the flush
    that psycopg sends after a pipeline turns the limit off.
    """
    if connection.vendor == "postgresql":
        rows(END_STOPPED_TRANSACTIONS, [APPLICATION_NAME])


@contextmanager
def atomic_unflushed() -> Iterator[None]:
    """A transaction whose commit waits neither for a flush to the disk nor for a replica.

    A crash of the process loses no such transaction; a crash of the machine may lose the most recent ones.
    """
    if connection.vendor == "postgresql":
        with transaction.atomic():
            rows("SET LOCAL synchronous_commit = off")
            yield
        return
    rows("PRAGMA synchronous = NORMAL")
    try:
        with transaction.atomic():
            yield
    finally:
        rows("PRAGMA synchronous = FULL")


def copy_sqlite_log() -> None:
    """Copy SQLite's log into the database file, as far as no reader needs the old pages; no commit waits."""
    rows("PRAGMA wal_checkpoint(PASSIVE)")


def check_connection() -> None:
    """Run the smallest possible query.

    Raises:
        DatabaseError: the database refuses the query, or is out of reach.
    """
    rows("SELECT 1")


def postgresql_clock() -> datetime:
    """The time of the call by PostgreSQL's clock; in a transaction too, where `now()` is the time of BEGIN."""
    now: datetime = rows("SELECT clock_timestamp()")[0][0]
    return now


def postgresql_setting(name: str) -> str:
    """The value of a setting of the PostgreSQL server."""
    return str(rows("SELECT current_setting(%s)", [name])[0][0])


def database_bytes() -> int:
    """The size of the whole database in bytes."""
    return int(rows(_BYTES[connection.vendor])[0][0])


def lock_tables(alias: str, tables: Sequence[str]) -> None:
    """Lock these tables of a PostgreSQL database against writes of other sessions until the transaction ends."""
    quoted = ", ".join(map(connections[alias].ops.quote_name, tables))
    with connections[alias].cursor() as cursor:
        cursor.execute(f"LOCK TABLE {quoted} IN SHARE ROW EXCLUSIVE MODE")


@contextmanager
def copy_in(alias: str, table: str, columns: Sequence[str]) -> Iterator[Any]:
    """Stream rows into a table of a PostgreSQL database; yields psycopg's `Copy`."""
    quote = connections[alias].ops.quote_name
    statement = f"COPY {quote(table)} ({', '.join(map(quote, columns))}) FROM STDIN"
    with connections[alias].cursor() as cursor, cursor.copy(statement) as copy:
        yield copy


def sqlite_sequences() -> dict[str, int]:
    """The highest id that SQLite ever assigned, by table."""
    return dict(rows("SELECT name, seq FROM sqlite_sequence"))


def set_sequence(alias: str, table: str, column: str, last: int) -> None:
    """Let PostgreSQL assign ids after `last`."""
    quoted = connections[alias].ops.quote_name(table)
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT setval(pg_get_serial_sequence(%s, %s), %s)", [quoted, column, last])


def moment(when: datetime) -> Any:
    """An aware datetime as this database stores it."""
    return connection.ops.adapt_datetimefield_value(when)
