"""The clock that decides: the database's own."""

from datetime import UTC, datetime

from django.db import connection


def db_now() -> datetime:
    """Now, by the database's clock, aware and in UTC.

    Inside a transaction this is the moment of the call, not of BEGIN. SQLite has no clock of its own: its
    file lives on this host, so the host's clock is the database's.
    """
    if connection.vendor == "sqlite":
        return datetime.now(UTC)
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
        return now.astimezone(UTC)
