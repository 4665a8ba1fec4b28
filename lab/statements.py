"""Statements on the database of a hub under test, and tokens written into it without a start of Django for each.

Connections are kept, because opening one costs more than a statement.
"""

import atexit
import hashlib
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg

from kit.ids import unguessable
from lab.hub_storage import SQLITE_FILE

MAX_KEPT = 4  # of all hubs of this process
Run = Callable[..., Any]
_lock = threading.Lock()
_kept: dict[tuple[object, ...], Any] = {}  # by the database, the one used last at the end


@contextmanager
def writing(env: Mapping[str, str]) -> Iterator[Run]:
    """Gives a function that runs a statement with `?` for each value on a hub's database, in one transaction.

    `env`: the hub's environment.
    """
    if url := env.get("DATABASE_URL"):
        with _lock:
            server = _connection((url,), lambda: psycopg.connect(url, autocommit=True))
            with server.transaction():
                yield lambda text, *values: server.execute(text.replace("?", "%s"), values or None)
        return
    path = Path(env["DATA_DIR"]) / SQLITE_FILE
    with (
        _lock,
        _connection(_identity(path), lambda: sqlite3.connect(path, timeout=30, check_same_thread=False)) as file,
    ):
        yield lambda text, *values: file.execute(text, [_as_sqlite(one) for one in values])


def _connection(key: tuple[object, ...], connect: Callable[[], Any]) -> Any:
    """The kept connection, or a new one; a server that was killed since then has lost the kept one."""
    connection = _kept.pop(key, None)
    if connection is not None:
        try:
            connection.execute("SELECT 1")
        except (psycopg.OperationalError, sqlite3.OperationalError):
            connection.close()
            connection = None
    while len(_kept) >= MAX_KEPT:
        _kept.pop(next(iter(_kept))).close()
    _kept[key] = connection or connect()
    return _kept[key]


@atexit.register
def _close_all() -> None:
    for connection in _kept.values():
        connection.close()


def _identity(path: Path) -> tuple[object, ...]:
    """The identity of the database file as it is now: a test may have replaced the file."""
    found = path.stat() if path.exists() else None
    return path, found and (found.st_dev, found.st_ino)


def _as_sqlite(value: Any) -> Any:
    """As Django writes it: times as text in UTC."""
    return f"{value:%Y-%m-%d %H:%M:%S.%f}" if isinstance(value, datetime) else value


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


def mint_tokens(env: Mapping[str, str], wanted: Iterable[Wanted]) -> dict[Wanted, str]:
    """A new token of each (login, kind, is of the staff), with the rows that `manage.py mint_token` writes.

    `env`: the hub's environment; its database has all tables. Columns that are not named here have a default in
    the database, as every column must that the release before does not know.
    """
    with writing(env) as run:
        return {each: _mint(run, *each) for each in wanted}


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
