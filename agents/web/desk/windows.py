"""The days an audit looks at, as the visitor's calendar has them."""

from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from django.http import QueryDict

CHOICES = (7, 30)


@dataclass(frozen=True, slots=True)
class Window:
    """So many days, today the last; `starts`: the moment each begins."""

    zone: str
    days: tuple[date, ...]
    starts: tuple[datetime, ...]

    @property
    def count(self) -> int:
        """How many days."""
        return len(self.days)

    @property
    def since(self) -> datetime:
        """When it begins."""
        return self.starts[0]

    def number_of(self, moment: datetime) -> int:
        """Which of its days a moment falls into, counted from 0."""
        return max(0, bisect_right(self.starts, moment) - 1)


def read_window(query: QueryDict, now: datetime) -> Window:
    """The window that `?days=` and `?tz=` ask for; 7 days and UTC for what makes no sense."""
    count = next((each for each in CHOICES if query.get("days") == str(each)), CHOICES[0])
    name = query.get("tz", "")
    return window_of(now, count, name if name in _zones() else "UTC")


def window_of(now: datetime, count: int, zone: str) -> Window:
    """The last so many days in a zone."""
    place = ZoneInfo(zone)
    today = now.astimezone(place).date()
    days = tuple(today - timedelta(days=back) for back in reversed(range(count)))
    starts = tuple(datetime.combine(day, time.min, tzinfo=place).astimezone(UTC) for day in days)
    return Window(zone, days, starts)


@cache
def _zones() -> frozenset[str]:
    """Names there are; any other would be looked for as a file."""
    return frozenset(available_timezones())
