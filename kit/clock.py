"""The clock that decides: the database's own, as a time and as a part of SQL."""

import time
from datetime import UTC, datetime, timedelta

from django.db import connection

STEADY = timedelta(seconds=0.5)
HEARD_WITHIN_S = 0.25  # what came later says little of what the time is

# SQLite compares texts, in the form in which Django stores a time. `%%`: for statements with values.
_TEXT = "'%%Y-%%m-%%d %%H:%%M:%%f'"
NOW = {"sqlite": f"strftime({_TEXT}, 'now')", "postgresql": "clock_timestamp()"}

_off = timedelta(0)


def ago_sql(vendor: str, seconds: int) -> str:
    """SQL for the time so many seconds ago, by the clock of `NOW`."""
    if vendor == "postgresql":
        return f"{NOW[vendor]} - interval '{seconds} seconds'"
    return f"strftime({_TEXT}, 'now', '-{seconds} seconds')"


def db_now() -> datetime:
    """Now, by the database's clock, aware and in UTC.

    Inside a transaction this is the moment of the call, not of BEGIN. SQLite has no clock of its own: its
    file lives on this host, so the host's clock is the database's.
    """
    if connection.vendor == "sqlite":
        return datetime.now(UTC)
    asked_at = time.monotonic()
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {NOW[connection.vendor]}")
        now: datetime = cursor.fetchone()[0]
    if time.monotonic() - asked_at < HEARD_WITHIN_S:
        _put_right(now.astimezone(UTC))
    return now.astimezone(UTC)


def near_now() -> datetime:
    """Now, without asking the database: the host's clock, put right where it was half a second off or more.

    Each heartbeat asks, so what processes of any host write with it can be compared.
    """
    return datetime.now(UTC) + _off


def _put_right(now: datetime) -> None:
    """Small differences stay: clocks that agree must not be made to differ by how long an answer took."""
    global _off
    if abs(now - near_now()) > STEADY:
        _off = now - datetime.now(UTC)
