"""Searches without an index (docs/adr/0103): for parts of a text, and for the first row since a moment.

Ids of a table that only grows rise with time. `kit.full_text` searches by an index.
"""

from bisect import bisect_left
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from functools import reduce
from operator import or_
from typing import Any, TypeVar

from django.db.models import Max, Q, QuerySet
from django.db.models.functions import Left

from kit import sql

SEARCHED_CHARS = 10_000

Rows = TypeVar("Rows", bound=QuerySet[Any, Any])


def filter_by_words(found: Rows, column: str, words: Sequence[str]) -> Rows:
    """The rows whose column has each of the words in its first SEARCHED_CHARS characters."""
    if not words:
        return found
    found = found.alias(searched=Left(column, SEARCHED_CHARS))
    for word in words:
        found = found.filter(contains("searched", word))
    return found


def contains(column: str, part: str) -> Q:
    """Rows whose column contains a text in any case.

    SQLite, and PostgreSQL in some locales, ignore case only for ASCII.
    """
    spellings = {part} if part.isascii() else {part, part.lower(), part.upper(), part.capitalize()}
    return reduce(or_, [Q(**{f"{column}__icontains": one}) for one in sorted(spellings)])


def find_first_ids(table: QuerySet[Any, Any], field: str, moments: Collection[datetime]) -> dict[datetime, int]:
    """The lowest id for each moment such that rows from that id on have no earlier time in `field`.

    Searches by halves, for all moments at once: as many statements as the last id has bits. `table` is without
    filters; in an empty one each id is 0.
    """
    last = table.aggregate(last=Max("pk"))["last"] or 0
    low, high = dict.fromkeys(moments, 0), dict.fromkeys(moments, last + 1)
    times = table.order_by("pk").values_list("pk", field)
    while between := {one: (low[one] + high[one]) // 2 for one in moments if low[one] < high[one]}:
        rows: dict[int, datetime] = dict(sql.first_rows_of_each(times, "pk__gte", set(between.values()), 1))
        ids = sorted(rows)
        for one, middle in between.items():
            place = bisect_left(ids, middle)
            if place < len(ids) and ids[place] < high[one] and _read_time(rows[ids[place]]) < one:
                low[one] = ids[place] + 1
            else:
                high[one] = middle
    return low


def _read_time(stored: datetime) -> datetime:
    """A time as the driver returns it, aware; SQLite stores UTC without saying so."""
    return stored if stored.tzinfo else stored.replace(tzinfo=UTC)
