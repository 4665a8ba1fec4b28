"""Working through many rows without holding anybody up: a few at a time, with rests between."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from django.db.models import QuerySet

AT_ONCE = 1_000
LONGEST_REST_S = 1.0


def of(rows: QuerySet[Any], at_once: int = AT_ONCE) -> Iterator[list[Any]]:
    """Keys of rows, at most so many at a time, until there are none.

    Whoever takes them changes or deletes those rows before asking for more, so that they are found no more.
    """
    return resting(lambda: list(rows.values_list("pk", flat=True)[:at_once]))


def walk(rows: QuerySet[Any], *columns: str, at_once: int = AT_ONCE) -> Iterator[list[tuple[Any, ...]]]:
    """Keys and columns of rows in the order of keys, each row once, whatever is done to it."""
    last: Any = None

    def find() -> list[tuple[Any, ...]]:
        later = rows if last is None else rows.filter(pk__gt=last)
        return list(later.order_by("pk").values_list("pk", *columns)[:at_once])

    for found in resting(find):
        last = found[-1][0]
        yield found


def resting(find: Callable[[], Sequence[Any]]) -> Iterator[Any]:
    """What `find` finds, again and again until it finds nothing; a rest after each as long as its work took.

    SQLite's one write lock goes to whoever asks in the right moment: without rests others may wait for all of it.
    """
    while found := find():
        began = time.monotonic()
        yield found
        time.sleep(min(time.monotonic() - began, LONGEST_REST_S))


def delete(rows: QuerySet[Any], at_once: int = AT_ONCE) -> int:
    """Delete them in batches, each a transaction of its own; how many rows went, dependents included."""
    manager = rows.model._default_manager
    return sum(manager.filter(pk__in=keys).delete()[0] for keys in of(rows, at_once))
