"""What is in a hub's database, but for what every request may touch: to see that a refusal changed nothing."""

import sqlite3
from contextlib import closing
from functools import lru_cache
from typing import Any, NamedTuple

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
    "sqlite_sequence",
    "accounts_loginattempt",
    "accounts_devicegrant",
    "django_content_type",
    "auth_permission",
    "accounts_signingkey",  # the hub's own; made by the first request for a signed card
}
TOUCHED = {"last_used_at", "last_seen_at", "attempts", "next_attempt_at", "last_status", "last_error"}
TOUCHED |= {
    "consecutive_failures",
    "questions_blanked_to",
}  # deliveries of the estates that are used up go on meanwhile
WHOSE = ("user_id", "owner_id", "caller_id", "uploader_id", "author_id", "network_id")
Row = tuple[tuple[str, Any], ...]
Tables = dict[str, set[Row]]


def snapshot(hub: HubProcess, *, but_of: int | None = None) -> Tables:
    """Every row by table, without those of one user when wanted."""
    grown = hub.home.is_grown
    with closing(_connect(hub)) as connection:
        cursor = connection.cursor()
        named = (
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
            if grown
            else "SELECT name FROM sqlite_master WHERE type = 'table'"
        )
        names = [name for (name,) in cursor.execute(named).fetchall() if name not in NOT_LOOKED_AT]
        return {name: _rows(cursor, name, but_of) for name in names}


def _rows(cursor: Any, table: str, but_of: int | None) -> set[Row]:
    found = cursor.execute(f"SELECT * FROM {table}")
    columns = tuple(column[0] for column in found.description)
    looked_at = (_look_at(table, columns, values) for values in found.fetchall())
    return {one.row for one in looked_at if not one.is_a_refusal and (but_of is None or but_of not in one.users)}


class LookedAt(NamedTuple):
    """A row without what every request may touch, whether it is a refusal's, and the users whose it is."""

    row: Row
    is_a_refusal: bool
    users: frozenset[Any]


@lru_cache(maxsize=100_000)  # nearly all rows are as they were at the snapshot before
def _look_at(table: str, columns: tuple[str, ...], values: tuple[Any, ...]) -> LookedAt:
    row = dict(zip(columns, values, strict=True))
    users = frozenset(row[column] for column in WHOSE if column in row)
    is_a_refusal = table == "agents_turn" and row["outcome"] == "denied"
    row |= {"status": "pending"} if row.get("status") == "sending" else {}
    kept = tuple((name, str(value)) for name, value in row.items() if name not in TOUCHED)
    return LookedAt(kept, is_a_refusal, users)


def _connect(hub: HubProcess) -> Any:
    if hub.home.is_grown:
        grown = psycopg.connect(hub.home.env["DATABASE_URL"])
        grown.adapters.register_loader("jsonb", TextLoader)  # a row of texts and numbers can be kept in a cache
        return grown
    return sqlite3.connect(f"file:{hub.home.folder / 'hub.sqlite3'}?mode=ro", uri=True, timeout=10)
