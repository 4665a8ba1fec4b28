"""Finds rows by their time without an index on it: in a table that only grows, ids rise with time."""

from bisect import bisect_left
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

from django.db.models import Max, QuerySet

from kit import sql


def find_first_ids(table: QuerySet[Any, Any], field: str, moments: Collection[datetime]) -> dict[datetime, int]:
    """For each moment the lowest id such that rows from it on have no earlier time in `field`.

    Searches by halves, for all moments at once: as many statements as the last id has bits. `table` is without
    filters; in an empty one each id is 0 or 1.
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
