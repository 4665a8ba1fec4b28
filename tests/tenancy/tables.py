"""The content of a hub's database, without columns that every request may touch: a refusal changes nothing."""

import sqlite3
from contextlib import closing
from functools import lru_cache
from typing import Any

import psycopg
from psycopg.types.string import TextLoader

from lab.hub_process import HubProcess

# Sockets and beats; what a refusal writes on purpose is the audit's row of it.
NOT_LOOKED_AT = {
    "agents_process",
    "agents_connection",
    "agents_attachment",
    "hub_jobrun",
    "django_session",
    "django_migrations",
    "sqlite_schema",
    "sqlite_sequence",
    "accounts_loginattempt",
    "accounts_devicegrant",
    "django_content_type",
    "auth_permission",
    "agents_failureday",  # a job counts failed asks
    "agents_failurecaller",
    "a2a_bridge_recordedexchange",  # written up to a second after a request that asked an agent
    "agents_agentrank",  # a job ranks agents
    "gateway_framerecord",  # written up to a second after a frame
    "accounts_signingkey",  # the hub's own; made by the first request for a signed card
}
TOUCHED = {"last_used_at", "last_seen_at", "attempts", "next_attempt_at", "last_status", "last_error"}
TOUCHED |= {
    "consecutive_failures",
    "questions_blanked_to",
    "failure_group_id",
}  # deliveries of rows that earlier tests used go on meanwhile
WHOSE = ("user_id", "owner_id", "caller_id", "uploader_id", "author_id", "network_id")
Row = tuple[tuple[str, Any], ...]
Tables = dict[str, set[Row]]


def snapshot(hub: HubProcess) -> Tables:
    """Every row by table."""
    with closing(connect(hub)) as connection:
        return {name: _rows(connection.cursor(), name) for name in tables_looked_at(hub, connection)}


def tables_looked_at(hub: HubProcess, connection: Any) -> list[str]:
    """The names of the tables of a hub, but those that every request may touch and those of indexes."""
    named = (
        "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        if hub.home.is_grown
        else "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
    )
    return [name for (name,) in connection.execute(named).fetchall() if name not in NOT_LOOKED_AT]


def _rows(cursor: Any, table: str) -> set[Row]:
    found = cursor.execute(f"SELECT * FROM {table}")
    columns = tuple(column[0] for column in found.description)
    looked_at = (_look_at(table, columns, values) for values in found.fetchall())
    return {row for row in looked_at if row is not None}


@lru_cache(maxsize=100_000)  # nearly all rows are as they were at the snapshot before
def _look_at(table: str, columns: tuple[str, ...], values: tuple[Any, ...]) -> Row | None:
    return look_at(table, dict(zip(columns, values, strict=True)))


def look_at(table: str, row: dict[str, Any], but_of: int | None = None) -> Row | None:
    """A row without what every request may touch; None for a refusal's, and for those of the user `but_of`."""
    is_a_refusal = table == "agents_turn" and row["outcome"] == "denied"
    is_a_refusal |= table == "agents_failuregroup" and not row["shape"]  # a job counts refusals into it
    if is_a_refusal or (but_of is not None and but_of in [row.get(column) for column in WHOSE]):
        return None
    row |= {"status": "pending"} if row.get("status") == "sending" else {}
    return tuple((name, str(value)) for name, value in row.items() if name not in TOUCHED)


def connect(hub: HubProcess) -> Any:
    """A connection to a hub's database, of which each statement is a transaction of its own."""
    if hub.home.is_grown:
        grown = psycopg.connect(hub.home.env["DATABASE_URL"], autocommit=True)
        grown.adapters.register_loader("jsonb", TextLoader)  # a row of texts and numbers can be kept in a cache
        return grown
    return sqlite3.connect(hub.home.folder / "hub.sqlite3", timeout=10, isolation_level=None)
