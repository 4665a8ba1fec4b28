"""The ledger's connection: that of sqlite3 or psycopg under Django's own of the thread (docs/adr/0081).

Statements that are sent together are one round trip on PostgreSQL: the thread waits for a result when its rows are
fetched, and at the end of the transaction.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Protocol

import msgspec
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.module_loading import import_string

from agents.core.ledger.texts import Insert, Statement
from agents.models.session import PROCESS_DEAD_S
from kit import sql
from kit.durations import seconds

Row = tuple[Any, ...]

PROCESS_DEAD = timedelta(seconds=PROCESS_DEAD_S)
GRACE = timedelta(seconds=seconds(60.0))  # how long a claim outlives the turn that its agent may still work on
CACHE_KIB = 16_000  # of pages of SQLite; other connections have the 2,000 of `settings.DATABASES`

to_json = msgspec.json.Encoder().encode


class StatementResult(Protocol):
    """The rows and the row count that a statement returned."""

    def fetchall(self) -> list[Row]:
        """The rows of the result."""


class Database(ABC):
    """The connection of one thread.

    The object as a context manager is a transaction, inside Django's if there is one. Errors of the transaction
    are raised as Django's. Elsewhere they are the driver's, and Django's within `django_errors`.
    `webhooks_listen`: whether the last batch found a live webhook subscription. A hint: the next may find another.
    `home`: Django's connection; `raw`: the driver's, which it had when `open` was called.
    `run`: runs a command or a statement in the database's own text. `commit`: runs the command that commits.
    `now`, `stored_now`, `day`: the time at which the transaction is decided, see `lock_sessions`.
    """

    is_postgresql: ClassVar[bool]
    begin: ClassVar[str]
    run: Callable[..., Any]
    commit: Callable[[str], Any]
    now: datetime
    stored_now: Any
    day: str

    def __init__(self, home: BaseDatabaseWrapper) -> None:
        self.home = home
        self.raw: Any = None
        self._is_nested = False
        self._times: dict[str, str] = {}  # what `{now}`, `{day}` and so on of a statement are on SQLite
        self._hooks: list[Any] = []
        self.webhooks_listen = True
        self.django_errors: AbstractContextManager[None] = home.wrap_database_errors

    def open(self) -> None:
        """Use Django's connection of the thread, which is made where there is none."""
        home = self.home
        if home.connection is None:
            home.ensure_connection()
            self.set_up()
        self.raw = home.connection

    @abstractmethod
    def set_up(self) -> None:
        """Set what the ledger wants of a new connection."""

    @abstractmethod
    def lock_sessions(self, session_ids: Collection[int]) -> None:
        """Lock sessions in the order of their ids, and only then read the clock: `now`, in UTC.

        A batch about one of these sessions waits here for the batches before, and its time is after theirs.
        """

    @abstractmethod
    def send(self, statement: Statement, **values: Any) -> StatementResult:
        """Run a statement: at the latest when the rows of an answer are fetched, or the transaction ends.

        A list of the statement is any collection; a table of the statement is rows, at least one.
        """

    @abstractmethod
    def send_after_commit(self, statement: Statement, **values: Any) -> StatementResult:
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
    def moment(self, when: datetime) -> Any:
        """A datetime in UTC as it is stored."""

    @abstractmethod
    def roll_back(self) -> None:
        """Undo the transaction."""

    @contextmanager
    def for_django(self) -> Iterator[None]:
        """Inside a transaction: within it Django's ORM and cursors work in the same transaction."""
        home = self.home
        before = home.in_atomic_block, home.autocommit
        home.in_atomic_block, home.autocommit = True, False
        try:
            yield
            home.validate_no_broken_transaction()
        finally:
            home.in_atomic_block, home.autocommit = before

    def __enter__(self) -> None:
        home = self.home
        self._is_nested = home.in_atomic_block
        self._hooks = [*home.run_on_commit]
        try:
            self.run("SAVEPOINT ledger" if self._is_nested else self.begin)
        except Exception as failure:
            self._raise_as_django(failure)
            raise

    def __exit__(self, kind: object, failure: BaseException | None, trace: object) -> None:
        if failure is None:
            try:
                self.commit("RELEASE SAVEPOINT ledger" if self._is_nested else "COMMIT")
            except BaseException as uncommitted:
                self._undo(uncommitted)
                raise
            if self.home.run_on_commit and not self._is_nested:
                self.home.run_and_clear_commit_hooks()
        else:
            self._undo(failure)

    def _undo(self, failure: BaseException) -> None:
        self.home.run_on_commit = self._hooks
        self.home.needs_rollback = False
        with self.django_errors:
            self.roll_back()
        self._raise_as_django(failure)

    def _raise_as_django(self, failure: BaseException) -> None:
        """Raise Django's error for one of the driver. Only failures pay for it: most batches have none."""
        self.django_errors.__exit__(type(failure), failure, failure.__traceback__)


class SqliteDatabase(Database):
    """A statement runs when it is sent. `run` and `commit` are `execute` of the driver's connection."""

    is_postgresql = False
    begin = "BEGIN IMMEDIATE"  # takes the write lock now: what a batch reads holds until its commit

    def open(self) -> None:
        super().open()
        self.run = self.commit = self.raw.execute

    def set_up(self) -> None:
        self.home.cursor().execute(f"PRAGMA cache_size=-{CACHE_KIB}")

    def lock_sessions(self, session_ids: Collection[int]) -> None:
        """The transaction holds the one write lock of SQLite already; its clock is that of this host."""
        self.now = datetime.now(UTC)
        now = self.now.replace(tzinfo=None)  # as SQLite stores it
        self.stored_now = str(now)
        self.day = self.stored_now[:10]
        alive, until = now - PROCESS_DEAD, now + GRACE
        self._times = {"now": self.stored_now, "day": self.day, "alive": str(alive), "until": str(until)}

    def send(self, statement: Statement, **values: Any) -> StatementResult:
        for name in (*statement.lists, *statement.tables):
            values[name] = to_json(values[name]).decode()
        result: StatementResult = self.run(statement.sqlite, {**self._times, **values})
        return result

    def send_after_commit(self, statement: Statement, **values: Any) -> StatementResult:
        """On SQLite no other connection writes before the commit, so a result of this moment still holds then."""
        return self.send(statement, **values)

    def send_queries(self, queries: Sequence[sql.Query]) -> None:
        with self.for_django():
            sql.rows_of_each(queries)

    def insert(self, insert: Insert, rows: Sequence[Any]) -> None:
        self.raw.executemany(insert.sqlite, rows)

    def insert_returning_ids(self, insert: Insert, rows: Sequence[Any]) -> list[int]:
        return [self.run(f"{insert.sqlite} RETURNING id", row).fetchall()[0][0] for row in rows]

    def moment(self, when: datetime) -> str:
        return str(when.replace(tzinfo=None))

    def roll_back(self) -> None:
        if not self.raw.in_transaction:
            return  # SQLite did itself, as after a full disk
        if self._is_nested:
            self.run("ROLLBACK TO SAVEPOINT ledger")
        self.run("RELEASE SAVEPOINT ledger" if self._is_nested else "ROLLBACK")


# By Django's vendor. Only a hub on PostgreSQL loads psycopg (docs/adr/0163).
CLASSES = {
    "sqlite": f"{__name__}.SqliteDatabase",
    "postgresql": "agents.core.ledger.postgresql.PostgresqlDatabase",
}


class _OfThread(threading.local):
    def __init__(self) -> None:
        home = connections[DEFAULT_DB_ALIAS]
        self.database: Database = import_string(CLASSES[home.vendor])(home)


_per_thread = _OfThread()


def thread_database() -> Database:
    """The connection of the calling thread; it is open."""
    database = _per_thread.database
    if database.raw is None or database.raw is not database.home.connection:  # Django closed it, or made another
        database.open()
    return database
