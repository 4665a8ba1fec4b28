"""The texts of the ledger's statements. A statement has one text per database, whatever the size of a batch."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from agents.models.session import PROCESS_DEAD_S

_LIST = re.compile(r"= ANY\(:(\w+)\)")
_NAME = re.compile(r"(?<!:):(\w+)")


class Statement(NamedTuple):
    """The text of a statement, or of a part of one, for each database.

    `lists`, `tables`: the names of the values that are lists, and of those that are rows (`table`).
    """

    sqlite: str
    postgresql: str
    lists: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()


# PostgreSQL's clock is read once, after the locks, and kept for the transaction.
READ_CLOCK = "CAST(set_config('clawbridge.now', CAST(clock_timestamp() AS text), true) AS timestamptz)"
NOW = Statement(":now", "CAST(current_setting('clawbridge.now') AS timestamptz)")
_PARTS = {
    "now": NOW,
    "day": Statement(":day", f"CAST({NOW.postgresql} AT TIME ZONE 'UTC' AS date)"),
    "alive": Statement(":alive", f"({NOW.postgresql} - interval '{PROCESS_DEAD_S} seconds')"),
}


def statement(text: str, *, postgresql_lock: str = "", **parts: Statement) -> Statement:
    """Make a statement of one text. `:name` is a value, `= ANY(:name)` compares with a list.

    `{now}`, `{day}`: the time of the batch, and its day. `{alive}`: a live process has a heartbeat after this
    time. `{name}`: one of the `parts`. `postgresql_lock`: the locking clause for PostgreSQL; SQLite has one write
    lock.
    """
    known = _PARTS | parts
    sqlite, postgresql = (text.format(**{name: part[i] for name, part in known.items()}) for i in (0, 1))
    return Statement(
        _LIST.sub(r"IN (SELECT value FROM json_each(:\1))", sqlite),
        _NAME.sub(r"%(\1)s", f"{postgresql} {postgresql_lock}"),
        tuple(dict.fromkeys(_LIST.findall(sqlite))),
        tuple(name for part in parts.values() for name in part.tables),
    )


def table(name: str, *types: str) -> Statement:
    """A part of a statement: the rows of the value `name`, at least one, with columns column1, column2, ..."""
    numbers = range(1, len(types) + 1)
    columns = ", ".join(f"json_extract(value, '$[{n - 1}]') AS column{n}" for n in numbers)
    arrays = ", ".join(f"CAST(:{name}{n} AS {one}[])" for n, one in zip(numbers, types, strict=True))
    names = ", ".join(f"column{n}" for n in numbers)
    return Statement(
        f"(SELECT {columns} FROM json_each(:{name}))",
        f"(SELECT {names} FROM unnest({arrays}) AS given({names}))",
        tables=(name,),
    )


class Insert(NamedTuple):
    """The texts of an INSERT; the rows are structs of its columns."""

    sqlite: str
    postgresql: str


def insert(into: str, columns: Sequence[str], ending: str = "", *, now: str = "") -> Insert:
    """Make an `Insert`. PostgreSQL gets the rows as JSON; the columns of the table give the types.

    `now`: the column that PostgreSQL sets to the time of the batch, whatever the rows contain.
    """
    names = ", ".join(columns)
    values = ", ".join(NOW.postgresql if one == now else one for one in columns)
    return Insert(
        f"INSERT INTO {into} ({names}) VALUES ({', '.join('?' * len(columns))}) {ending}",
        f"INSERT INTO {into} ({names})"
        f" SELECT {values} FROM json_populate_recordset(NULL::{into}, %(rows)s) {ending}",
    )


def checked(changing: Statement, wanted: str, also: str = "true") -> Statement:
    """A statement that on PostgreSQL fails the transaction unless it returns as many rows as the value `wanted`.

    `also`: one more condition that must be true.

    To fail, the statement divides by zero, which also aborts the statements sent with it. The text for SQLite is
    unchanged: the calling function counts the rows.
    """
    changed = f"WITH changed AS ({changing.postgresql})"
    check = f"SELECT 1 / CAST(count(*) = %({wanted})s AND {also} AS integer) FROM changed"
    return changing._replace(postgresql=f"{changed} {check}")
