"""The ledger's database access: the driver's connection under the thread's Django connection (docs/adr/0081).

On PostgreSQL statements are queued, and sent together in one round trip: when the rows of a result are fetched,
and at the end of the transaction.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Protocol

import msgspec
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils.module_loading import import_string
from msgspec import Struct
from msgspec.structs import astuple

from agents.core.ledger.texts import Insert, Statement
from agents.models.session import PROCESS_DEAD_S
from kit import sql
from kit.durations import seconds
from kit.write_lock import write_lock

Row = tuple[Any, ...]

PROCESS_DEAD = timedelta(seconds=PROCESS_DEAD_S)
GRACE = timedelta(seconds=seconds(60.0))  # how long a claim outlives the turn that its agent may still work on
CACHE_KIB = 16_000  # SQLite's page cache; other connections have the 2,000 KiB of `settings.DATABASES`

to_json = msgspec.json.Encoder().encode


class StatementResult(Protocol):
    """The rows and the row count that a statement returned."""

    def fetchall(self) -> list[Row]:
        """The rows of the result."""


class Database(ABC):
    """The connection of one thread.

    The context manager runs a transaction, or a savepoint in a transaction of Django's. A failed transaction
    raises Django's database errors. Other calls raise the driver's errors, and Django's within `django_errors`.

    `webhooks_listen`: True if the last batch found a live webhook subscription; for the next batch only a hint.
    `home`: Django's connection; `raw`: the driver's connection that `home` had when `open` was called.
    `run`: runs a command or a statement in the database's own text. `commit`: runs the command that commits.
    `now`, `stored_now`, `day`: the time at which the transaction is decided, see `lock_sessions`.
    `turn`: the ledger's, among the threads of the process that write; see `kit.write_lock`.
    """

    is_postgresql: ClassVar[bool]
    turn: ClassVar[AbstractContextManager[None]] = nullcontext()
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
        self._times: dict[str, str] = {}  # on SQLite, the values of `{now}`, `{day}` and so on in statements
        self._hooks: list[Any] = []
        self.webhooks_listen = True
        self.django_errors: AbstractContextManager[None] = home.wrap_database_errors

    def open(self) -> None:
        """Use the thread's Django connection; the connection is opened if it is closed."""
        home = self.home
        if home.connection is None:
            home.ensure_connection()
            self.set_up()
        self.raw = home.connection

    @abstractmethod
    def set_up(self) -> None:
        """Configure a new connection for the ledger."""

    @abstractmethod
    def lock_sessions(self, session_ids: Collection[int]) -> None:
        """Lock sessions in the order of their ids, and only then read the clock: `now`, in UTC.

        A batch waits here for other batches that have locked one of these sessions, so its time is after theirs.
        """

    @abstractmethod
    def send(self, statement: Statement, **values: Any) -> StatementResult:
        """Run a statement, at the latest when the rows of a result are fetched or the transaction ends.

        The value of a list in the statement is any collection; the value of a table is at least one row.
        """

    @abstractmethod
    def send_after_commit(self, statement: Statement, **values: Any) -> StatementResult:
        """Send a query that also sees this transaction's writes; its rows are available after the commit."""

    @abstractmethod
    def send_queries(self, queries: Sequence[sql.Query]) -> None:
        """Run statements with Django's placeholders, in their order; their rows are dropped."""

    @abstractmethod
    def insert(self, insert: Insert, rows: Sequence[Struct]) -> None:
        """Add rows; at least one."""

    @abstractmethod
    def insert_returning_ids(self, insert: Insert, rows: Sequence[Struct]) -> list[int]:
        """Add rows; returns their ids."""

    @abstractmethod
    def moment(self, when: datetime) -> Any:
        """A datetime in UTC, as the database stores it."""

    @abstractmethod
    def roll_back(self) -> None:
        """Undo the transaction."""

    @contextmanager
    def for_django(self) -> Iterator[None]:
        """Let Django's ORM and cursors work in the open transaction of the ledger."""
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
        """Raise Django's error for an error of the driver; only failed batches pay for the conversion."""
        self.django_errors.__exit__(type(failure), failure, failure.__traceback__)


class SqliteDatabase(Database):
    """Runs each statement when it is sent. `run` and `commit` are `execute` of the driver's connection."""

    is_postgresql = False
    turn = write_lock
    # Takes the write lock now, so that the rows that a batch reads stay the same until its commit.
    begin = "BEGIN IMMEDIATE"

    def open(self) -> None:
        super().open()
        self.run = self.commit = self.raw.execute

    def set_up(self) -> None:
        self.home.cursor().execute(f"PRAGMA cache_size=-{CACHE_KIB}")

    def lock_sessions(self, session_ids: Collection[int]) -> None:
        """Only set the time, from the clock of this host: the transaction has SQLite's write lock already."""
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
        """Run the query now: on SQLite no other connection writes before the commit."""
        return self.send(statement, **values)

    def send_queries(self, queries: Sequence[sql.Query]) -> None:
        with self.for_django():
            sql.rows_of_each(queries)

    def insert(self, insert: Insert, rows: Sequence[Struct]) -> None:
        self.raw.executemany(insert.sqlite, map(astuple, rows))

    def insert_returning_ids(self, insert: Insert, rows: Sequence[Struct]) -> list[int]:
        return [self.run(f"{insert.sqlite} RETURNING id", astuple(row)).fetchall()[0][0] for row in rows]

    def moment(self, when: datetime) -> str:
        return str(when.replace(tzinfo=None))

    def roll_back(self) -> None:
        if not self.raw.in_transaction:
            return  # SQLite rolled back by itself, as it does when the disk is full
        if self._is_nested:
            self.run("ROLLBACK TO SAVEPOINT ledger")
        self.run("RELEASE SAVEPOINT ledger" if self._is_nested else "ROLLBACK")


# By Django's vendor. The classes are named by path, so that only a hub on PostgreSQL loads psycopg
# (docs/adr/0163).
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
    """The open connection of the calling thread."""
    database = _per_thread.database
    # Django closed its connection, or opened another.
    if database.raw is None or database.raw is not database.home.connection:
        database.open()
    return database
