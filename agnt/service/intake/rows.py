"""What every envelope reads and writes first: its key and the count of the call; and its transaction."""

from collections.abc import Callable
from datetime import date
from typing import TypeVar

from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.models import F

from agnt.models import KeyUsage
from agnt.service.keys import FoundKey, find_keys
from kit import sql

TRIES = 5
LOCK_FAILURES = frozenset({"40P01", "40001", "55P03"})
Result = TypeVar("Result")


def find_live_key(digest: str) -> FoundKey | None:
    """The live key; by a new connection where this thread's has died, as in a restart of PostgreSQL."""
    try:
        return find_keys([digest]).get(digest)
    except sql.DATABASE_AWAY:
        connection.close()
        return find_keys([digest]).get(digest)


def commit(work: Callable[[], Result], *, is_flushed: bool = True) -> Result:
    """Run work in a transaction; again when it lost a lock, its connection or its event, and so wrote nothing."""
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


@transaction.atomic(savepoint=False)
def count_call(key_id: int, day: date) -> int:
    """Count a call of a key; the new total of that day. The row is locked until the transaction ends."""
    of_day = KeyUsage.objects.filter(key_id=key_id, day=day)
    if not of_day.update(calls=F("calls") + 1):
        KeyUsage.objects.bulk_create([KeyUsage(key_id=key_id, day=day)], ignore_conflicts=True)
        of_day.update(calls=F("calls") + 1)
    return of_day.values_list("calls", flat=True).get()
