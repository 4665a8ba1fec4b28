"""Statements on the database of a hub under test, over connections that are kept: opening one costs more."""

import atexit
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg

from lab.hub_storage import SQLITE_FILE

MOST_KEPT = 4  # of all hubs of this process
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
    while len(_kept) >= MOST_KEPT:
        _kept.pop(next(iter(_kept))).close()
    _kept[key] = connection or connect()
    return _kept[key]


@atexit.register
def _close_all() -> None:
    for connection in _kept.values():
        connection.close()


def _identity(path: Path) -> tuple[object, ...]:
    """Which database file is there now: a test may have replaced the file."""
    found = path.stat() if path.exists() else None
    return path, found and (found.st_dev, found.st_ino)


def _as_sqlite(value: Any) -> Any:
    """As Django writes it: times as text in UTC."""
    return f"{value:%Y-%m-%d %H:%M:%S.%f}" if isinstance(value, datetime) else value
