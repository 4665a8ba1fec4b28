"""Tokens written straight into the database of a hub under test, without a start of Django for each."""

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg

from kit.ids import unguessable
from lab.hub_storage import SQLITE_FILE

PREFIXES = {"session": "cw_sess_", "channel": "ck_live_", "app": "cw_app_"}
SESSION_LIFETIME = timedelta(days=30)
NEW_USER = """
INSERT INTO accounts_user (login, password, avatar_url, is_active, is_staff, is_superuser, created_at)
VALUES (?, '', '', ?, ?, ?, ?)
"""
NEW_CREDENTIAL = """
INSERT INTO accounts_credential (user_id, kind, name, prefix, digest, user_agent, created_at, expires_at)
SELECT id, ?, 'minted by a test', ?, ?, '', ?, ? FROM accounts_user WHERE lower(login) = lower(?)
"""
Wanted = tuple[str, str, bool]
Run = Callable[..., Any]


def mint_tokens(env: Mapping[str, str], wanted: Iterable[Wanted]) -> dict[Wanted, str]:
    """A new token of each (login, kind, is of the staff), with the rows that `manage.py mint_token` writes.

    `env`: the hub's environment; its database has all tables. Columns that are not named here have a default in
    the database, as every column must that the release before does not know.
    """
    with writing(env) as run:
        return {each: _mint(run, *each) for each in wanted}


@contextmanager
def writing(env: Mapping[str, str]) -> Iterator[Run]:
    """Gives a function that runs a statement with `?` for each value on a hub's database, in one transaction."""
    if url := env.get("DATABASE_URL"):
        with psycopg.connect(url) as server:
            yield lambda text, *values: server.execute(text.replace("?", "%s"), values)
        return
    with closing(sqlite3.connect(Path(env["DATA_DIR"]) / SQLITE_FILE, timeout=30)) as file, file:
        yield lambda text, *values: file.execute(text, [_as_sqlite(one) for one in values])


def _mint(run: Run, login: str, kind: str, is_staff: bool) -> str:
    token, now = unguessable(PREFIXES[kind]), datetime.now(UTC)
    if not run("SELECT id FROM accounts_user WHERE lower(login) = lower(?)", login).fetchone():
        run(NEW_USER, login, True, False, False, now)
    if is_staff:
        run("UPDATE accounts_user SET is_staff = ?, is_superuser = ? WHERE login = ?", True, True, login)
    digest = hashlib.sha256(token.encode()).hexdigest()
    expires_at = now + SESSION_LIFETIME if kind == "session" else None
    run(NEW_CREDENTIAL, kind, token[:14], digest, now, expires_at, login)
    return token


def _as_sqlite(value: Any) -> Any:
    """As Django writes it: times as text in UTC."""
    return f"{value:%Y-%m-%d %H:%M:%S.%f}" if isinstance(value, datetime) else value
