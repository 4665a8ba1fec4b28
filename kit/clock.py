"""The clock that decides: the database's own."""

import time
from datetime import UTC, datetime, timedelta

from django.db import connection

STEADY = timedelta(seconds=0.5)
HEARD_WITHIN_S = 0.25  # what came later says little of what the time is

_off = timedelta(0)


def db_now() -> datetime:
    """Now, by the database's clock, aware and in UTC.

    Inside a transaction this is the moment of the call, not of BEGIN. SQLite has no clock of its own: its
    file lives on this host, so the host's clock is the database's.
    """
    if connection.vendor == "sqlite":
        return datetime.now(UTC)
    asked_at = time.monotonic()
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
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
