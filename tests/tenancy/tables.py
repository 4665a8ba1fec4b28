"""What is in a hub's database, but for what every request may touch: to see that a refusal changed nothing."""

import sqlite3
from contextlib import closing
from typing import Any

import psycopg

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
    "accounts_signingkey",  # the hub's own; made by whoever is first to see a signed card
}
TOUCHED = {"last_used_at", "last_seen_at", "attempts", "next_attempt_at", "last_status", "last_error"}
TOUCHED |= {
    "consecutive_failures",
    "questions_blanked_to",
}  # deliveries of the estates that are used up go on meanwhile
WHOSE = ("user_id", "owner_id", "caller_id", "uploader_id", "author_id")
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
    columns = [column[0] for column in found.description]
    rows = [dict(zip(columns, row, strict=True)) for row in found.fetchall()]
    return {_row(one) for one in rows if not _is_of(one, but_of) and not _is_a_refusal(table, one)}


def _row(row: dict[str, Any]) -> Row:
    row |= {"status": "pending"} if row.get("status") == "sending" else {}
    return tuple((name, str(value)) for name, value in row.items() if name not in TOUCHED)


def _is_of(row: dict[str, Any], user_id: int | None) -> bool:
    return user_id is not None and user_id in [row.get(column) for column in WHOSE]


def _is_a_refusal(table: str, row: dict[str, Any]) -> bool:
    return table == "agents_turn" and row["outcome"] == "denied"


def _connect(hub: HubProcess) -> Any:
    if hub.home.is_grown:
        return psycopg.connect(hub.home.env["DATABASE_URL"])
    return sqlite3.connect(f"file:{hub.home.folder / 'hub.sqlite3'}?mode=ro", uri=True, timeout=10)
