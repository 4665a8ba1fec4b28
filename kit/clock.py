"""The current time by the database's clock, which all processes use; and times as text and as numbers."""

import time
from datetime import UTC, datetime, timedelta

from django.db import connection

from kit import sql

STEADY = timedelta(seconds=0.5)
HEARD_WITHIN_S = 0.25  # a slower answer is too inexact to measure the difference

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)

_zero: datetime | None = None  # what the database's clock showed when `time.monotonic()` was 0
_took_s = 0.0  # the time that this answer took


def db_now() -> datetime:
    """The current time of the database's clock, aware and in UTC.

    Inside a transaction this is the moment of the call, not of BEGIN. SQLite has no clock of its own: its
    file lives on this host, so the host's clock is the database's.
    """
    if connection.vendor == "sqlite":
        return datetime.now(UTC)
    asked_at = time.monotonic()
    now = sql.postgresql_clock().astimezone(UTC)
    took_s = time.monotonic() - asked_at
    if took_s < HEARD_WITHIN_S:
        _hear(now - timedelta(seconds=asked_at + took_s / 2), took_s)
    return now


def approximate_now() -> datetime:
    """The current time without a query: the database's clock, as it was heard last and has gone on since.

    Each heartbeat hears it, so times written by processes on different hosts can be compared, and setting a host's
    clock changes nothing. Before the database was heard, and with SQLite, this is the host's clock.
    """
    return datetime.now(UTC) if _zero is None else _zero + timedelta(seconds=time.monotonic())


def _hear(zero: datetime, took_s: float) -> None:
    """Keep what the database's clock showed at 0 if that differs clearly, or was answered faster than before."""
    global _zero, _took_s
    if _zero is None or took_s < _took_s or abs(zero - _zero) > STEADY:
        _zero, _took_s = zero, took_s


def iso(moment: datetime) -> str:
    """ISO 8601 in UTC with milliseconds and a Z, as JavaScript writes it."""
    return moment.astimezone(UTC).isoformat("T", "milliseconds").removesuffix("+00:00") + "Z"


def unix_ms(moment: datetime) -> int:
    """Whole milliseconds since 1970, rounded down."""
    return (moment - _EPOCH) // _MILLISECOND


def iso_or_none(moment: datetime | None) -> str | None:
    """Like `iso`; None for None."""
    return iso(moment) if moment else None


def in_words(since: str) -> str:
    """The text of a moment, such as `3 days ago`, from a result of `timesince`."""
    return "just now" if since.startswith("0") else f"{since} ago"
