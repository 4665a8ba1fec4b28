"""The changes in a hub's tables since a moment: triggers note each row that is made, changed or deleted.

To see that a refusal changed nothing takes one query of the notes, in place of all tables before and after.
"""

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple

from lab.hub_process import HubProcess
from tests.tenancy.tables import Row, connect, look_at, tables_looked_at

NOTES = "noted_change"
ON_POSTGRESQL = f"""
CREATE TABLE {NOTES} (id bigserial PRIMARY KEY, changed text, went jsonb, came jsonb);
CREATE FUNCTION note_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO {NOTES} (changed, went, came) VALUES (TG_TABLE_NAME, to_jsonb(OLD), to_jsonb(NEW));
    RETURN NULL;
END $$
"""
ON_SQLITE = f"CREATE TABLE {NOTES} (id INTEGER PRIMARY KEY, changed TEXT, went TEXT, came TEXT)"
ROWS = {"INSERT": ("", "NEW"), "UPDATE": ("OLD", "NEW"), "DELETE": ("OLD", "")}  # what went and what came


class Change(NamedTuple):
    """The rows that went from a table and those that came; a row that is changed does both."""

    went: set[Row]
    came: set[Row]


class Changes:
    """The notes of one hub."""

    def __init__(self, hub: HubProcess, connection: Any) -> None:
        self._connection = connection
        names = tables_looked_at(hub, connection)
        statements = _on_postgresql(names) if hub.home.is_grown else _on_sqlite(connection, names)
        for statement in ("BEGIN", *statements, "COMMIT"):
            connection.execute(statement)

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a statement, by a connection that stays open."""
        rows: list[tuple[Any, ...]] = self._connection.execute(statement).fetchall()
        return rows

    def mark(self) -> int:
        """This moment."""
        [(last,)] = self.sql(f"SELECT coalesce(max(id), 0) FROM {NOTES}")
        return int(last)

    def since(self, mark: int, *, but_of: int | None = None) -> dict[str, Change]:
        """The changes by table; without the rows of one user when wanted."""
        balance: defaultdict[str, Counter[Row]] = defaultdict(Counter)
        for table, *rows in self.sql(f"SELECT changed, went, came FROM {NOTES} WHERE id > {mark}"):
            for row, count in zip(rows, (-1, 1), strict=True):
                if row is None or _may_be_forgotten(table, found := json.loads(row)):
                    continue
                if kept := look_at(table, found, but_of):
                    balance[table][kept] += count
        changes = {table: Change(set(-counts), set(+counts)) for table, counts in balance.items()}
        return {table: change for table, change in changes.items() if any(change)}

    def check_none(self, mark: int, *, but_of: int | None = None) -> None:
        """Fail with the rows that came and went."""
        changes = self.since(mark, but_of=but_of)
        assert not changes, changes


@contextmanager
def noting_changes(hub: HubProcess) -> Iterator[Changes]:
    """Notes of what changes from now on."""
    connection = connect(hub)
    try:
        yield Changes(hub, connection)
    finally:
        connection.close()


def _may_be_forgotten(table: str, row: dict[str, Any]) -> bool:
    """True of an envelope that a job deletes by now: its time has passed, which has no zone on SQLite."""
    if table != "agnt_seenenvelope":
        return False
    expires_at = datetime.fromisoformat(row["expires_at"])
    return (expires_at if expires_at.tzinfo else expires_at.replace(tzinfo=UTC)) < datetime.now(UTC)


def _on_postgresql(names: list[str]) -> Iterator[str]:
    yield ON_POSTGRESQL
    for name in names:
        events = " OR ".join(ROWS)
        yield f"CREATE TRIGGER noted AFTER {events} ON {name} FOR EACH ROW EXECUTE FUNCTION note_change()"


def _on_sqlite(connection: sqlite3.Connection, names: list[str]) -> Iterator[str]:
    yield ON_SQLITE
    for name in names:
        columns = connection.execute(f"SELECT name, type FROM pragma_table_info('{name}')").fetchall()
        for event, rows in ROWS.items():
            went, came = (_as_json(row, columns) if row else "NULL" for row in rows)
            yield (
                f"CREATE TRIGGER noted_{event}_{name} AFTER {event} ON {name}"
                f" BEGIN INSERT INTO {NOTES} (changed, went, came) VALUES ('{name}', {went}, {came}); END"
            )


def _as_json(row: str, columns: list[tuple[str, str]]) -> str:
    """A row as SQLite writes it in JSON, which holds no bytes."""
    values = {name: f'{row}."{name}"' for name, _ in columns}
    values |= {name: f"hex({values[name]})" for name, type_ in columns if type_ == "BLOB"}
    members = (f"'{name}', {value}" for name, value in values.items())
    return f"json_object({', '.join(members)})"
