"""The ledger's connection: that of sqlite3 or psycopg under Django's own of the thread (docs/adr/0081).

A statement has one text per database, whatever the size of a batch. What is sent together is one round trip on
PostgreSQL: an answer is waited for when its rows are fetched, and at the end of the transaction.
"""

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, date, datetime
from typing import Any, NamedTuple, Protocol

import msgspec
import psycopg
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from agents.models.presence import PROCESS_DEAD_S

Row = tuple[Any, ...]
Values = Mapping[str, Any]

_LIST = re.compile(r"= ANY\((:\w+)\)")
_NAME = re.compile(r"(?<!:):(\w+)")
_encode = msgspec.json.Encoder().encode


class Statement(NamedTuple):
    """The text of a statement, or of a part of one, for each database."""

    sqlite: str
    postgresql: str


# PostgreSQL's clock is read once, under the locks, and kept for the transaction.
NOW = Statement(":now", "CAST(current_setting('clawbridge.now') AS timestamptz)")
READ_CLOCK = Statement(
    "", "SELECT CAST(set_config('clawbridge.now', CAST(clock_timestamp() AS text), true) AS timestamptz)"
)
_PARTS = {
    "now": NOW,
    "day": Statement(":day", f"CAST({NOW.postgresql} AT TIME ZONE 'UTC' AS date)"),
    "alive": Statement(":alive", f"({NOW.postgresql} - interval '{PROCESS_DEAD_S} seconds')"),
}


def statement(text: str, *, postgresql_lock: str = "", **parts: Statement) -> Statement:
    """A statement from one text. `:name` is a value, `= ANY(:name)` compares with a list (`Database.list_of`).

    `{now}`, `{day}`, `{alive}`: the moment of the batch, its day, and when a live process beat last at the earliest;
    `{name}`: one of the `parts`. `postgresql_lock`: the end of the statement on PostgreSQL; SQLite has one write lock.
    """
    known = _PARTS | parts
    sqlite, postgresql = (text.format(**{name: part[i] for name, part in known.items()}) for i in (0, 1))
    return Statement(
        _LIST.sub(r"IN (SELECT value FROM json_each(\1))", sqlite),
        _NAME.sub(r"%(\1)s", f"{postgresql} {postgresql_lock}"),
    )


def table(name: str, *types: str) -> Statement:
    """A part of a statement: rows that are handed in (`Database.table_of`), with columns column1, column2, ..."""
    numbers = range(1, len(types) + 1)
    columns = ", ".join(f"json_extract(value, '$[{n - 1}]') AS column{n}" for n in numbers)
    arrays = ", ".join(f"CAST(:{name}{n} AS {one}[])" for n, one in zip(numbers, types, strict=True))
    names = ", ".join(f"column{n}" for n in numbers)
    return Statement(
        f"(SELECT {columns} FROM json_each(:{name}))", f"(SELECT {names} FROM unnest({arrays}) AS given({names}))"
    )


class Insert(NamedTuple):
    """Adds rows, which are named tuples of these columns. `ending`: what to do on a conflict."""

    sqlite: str
    postgresql: str


def insert(into: str, columns: Sequence[str], ending: str = "") -> Insert:
    """See `Insert`. On PostgreSQL the rows come as JSON, and the table says what types they have."""
    names = ", ".join(columns)
    return Insert(
        f"INSERT INTO {into} ({names}) VALUES ({', '.join('?' * len(columns))}) {ending}",
        f"INSERT INTO {into} ({names})"
        f" SELECT {names} FROM json_populate_recordset(NULL::{into}, %(rows)s) {ending}",
    )


class Answer(Protocol):
    """What a statement returned."""

    def fetchall(self) -> list[Row]:
        """Its rows."""


class Database(Protocol):
    """One thread's connection. As a context manager it is a transaction, inside Django's if there is one.

    Errors are the driver's: `django_errors` makes them Django's.
    """

    is_postgresql: bool

    @property
    def django_errors(self) -> AbstractContextManager[None]:
        """Within it errors of the driver are raised as Django's."""

    def open(self) -> None:
        """Connect, if there is no connection. For statements outside a transaction."""

    def send(self, statement: Statement, values: Values) -> Answer:
        """Run a statement: at the latest when the rows of an answer are fetched, or the transaction ends."""

    def insert(self, insert: Insert, rows: Sequence[Any]) -> None:
        """Add rows; at least one."""

    def insert_returning_ids(self, insert: Insert, rows: Sequence[Any]) -> list[int]:
        """Add rows; the ids they got, in their order."""

    def list_of(self, values: Sequence[object]) -> Any:
        """Values that `= ANY(:name)` compares with."""

    def table_of(self, name: str, rows: Sequence[Sequence[object]]) -> dict[str, Any]:
        """The values of a `table`; at least one row."""

    def moment(self, when: datetime) -> Any:
        """An aware datetime as it is stored."""

    def day(self, day: date) -> Any:
        """A day as it is stored."""

    def for_django(self) -> AbstractContextManager[None]:
        """Inside a transaction: within it Django's ORM and cursors work in the same transaction."""

    def __enter__(self) -> object: ...

    def __exit__(self, kind: object, failure: object, trace: object) -> None: ...


class _UnderDjango:
    """What both databases share."""

    def __init__(self, home: BaseDatabaseWrapper) -> None:
        self._home = home
        self._is_nested = False
        self._hooks: list[Any] = []
        self.django_errors: AbstractContextManager[None] = home.wrap_database_errors

    @contextmanager
    def for_django(self) -> Iterator[None]:
        """See `Database`."""
        home = self._home
        before = home.in_atomic_block, home.autocommit
        home.in_atomic_block, home.autocommit = True, False
        try:
            yield
            home.validate_no_broken_transaction()
        finally:
            home.in_atomic_block, home.autocommit = before

    def _begin(self) -> None:
        self._is_nested = self._home.in_atomic_block
        self._hooks = [*self._home.run_on_commit]

    def _committed(self) -> None:
        if not self._is_nested and self._home.run_on_commit:
            self._home.run_and_clear_commit_hooks()

    def _rolled_back(self) -> None:
        self._home.run_on_commit = self._hooks
        self._home.needs_rollback = False


class SqliteDatabase(_UnderDjango):
    """See `Database`. A statement runs when it is sent."""

    is_postgresql = False

    def open(self) -> None:
        """See `Database`."""
        if self._home.connection is None:
            self._home.ensure_connection()
        self._execute = self._home.connection.execute

    def send(self, statement: Statement, values: Values) -> Answer:
        """See `Database`."""
        answer: Answer = self._execute(statement.sqlite, values)
        return answer

    def insert(self, insert: Insert, rows: Sequence[Any]) -> None:
        """See `Database`."""
        self._home.connection.executemany(insert.sqlite, rows)

    def insert_returning_ids(self, insert: Insert, rows: Sequence[Any]) -> list[int]:
        """See `Database`."""
        return [self._execute(f"{insert.sqlite} RETURNING id", row).fetchall()[0][0] for row in rows]

    def list_of(self, values: Sequence[object]) -> str:
        """See `Database`."""
        return _encode(values).decode()

    def table_of(self, name: str, rows: Sequence[Sequence[object]]) -> dict[str, Any]:
        """See `Database`."""
        return {name: _encode(rows).decode()}

    def moment(self, when: datetime) -> str:
        """See `Database`."""
        return str(when.astimezone(UTC).replace(tzinfo=None))

    def day(self, day: date) -> str:
        """See `Database`."""
        return day.isoformat()

    def __enter__(self) -> None:
        self.open()
        self._begin()
        self._execute("SAVEPOINT ledger" if self._is_nested else "BEGIN IMMEDIATE")

    def __exit__(self, kind: object, failure: object, trace: object) -> None:
        if kind is None:
            try:
                self._execute("RELEASE SAVEPOINT ledger" if self._is_nested else "COMMIT")
            except BaseException:
                self._roll_back()
                raise
            self._committed()
        else:
            self._roll_back()

    def _roll_back(self) -> None:
        """A failure may have rolled it back already."""
        if self._home.connection.in_transaction:
            if self._is_nested:
                self._execute("ROLLBACK TO SAVEPOINT ledger")
            self._execute("RELEASE SAVEPOINT ledger" if self._is_nested else "ROLLBACK")
        self._rolled_back()


class _Sent:
    """A statement that was sent to PostgreSQL, or waits to be; and its rows."""

    __slots__ = ("_database", "rows", "text", "values")

    def __init__(self, database: "PostgresqlDatabase", text: str, values: Values | None) -> None:
        self._database = database
        self.text = text
        self.values = values
        self.rows: list[Row] | None = None

    def fetchall(self) -> list[Row]:
        """See `Answer`."""
        if self.rows is None:
            self._database.flush()
        assert self.rows is not None  # noqa: S101  for the type checker
        return self.rows


class PostgresqlDatabase(_UnderDjango):
    """See `Database`. Statements are prepared, and go in a pipeline once an answer is wanted."""

    is_postgresql = True

    def __init__(self, home: BaseDatabaseWrapper) -> None:
        super().__init__(home)
        self._raw: psycopg.Connection[Row] | None = None
        self._cursors: dict[str, psycopg.Cursor[Row]] = {}
        self._unsent: list[_Sent] = []
        self._has_begun = False

    def open(self) -> None:
        """See `Database`."""
        self._unsent.clear()
        if self._home.connection is None:
            self._home.ensure_connection()
        if self._raw is not self._home.connection:
            self._raw, self._cursors = self._home.connection, {}
            self._raw.prepare_threshold = 0  # Django's own cursors prepare nothing

    def send(self, statement: Statement, values: Values) -> Answer:
        """See `Database`."""
        return self._send(statement.postgresql, values)

    def insert(self, insert: Insert, rows: Sequence[Any]) -> None:
        """See `Database`."""
        self._send(insert.postgresql, {"rows": _as_json(rows)})

    def insert_returning_ids(self, insert: Insert, rows: Sequence[Any]) -> list[int]:
        """See `Database`."""
        returning = f"{insert.postgresql} RETURNING id"
        return [row[0] for row in self._send(returning, {"rows": _as_json(rows)}).fetchall()]

    def list_of(self, values: Sequence[object]) -> Sequence[object]:
        """See `Database`."""
        return values if isinstance(values, list) else list(values)

    def table_of(self, name: str, rows: Sequence[Sequence[object]]) -> dict[str, Any]:
        """See `Database`."""
        return {f"{name}{n}": list(column) for n, column in enumerate(zip(*rows, strict=True), 1)}

    def moment(self, when: datetime) -> datetime:
        """See `Database`."""
        return when

    def day(self, day: date) -> date:
        """See `Database`."""
        return day

    def flush(self) -> None:
        """Send what waits, in one round trip, and take the answers."""
        assert self._raw is not None  # noqa: S101  for the type checker
        sent, self._unsent = self._unsent, []
        if not sent:
            return
        self._has_begun = True
        with self._raw.pipeline():
            cursors = [self._executed(one) for one in sent]
        for one, cursor in zip(sent, cursors, strict=True):
            one.rows = cursor.fetchall() if cursor.pgresult and cursor.pgresult.nfields else []
            self._cursors[one.text] = cursor

    @contextmanager
    def for_django(self) -> Iterator[None]:
        """See `Database`."""
        self.flush()
        with super().for_django():
            yield

    def __enter__(self) -> None:
        self.open()
        self._begin()
        self._has_begun = False
        self._send("SAVEPOINT ledger" if self._is_nested else "BEGIN", None)

    def __exit__(self, kind: object, failure: object, trace: object) -> None:
        if kind is None:
            try:
                self._send("RELEASE SAVEPOINT ledger" if self._is_nested else "COMMIT", None)
                self.flush()
            except BaseException:
                self._roll_back()
                raise
            self._committed()
        else:
            self._roll_back()

    def _send(self, text: str, values: Values | None) -> _Sent:
        sent = _Sent(self, text, values)
        self._unsent.append(sent)
        return sent

    def _executed(self, one: _Sent) -> psycopg.Cursor[Row]:
        """A cursor keeps what psycopg worked out for its text."""
        assert self._raw is not None  # noqa: S101  for the type checker
        cursor = self._cursors.pop(one.text, None) or psycopg.Cursor(self._raw)
        return cursor.execute(one.text, one.values, prepare=True)

    def _roll_back(self) -> None:
        self._unsent.clear()
        self._rolled_back()
        if not self._has_begun:
            return
        try:
            if self._is_nested:
                self._home.connection.execute("ROLLBACK TO SAVEPOINT ledger; RELEASE SAVEPOINT ledger")
            else:
                self._home.connection.execute("ROLLBACK")
        except psycopg.Error:
            self._home.close()


def _as_json(rows: Sequence[Any]) -> str:
    return _encode([row._asdict() for row in rows]).decode()


class _OfThread(threading.local):
    def __init__(self) -> None:
        home = connections[DEFAULT_DB_ALIAS]
        is_postgresql = home.vendor == "postgresql"
        self.database: Database = PostgresqlDatabase(home) if is_postgresql else SqliteDatabase(home)


_of_thread = _OfThread()


def of_thread() -> Database:
    """The connection of the thread that calls."""
    return _of_thread.database
