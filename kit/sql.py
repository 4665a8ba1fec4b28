"""Plain SQL for the few statements whose compile time the ORM would charge on every ask."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import InterfaceError, InternalError, OperationalError, connection

Row = tuple[Any, ...]

# The database is out of reach, full, or takes no writes (PostgreSQL then says InternalError): nothing was done.
AWAY = (OperationalError, InterfaceError, InternalError)


def state_of(failure: Exception) -> str | None:
    """The SQLSTATE by which PostgreSQL refused; None without one, as of SQLite's failures."""
    state: str | None = getattr(failure.__cause__, "sqlstate", None)
    return state


class Query(NamedTuple):
    """A SELECT and its values."""

    statement: str
    values: Sequence[Any] = ()


def rows(statement: str, values: Sequence[Any] = ()) -> list[Row]:
    """Run one statement and fetch what it returns."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        fetched: list[Row] = cursor.fetchall()
        return fetched


class Insert(NamedTuple):
    """Rows to add: `into` names table and columns, `ending` may say ON CONFLICT and RETURNING."""

    into: str
    rows: Sequence[Sequence[Any]]
    ending: str = ""


def shares_round_trips() -> bool:
    """Whether statements sent together are cheaper than one by one."""
    return connection.vendor == "postgresql"


def write_each(writes: Sequence[Query | Insert]) -> list[list[Row]]:
    """Run several statements in their order, PostgreSQL in one round trip; what each returns, if anything."""
    if not shares_round_trips():
        return [_write(write) for write in writes]
    return rows_of_each([_as_query(write) if isinstance(write, Insert) else write for write in writes])


def _write(write: Query | Insert) -> list[Row]:
    if isinstance(write, Insert) and "RETURNING" not in write.ending:
        run_many(f"{write.into} VALUES {_row(write)} {write.ending}", write.rows)
        return []
    return rows(*(_as_query(write) if isinstance(write, Insert) else write))


def _as_query(insert: Insert) -> Query:
    values = [value for row in insert.rows for value in row]
    return Query(f"{insert.into} VALUES {', '.join([_row(insert)] * len(insert.rows))} {insert.ending}", values)


def _row(insert: Insert) -> str:
    return f"({marks(insert.rows[0])})"


def rows_of_each(queries: Sequence[Query]) -> list[list[Row]]:
    """The rows of several SELECTs, in their order; PostgreSQL is asked them all in one round trip.

    Each still sees what was committed before it ran, not before the first.
    """
    if not shares_round_trips():
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


def run_many(statement: str, batch: Sequence[Sequence[Any]]) -> None:
    """Run one statement once for each row of values."""
    with connection.cursor() as cursor:
        cursor.executemany(statement, batch)


def marks(values: Iterable[object]) -> str:
    """The placeholders of an IN list: one `%s` for each value."""
    return ",".join("%s" for _ in values)


def moment(when: datetime) -> Any:
    """An aware datetime as this database stores it."""
    return connection.ops.adapt_datetimefield_value(when)
