"""What every envelope reads and writes: its key, and rows by plain SQL (docs/adr/0005); its transaction."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.models import Model

from accounts.models import Credential
from agnt.models import KeyUsage
from agnt.service.key_checks import Rate
from agnt.service.keys import FoundKey, find_key_of
from kit import sql

TRIES = 5
LOCK_FAILURES = frozenset({"40P01", "40001", "55P03"})
Result = TypeVar("Result")
_INSERT = "INSERT INTO {table} ({columns}) VALUES ({marks}) RETURNING id"
_COUNT = (
    "INSERT INTO {table} (key_id, day, calls) VALUES (%s, %s, 1) ON CONFLICT (key_id, day)"
    " DO UPDATE SET calls = {table}.calls + 1 RETURNING calls"
)


def find_live_key(digest: str) -> FoundKey | None:
    """The live key; by a new connection where this thread's has died, as in a restart of PostgreSQL."""
    try:
        return find_key_of(digest)
    except sql.DATABASE_AWAY:
        connection.close()
        return find_key_of(digest)


def run_in_transaction(work: Callable[[], Result], *, is_flushed: bool = True) -> Result:
    """Run `work` in a transaction; repeat it after a lost lock, connection or race for the event."""
    atomic = transaction.atomic if is_flushed else sql.atomic_unflushed
    for tries_left in reversed(range(TRIES)):
        connection.ensure_connection()
        used, is_run = connection.connection, False
        try:
            with atomic():
                result = work()
                is_run = True
            break
        except IntegrityError:  # another request has added the event: now it is known
            if not tries_left:
                raise
        except OperationalError as failure:
            is_lost = not is_run and connection.connection is not used  # Django replaces one that has died
            if not tries_left or not (is_lost or sql.state_of(failure) in LOCK_FAILURES):
                raise
    return result


def count_call(key: FoundKey, now: datetime) -> Rate:
    """Count a call of a key, and store the time of its use. The row of the day is locked until the commit."""
    if key.is_stale:
        Credential.touch([key.credential_id])
    values = [key.key_id, now.astimezone(UTC).date().isoformat()]
    used = int(sql.rows(_COUNT.format(table=KeyUsage._meta.db_table), values)[0][0])
    return Rate.of_day(key.tier, used, now)


def insert(model: type[Model], **columns: object) -> int:
    """Insert a row with a value for each of its columns; its id."""
    values = [sql.moment(value) if isinstance(value, datetime) else value for value in columns.values()]
    marks = ", ".join(["%s"] * len(values))
    statement = _INSERT.format(table=model._meta.db_table, columns=", ".join(columns), marks=marks)
    return int(sql.rows(statement, values)[0][0])
