"""The use and the revenue of a network, by UTC day; for REST and pages."""

from collections.abc import Collection, Sequence
from datetime import UTC, date, datetime, time, timedelta

from django.db.models import Count, Sum
from django.db.models.functions import TruncDate
from msgspec import Struct

from agnt.models import ApiKey, KeyUsage, Network, UsageEvent


class Day(Struct, frozen=True, kw_only=True):
    """One UTC day. `calls`: envelopes that came with a key; `bookings`: those that were charged."""

    day: date
    calls: int = 0
    bookings: int = 0
    revenue_cents: int = 0


def load_days(network: Network, first: date, last: date, *, key: ApiKey | None = None) -> Sequence[Day]:
    """A `Day` for each from `first` to `last`, oldest first; with `key`, what came with this key alone.

    Of a network that is not stored every day is empty.
    """
    if network._state.adding:
        return [Day(day=day) for day in _list_days(first, last)]
    used = KeyUsage.objects.filter(key__network=network, day__range=(first, last))
    start = datetime.combine(first, time.min, UTC)
    end = datetime.combine(last + timedelta(days=1), time.min, UTC)
    charged = UsageEvent.objects.filter(network=network, at__gte=start, at__lt=end)
    if key is not None:
        used, charged = used.filter(key=key), charged.filter(key=key)
    calls = dict(used.values_list("day").annotate(total=Sum("calls")).order_by())
    by_day = charged.annotate(on=TruncDate("at", tzinfo=UTC)).values_list("on")
    charges = {
        on: (number, cents)
        for on, number, cents in by_day.annotate(number=Count("pk"), cents=Sum("amount_cents")).order_by()
    }
    return [
        Day(
            day=day,
            calls=calls.get(day, 0),
            bookings=charges.get(day, (0, 0))[0],
            revenue_cents=charges.get(day, (0, 0))[1],
        )
        for day in _list_days(first, last)
    ]


def load_calls(keys: Collection[ApiKey], day: date) -> dict[int, int]:
    """The calls of each key on a UTC day, by primary key; a key without calls is not in it."""
    rows = KeyUsage.objects.filter(key__in=[key.pk for key in keys], day=day)
    return dict(rows.values_list("key_id", "calls"))


def _list_days(first: date, last: date) -> Sequence[date]:
    return [first + timedelta(days=number) for number in range((last - first).days + 1)]
