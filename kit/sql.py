"""Plain SQL for the few statements whose compile time the ORM would charge on every ask."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection

Row = tuple[Any, ...]


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


def rows_of_each(queries: Sequence[Query]) -> list[list[Row]]:
    """The rows of several SELECTs, in their order; PostgreSQL is asked them all in one round trip.

    Each still sees what was committed before it ran, not before the first.
    """
    if connection.vendor != "postgresql":
        return [rows(query.statement, query.values) for query in queries]
    with connection.cursor() as cursor:
        values = [value for query in queries for value in query.values]
        cursor.execute("; ".join(query.statement for query in queries), values)
        found: list[list[Row]] = [cursor.fetchall()]
        while cursor.nextset():
            found.append(cursor.fetchall())
        return found


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
