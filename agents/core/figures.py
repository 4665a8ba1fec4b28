"""Counts and latencies of the questions to agents in the last days; each query reads a bounded number of rows.

The days are those of the visitor's time zone: a window has a number of days, of which today is the last.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from typing import Any, TypeVar
from zoneinfo import ZoneInfo, available_timezones

from django.db.models import Case, Count, IntegerField, Max, Q, QuerySet, Sum, Value, When
from django.db.models.functions import Coalesce

from agents.models import Agent, Turn
from agents.models.choices import Outcome

Rows = TypeVar("Rows", bound=QuerySet[Any, Any])
WINDOW_DAYS = (7, 30)
MAX_TURNS = 100_000
MAX_LATENCIES = 20_000
MAX_ASKERS = 10
IS_ANSWER = Q(outcome=Outcome.COMPLETED, latency_ms__isnull=False)
COUNTED_AS: Mapping[Outcome | None, str] = {
    Outcome.COMPLETED: "answered",
    Outcome.FAILED: "failed",
    Outcome.DENIED: "refused",
    None: "open",
}


@dataclass(frozen=True, slots=True)
class DayWindow:
    """The last days in a time zone, up to today; `starts`: the time at which each day begins."""

    zone: str
    days: tuple[date, ...]
    starts: tuple[datetime, ...]

    @property
    def count(self) -> int:
        """The number of days."""
        return len(self.days)

    @property
    def since(self) -> datetime:
        """The time at which the window begins."""
        return self.starts[0]

    def number_of(self, moment: datetime) -> int:
        """The number, from 0, of the day into which a moment falls."""
        return max(0, bisect_right(self.starts, moment) - 1)


@dataclass(slots=True)
class AskCounts:
    """The number of asks, by outcome."""

    answered: int = 0
    failed: int = 0
    refused: int = 0
    open: int = 0

    @property
    def total(self) -> int:
        """The number of all asks."""
        return self.answered + self.failed + self.refused + self.open

    def add(self, outcome: str | None, count: int) -> None:
        """Count asks with this outcome; None: the asks are open."""
        name = COUNTED_AS[Outcome(outcome) if outcome else None]
        setattr(self, name, getattr(self, name) + count)


@dataclass(slots=True)
class AskDay(AskCounts):
    """The asks of one day."""

    day: date = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class EndCount:
    """The number of asks that ended in one way; `reason` is empty for answers."""

    outcome: str
    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class AskerCount:
    """A caller, with the number of asks and the time of the last; `login` is None for asks of deleted users."""

    login: str | None
    count: int
    last_at: datetime


@dataclass(frozen=True, slots=True)
class Latency:
    """The 50th, 95th and 99th percentile of latencies in ms; None without answers."""

    count: int = 0
    p50: int | None = None
    p95: int | None = None
    p99: int | None = None


@dataclass(frozen=True, slots=True)
class Latencies:
    """The percentiles of latencies of all measured answers, and by day."""

    all: Latency = field(default_factory=Latency)
    days: Sequence[Latency] = ()


def read_window(query: Mapping[str, str], now: datetime) -> DayWindow:
    """The window that `?days=` and `?tz=` ask for; 7 days in UTC for other values."""
    count = next((each for each in WINDOW_DAYS if query.get("days") == str(each)), WINDOW_DAYS[0])
    return window_of(now, count, read_zone(query))


def read_zone(query: Mapping[str, str]) -> str:
    """The time zone that `?tz=` names; UTC for any other name."""
    name = query.get("tz", "")
    return name if name in _zones() else "UTC"


def moments_of(day: date, zone: str) -> tuple[datetime, datetime]:
    """The times at which a day and the next day begin in a zone."""
    return _begin_of(day, ZoneInfo(zone)), _begin_of(day + timedelta(days=1), ZoneInfo(zone))


def window_of(now: datetime, count: int, zone: str) -> DayWindow:
    """The window of the last `count` days in a time zone."""
    place = ZoneInfo(zone)
    today = now.astimezone(place).date()
    days = tuple(today - timedelta(days=back) for back in reversed(range(count)))
    starts = tuple(_begin_of(day, place) for day in days)
    return DayWindow(zone, days, starts)


def asks_in_window(agent: Agent, window: DayWindow) -> tuple[QuerySet[Turn], datetime | None]:
    """The agent's asks of a window, at most the newest MAX_TURNS; see `newest_of`."""
    return newest_of(Turn.objects.filter(agent=agent, asked_at__gte=window.since), MAX_TURNS)


def newest_of(rows: Rows, most: int, column: str = "asked_at") -> tuple[Rows, datetime | None]:
    """The newest `most` rows, and the time of the newest row that was left out; None if no row was."""
    times = rows.order_by(f"-{column}").values_list(column, flat=True)
    oldest: datetime | None = times[most : most + 1].first()
    return (rows, None) if oldest is None else (rows.filter(**{f"{column}__gt": oldest}), oldest)


def by_day(turns: QuerySet[Turn], window: DayWindow) -> list[AskDay]:
    """The counts of each day, also of days without asks.

    Refusals that share a row count as often as they were made.
    """
    ends = zip(range(window.count), window.starts[1:], strict=False)
    number = Case(
        *[When(asked_at__lt=end, then=Value(day)) for day, end in ends],
        default=Value(window.count - 1),
        output_field=IntegerField(),
    )
    days = [AskDay(day=day) for day in window.days]
    for row in turns.order_by().values("outcome", day=number).annotate(count=Sum("repeats")):
        days[row["day"]].add(row["outcome"], row["count"])
    return days


def by_reason(turns: QuerySet[Turn]) -> list[EndCount]:
    """The number of turns for each outcome and reason, the most frequent first."""
    counted = turns.exclude(outcome=None).order_by().values("outcome", "reason").annotate(count=Sum("repeats"))
    return [
        EndCount(str(row["outcome"]), row["reason"], row["count"])
        for row in counted.order_by("-count", "outcome", "reason")
    ]


def top_askers(turns: QuerySet[Turn]) -> list[AskerCount]:
    """The callers with the most asks."""
    counted = turns.order_by().values("caller__login").annotate(count=Sum("repeats"), last=Max("asked_at"))
    most = counted.order_by("-count", "caller__login")[:MAX_ASKERS]
    return [AskerCount(row["caller__login"], row["count"], row["last"]) for row in most]


def count_askers(turns: QuerySet[Turn]) -> int:
    """The number of different callers."""
    found: int = turns.aggregate(count=Count(Coalesce("caller_id", 0), distinct=True))["count"]
    return found


def latencies(turns: QuerySet[Turn], window: DayWindow) -> Latencies:
    """The percentiles of latencies, of all answers and by day, from the newest MAX_LATENCIES answers."""
    measured = turns.filter(IS_ANSWER).order_by("-asked_at").values_list("asked_at", "latency_ms")[:MAX_LATENCIES]
    days: list[list[int]] = [[] for _ in window.days]
    for asked_at, latency_ms in measured:
        days[window.number_of(asked_at)].append(latency_ms or 0)
    return Latencies(_latency(one for day in days for one in day), [_latency(day) for day in days])


def _begin_of(day: date, place: ZoneInfo) -> datetime:
    return datetime.combine(day, time.min, tzinfo=place).astimezone(UTC)


def _latency(given: Iterable[int]) -> Latency:
    sizes = sorted(given)
    if not sizes:
        return Latency()
    return Latency(len(sizes), *(_percentile(sizes, percent) for percent in (50, 95, 99)))


def _percentile(sizes: Sequence[int], percent: int) -> int:
    """The percentile by nearest rank: the smallest value that `percent` of a hundred values do not exceed."""
    return sizes[max(0, -(-len(sizes) * percent // 100) - 1)]


@cache
def _zones() -> frozenset[str]:
    """The valid names of time zones; `ZoneInfo` would look for any other name as a file."""
    return frozenset(available_timezones())
