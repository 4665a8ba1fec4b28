"""At most one at a time of what may be started by many."""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection


@contextmanager
def alone(name: str) -> Iterator[bool]:
    """Whether nobody else is at it; whoever gets True keeps others of this database out until the block ends.

    PostgreSQL frees the name when its connection dies. On SQLite one process does such work.
    """
    if connection.vendor != "postgresql":
        yield True
        return
    # Not `hash`, which differs between processes.
    key = zlib.crc32(name.encode())
    with connection.cursor() as cursor:
        # Held by the connection, not by a transaction: the work in the block commits several times.
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [key])
        [is_ours] = cursor.fetchone()
    try:
        yield is_ours
    finally:
        if is_ours:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [key])
