"""The ledger's connection: that of sqlite3 or psycopg under Django's own of the thread (docs/adr/0081).

Statements that are sent together are one round trip on PostgreSQL: the thread waits for a result when its rows are
fetched, and at the end of the transaction.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import msgspec
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from agents.core.ledger.texts import Insert, Statement
from kit import sql

if TYPE_CHECKING:
    import psycopg  # the classes come from Django's connection: an embedded hub never loads the library

Row = tuple[Any, ...]
Values = Mapping[str, Any]

CACHE_KIB = 16_000  # of pages of SQLite; other connections have the 2,000 of `settings.DATABASES`

_encode = msgspec.json.Encoder().encode


class StatementResult(Protocol):
    """The rows and the row count that a statement returned."""

    def fetchall(self) -> list[Row]:
        """The rows of the result."""


class Database(ABC):
    """The connection of one thread.

    The object as a context manager is a transaction, inside Django's if there is one.

    Errors are the driver's: within `django_errors` they are raised as Django's.
    `webhooks_listen`: whether the last batch found a live webhook subscription. A hint: the next may find another.
    """

    is_postgresql: ClassVar[bool]

    def __init__(self, home: BaseDatabaseWrapper) -> None:
        self._home = home
        self._is_nested = False
        self._hooks: list[Any] = []
        self.webhooks_listen = True
        self.django_errors: AbstractContextManager[None] = home.wrap_database_errors

    @abstractmethod
    def open(self) -> None:
        """Connect, if there is no connection. The connection is opened for statements outside a transaction."""

    @abstractmethod
    def send(self, statement: Statement, values: Values) -> StatementResult:
        """Run a statement: at the latest when the rows of an answer are fetched, or the transaction ends."""

    @abstractmethod
    def send_after_commit(self, statement: Statement, values: Values) -> StatementResult:
        """Send a query that also sees this transaction's writes; its rows are available after the commit."""

    @abstractmethod
    def send_queries(self, queries: Sequence[sql.Query]) -> None:
        """Run statements with Django's placeholders, in their order; their rows are dropped."""

    @abstractmethod
    def insert(self, insert: Insert, rows: Sequence[Any]) -> None:
        """Add rows; at least one."""

    @abstractmethod
    def insert_returning_ids(self, insert: Insert, rows: Sequence[Any]) -> list[int]:
        """Add rows; the ids they got."""

    @abstractmethod
    def list_of(self, values: Collection[object]) -> Any:
        """Values that `= ANY(:name)` compares with."""

    @abstractmethod
    def table_of(self, name: str, rows: Sequence[Sequence[object]]) -> dict[str, Any]:
        """The values of a `table`; at least one row."""

    @abstractmethod
    def moment(self, when: datetime) -> Any:
        """A datetime in UTC as it is stored."""

    @contextmanager
    def for_django(self) -> Iterator[None]:
        """Inside a transaction: within it Django's ORM and cursors work in the same transaction."""
        home = self._home
        before = home.in_atomic_block, home.autocommit
        home.in_atomic_block, home.autocommit = True, False
        try:
            yield
            home.validate_no_broken_transaction()
        finally:
            home.in_atomic_block, home.autocommit = before

    def __enter__(self) -> None:
        self.open()
        self._is_nested = self._home.in_atomic_block
        self._hooks = [*self._home.run_on_commit]
        self._begin()

    def __exit__(self, kind: object, failure: object, trace: object) -> None:
        if kind is not None:
            self._undo()
            return
        try:
            self._commit("RELEASE SAVEPOINT ledger" if self._is_nested else "COMMIT")
        except BaseException:
            self._undo()
            raise
        if self._home.run_on_commit and not self._is_nested:
            self._home.run_and_clear_commit_hooks()

    def _undo(self) -> None:
        self._home.run_on_commit = self._hooks
        self._home.needs_rollback = False
        self._roll_back()

    @abstractmethod
    def _begin(self) -> None: ...

    @abstractmethod
    def _commit(self, command: str) -> None: ...

    @abstractmethod
    def _roll_back(self) -> None: ...


class SqliteDatabase(Database):
    """A statement runs when it is sent."""

    is_postgresql = False

    def open(self) -> None:
        if self._home.connection is None:
            self._home.ensure_connection()
            self._home.cursor().execute(f"PRAGMA cache_size=-{CACHE_KIB}")
        self._execute = self._home.connection.execute

    def send(self, statement: Statement, values: Values) -> StatementResult:
        answer: StatementResult = self._execute(statement.sqlite, values)
        return answer

    def send_after_commit(self, statement: Statement, values: Values) -> StatementResult:
        """On SQLite no other connection writes before the commit, so a result of this moment still holds then."""
        return self.send(statement, values)

    def send_queries(self, queries: Sequence[sql.Query]) -> None:
        with self.for_django():
            sql.rows_of_each(queries)

    def insert(self, insert: Insert, rows: Sequence[Any]) -> None:
        self._home.connection.executemany(insert.sqlite, rows)

    def insert_returning_ids(self, insert: Insert, rows: Sequence[Any]) -> list[int]:
        return [self._execute(f"{insert.sqlite} RETURNING id", row).fetchall()[0][0] for row in rows]

    def list_of(self, values: Collection[object]) -> str:
        return _encode([*values]).decode()

    def table_of(self, name: str, rows: Sequence[Sequence[object]]) -> dict[str, Any]:
        return {name: _encode(rows).decode()}

    def moment(self, when: datetime) -> str:
        return str(when.replace(tzinfo=None))

    def _begin(self) -> None:
        self._execute("SAVEPOINT ledger" if self._is_nested else "BEGIN IMMEDIATE")

    def _commit(self, command: str) -> None:
        self._execute(command)

    def _roll_back(self) -> None:
        if not self._home.connection.in_transaction:
            return  # SQLite did itself, as after a full disk
        if self._is_nested:
            self._execute("ROLLBACK TO SAVEPOINT ledger")
        self._execute("RELEASE SAVEPOINT ledger" if self._is_nested else "ROLLBACK")


class _SentStatement:
    """A statement that was sent to PostgreSQL, or waits to be; and its rows. `is_fixed`: it is worth preparing."""

    __slots__ = ("_database", "is_fixed", "rows", "text", "values")

    def __init__(self, database: "PostgresqlDatabase", text: str, values: Any, *, is_fixed: bool = True) -> None:
        self._database = database
        self.text = text
        self.values = values
        self.is_fixed = is_fixed
        self.rows: list[Row] | None = None

    def fetchall(self) -> list[Row]:
        if self.rows is None:
            self._database.flush()
        assert self.rows is not None  # noqa: S101  for the type checker
        return self.rows


class PostgresqlDatabase(Database):
    """Statements are prepared, and go together in a pipeline once an answer is wanted."""

    is_postgresql = True

    def __init__(self, home: BaseDatabaseWrapper) -> None:
        super().__init__(home)
        self._driver: Any = home.Database  # type: ignore[attr-defined]  # the module psycopg
        self._raw: psycopg.Connection[Row] | None = None
        self._cursors: dict[str, psycopg.Cursor[Row]] = {}
        self._unsent: list[_SentStatement] = []
        self._after_commit: list[_SentStatement] = []
        self._has_begun = False

    def open(self) -> None:
        self._unsent.clear()
        if self._home.connection is None:
            self._home.ensure_connection()
        if self._raw is not self._home.connection:
            self._raw, self._cursors = self._home.connection, {}

    def send(self, statement: Statement, values: Values) -> StatementResult:
        return self._send(statement.postgresql, values)

    def send_after_commit(self, statement: Statement, values: Values) -> StatementResult:
        sent = _SentStatement(self, statement.postgresql, values)
        self._after_commit.append(sent)
        return sent

    def send_queries(self, queries: Sequence[sql.Query]) -> None:
        self._unsent += [_SentStatement(self, one.statement, one.values, is_fixed=False) for one in queries]

    def insert(self, insert: Insert, rows: Sequence[Any]) -> None:
        self._send(insert.postgresql, {"rows": _as_json(rows)})

    def insert_returning_ids(self, insert: Insert, rows: Sequence[Any]) -> list[int]:
        sent = self._send(f"{insert.postgresql} RETURNING id", {"rows": _as_json(rows)})
        return [row[0] for row in sent.fetchall()]

    def list_of(self, values: Collection[object]) -> str:
        """The list is text, whose type the statement names: psycopg's type of a list differs with its numbers."""
        return "{" + ",".join(["NULL" if one is None else _quoted(str(one)) for one in values]) + "}"

    def table_of(self, name: str, rows: Sequence[Sequence[object]]) -> dict[str, Any]:
        return {f"{name}{n}": self.list_of(column) for n, column in enumerate(zip(*rows, strict=True), 1)}

    def moment(self, when: datetime) -> datetime:
        return when

    @contextmanager
    def for_django(self) -> Iterator[None]:
        self.flush()
        with super().for_django():
            yield

    def flush(self) -> None:
        """Send what waits, in one round trip, and take the answers."""
        assert self._raw is not None  # noqa: S101  for the type checker
        sent, self._unsent = self._unsent, []
        if not sent:
            return
        self._has_begun = True
        self._raw.prepare_threshold = 0
        try:
            with self._raw.pipeline():
                cursors = [self._execute(one) for one in sent]
        finally:
            self._raw.prepare_threshold = None  # else it keeps the texts of Django's statements, values and all
        for one, cursor in zip(sent, cursors, strict=True):
            one.rows = cursor.fetchall() if cursor.pgresult and cursor.pgresult.nfields else []
            if one.is_fixed:
                self._cursors[one.text] = cursor

    def _send(self, text: str, values: Values | None) -> _SentStatement:
        sent = _SentStatement(self, text, values)
        self._unsent.append(sent)
        return sent

    def _execute(self, one: _SentStatement) -> "psycopg.Cursor[Row]":
        """A cursor keeps what psycopg worked out for its text.

        Statements for Django have Django's kind of cursor.
        """
        assert self._raw is not None  # noqa: S101  for the type checker
        if not one.is_fixed:
            client: psycopg.ClientCursor[Row] = self._driver.ClientCursor(self._raw)
            return client.execute(one.text, one.values)
        cursor = self._cursors.pop(one.text, None) or self._driver.Cursor(self._raw)
        return cursor.execute(one.text, one.values, prepare=True)

    def _begin(self) -> None:
        self._has_begun = False
        self._after_commit.clear()
        self._send("SAVEPOINT ledger" if self._is_nested else "BEGIN", None)

    def _commit(self, command: str) -> None:
        self._send(command, None)
        self._unsent += self._after_commit
        self.flush()

    def _roll_back(self) -> None:
        self._unsent.clear()
        if not self._has_begun:
            return
        nested = "ROLLBACK TO SAVEPOINT ledger; RELEASE SAVEPOINT ledger"
        try:
            self._home.connection.execute(nested if self._is_nested else "ROLLBACK")
        except self._driver.Error:
            self._home.close()


def _quoted(element: str) -> str:
    """An element of an array, as PostgreSQL reads it."""
    return '"' + element.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _as_json(rows: Sequence[Any]) -> str:
    return _encode([row._asdict() for row in rows]).decode()


class _OfThread(threading.local):
    def __init__(self) -> None:
        home = connections[DEFAULT_DB_ALIAS]
        is_postgresql = home.vendor == "postgresql"
        self.database: Database = PostgresqlDatabase(home) if is_postgresql else SqliteDatabase(home)


_per_thread = _OfThread()


def thread_database() -> Database:
    """The connection of the thread that calls."""
    return _per_thread.database
