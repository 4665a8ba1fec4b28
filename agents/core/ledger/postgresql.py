"""The ledger's connection to PostgreSQL: psycopg, with prepared statements that go together in pipelines."""

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from typing import Any

import psycopg
from django.db.backends.base.base import BaseDatabaseWrapper
from msgspec import Struct

from agents.core.ledger.database import Database, Row, StatementResult, to_json
from agents.core.ledger.texts import READ_CLOCK, Insert, Statement, statement
from kit import sql

# `count` makes PostgreSQL lock all sessions before it reads the clock. NO KEY: other transactions can write rows
# that refer to a session meanwhile.
_LOCK_SESSIONS = statement(
    """
WITH locked AS MATERIALIZED (
  SELECT id FROM agents_session WHERE id = ANY(:ids) ORDER BY id FOR NO KEY UPDATE
)
SELECT to_char({clock} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24MISS.US'), locked_all.count
FROM (SELECT count(*) AS count FROM locked) AS locked_all
""",
    clock=Statement("", READ_CLOCK),
)


class _SentStatement(Struct, eq=False):
    """A statement that was sent to PostgreSQL or will be, and its rows. `is_fixed`: the statement is prepared."""

    database: "PostgresqlDatabase"
    text: str
    values: Any
    is_fixed: bool = True
    rows: list[Row] | None = None

    def fetchall(self) -> list[Row]:
        if self.rows is None:
            self.database.flush()
        assert self.rows is not None  # noqa: S101  for the type checker
        return self.rows


class PostgresqlDatabase(Database):
    """Prepares statements, and sends them together in a pipeline when a result is fetched."""

    is_postgresql = True
    begin = "BEGIN"

    def __init__(self, home: BaseDatabaseWrapper) -> None:
        super().__init__(home)
        self._cursors: dict[str, psycopg.Cursor[Row]] = {}
        self._unsent: list[_SentStatement] = []
        self._after_commit: list[_SentStatement] = []
        self._clock: _SentStatement | None = None
        self._has_begun = False

    def open(self) -> None:
        super().open()
        self._cursors = {}

    def set_up(self) -> None:
        """Do nothing: Django's settings are enough."""

    def __enter__(self) -> None:
        self._unsent.clear()
        self._after_commit.clear()
        self._has_begun = False
        super().__enter__()

    def lock_sessions(self, session_ids: Collection[int]) -> None:
        self._clock = self.send(_LOCK_SESSIONS, ids=set(session_ids))

    def run(self, text: str, values: Any = None) -> _SentStatement:
        sent = _SentStatement(self, text, values)
        self._unsent.append(sent)
        return sent

    def commit(self, text: str) -> None:
        self.run(text)
        self._unsent += self._after_commit
        self.flush()

    def send(self, statement: Statement, **values: Any) -> _SentStatement:
        return self.run(statement.postgresql, _bound(statement, values))

    def send_after_commit(self, statement: Statement, **values: Any) -> StatementResult:
        sent = _SentStatement(self, statement.postgresql, _bound(statement, values))
        self._after_commit.append(sent)
        return sent

    def send_queries(self, queries: Sequence[sql.Query]) -> None:
        self._unsent += [_SentStatement(self, one.statement, one.values, is_fixed=False) for one in queries]

    def insert(self, insert: Insert, rows: Sequence[Struct]) -> None:
        self.run(insert.postgresql, {"rows": _as_json(rows)})

    def insert_returning_ids(self, insert: Insert, rows: Sequence[Struct]) -> list[int]:
        sent = self.run(f"{insert.postgresql} RETURNING id", {"rows": _as_json(rows)})
        return [row[0] for row in sent.fetchall()]

    def moment(self, when: datetime) -> datetime:
        return when

    @contextmanager
    def for_django(self) -> Iterator[None]:
        self.flush()
        with super().for_django():
            yield

    def flush(self) -> None:
        """Send the queued statements in one round trip, and fetch their rows."""
        sent, self._unsent = self._unsent, []
        if not sent:
            return
        self._has_begun = True
        self.raw.prepare_threshold = 0
        try:
            with self.raw.pipeline():
                cursors = [self._execute(one) for one in sent]
        finally:
            # Otherwise psycopg would keep Django's statements, whose texts contain values.
            self.raw.prepare_threshold = None
        for one, cursor in zip(sent, cursors, strict=True):
            one.rows = cursor.fetchall() if cursor.pgresult and cursor.pgresult.nfields else []
            if one.is_fixed:
                self._cursors[one.text] = cursor
        if self._clock is not None and self._clock.rows:
            now: str = self._clock.rows[0][0]
            self.now = self.stored_now = datetime.fromisoformat(now).replace(tzinfo=UTC)
            self.day = now[:10]
            self._clock = None

    def _execute(self, one: _SentStatement) -> psycopg.Cursor[Row]:
        """Execute a statement with the cursor of its text.

        A statement with Django's placeholders gets the kind of cursor that Django uses.
        """
        if not one.is_fixed:
            client: psycopg.ClientCursor[Row] = psycopg.ClientCursor(self.raw)
            return client.execute(one.text, one.values)
        query, names = _numbered(one.text)
        cursor = self._cursors.pop(one.text, None) or psycopg.RawCursor(self.raw)
        return cursor.execute(query, [one.values[name] for name in names] if names else None, prepare=True)

    def roll_back(self) -> None:
        self._unsent.clear()
        if not self._has_begun:
            return
        nested = "ROLLBACK TO SAVEPOINT ledger; RELEASE SAVEPOINT ledger"
        try:
            self.raw.execute(nested if self._is_nested else "ROLLBACK")
        except psycopg.Error:
            self.home.close()


@cache
def _numbered(text: str) -> tuple[str, list[str]]:
    """A statement with PostgreSQL's own placeholders, which psycopg need not parse, and the names."""
    names = list(dict.fromkeys(_PLACEHOLDER.findall(text)))
    numbered = _PLACEHOLDER.sub(lambda found: f"${names.index(found[1]) + 1}", text)
    return numbered.replace("%%", "%"), names


_PLACEHOLDER = re.compile(r"%\((\w+)\)s")


def _bound(statement: Statement, values: dict[str, Any]) -> dict[str, Any]:
    """The values of a statement for psycopg: a list as an array literal, a table as one array literal a column."""
    for name in statement.lists:
        values[name] = _array(values[name])
    for name in statement.tables:
        for n, column in enumerate(zip(*values.pop(name), strict=True), 1):
            values[f"{name}{n}"] = _array(column)
    return values


def _array(values: Collection[object]) -> str:
    """An array literal, whose type the statement determines: psycopg's type of a list varies with its numbers."""
    texts = ["NULL" if one is None else str(one) if type(one) is int else _quoted(str(one)) for one in values]
    return "{" + ",".join(texts) + "}"


def _quoted(element: str) -> str:
    """An element of an array literal, quoted for PostgreSQL."""
    return '"' + element.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _as_json(rows: Sequence[Struct]) -> str:
    return to_json(rows).decode()
