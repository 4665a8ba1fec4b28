"""Processes many rows in small batches with pauses, so that other transactions are not blocked for long."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from django.db.models import QuerySet

AT_ONCE = 1_000
LONGEST_REST_S = 1.0


def key_batches(rows: QuerySet[Any], at_once: int = AT_ONCE) -> Iterator[list[Any]]:
    """Yield lists of primary keys, at most so many at a time, until no rows are left.

    The caller changes or deletes those rows before it takes the next batch, so that they are not found again.
    """
    return run_with_pauses(lambda: list(rows.values_list("pk", flat=True)[:at_once]))


def walk_rows(rows: QuerySet[Any], *columns: str, at_once: int = AT_ONCE) -> Iterator[list[tuple[Any, ...]]]:
    """Yield keys and columns of rows in key order, each row once, even when other transactions change it."""
    last: Any = None

    def find() -> list[tuple[Any, ...]]:
        later = rows if last is None else rows.filter(pk__gt=last)
        return list(later.order_by("pk").values_list("pk", *columns)[:at_once])

    for found in run_with_pauses(find):
        last = found[-1][0]
        yield found


def run_with_pauses(find: Callable[[], Sequence[Any]]) -> Iterator[Any]:
    """Call `find` until it finds nothing, with a pause after each call that is as long as the call took.

    SQLite's one write lock is not fair: without pauses other writers may wait for the whole job.
    """
    while found := find():
        began = time.monotonic()
        yield found
        time.sleep(min(time.monotonic() - began, LONGEST_REST_S))


def delete(rows: QuerySet[Any], at_once: int = AT_ONCE) -> int:
    """Delete rows in batches, each in its own transaction; returns the number of deleted rows, dependent rows
    included.
    """
    manager = rows.model._default_manager
    return sum(manager.filter(pk__in=keys).delete()[0] for keys in key_batches(rows, at_once))
