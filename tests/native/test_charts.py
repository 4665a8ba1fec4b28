"""The charts of the audit: numbers beside the bars, the bars, and the values of a day."""

import itertools
from datetime import date, timedelta

from agents.core.figures import AskDay, Latency
from agents.pages.desk.charts import BOTTOM, LEFT, RIGHT, TOP, Bar, asks_chart, latency_chart, scale
from kit.page_tags import describe_duration

FIRST = date(2026, 1, 2)


def test_the_numbers_beside_the_bars_are_few_and_in_equal_steps() -> None:
    for most in [0, 1, 4, 5, 7, 41, 999, 100_000]:
        numbers = scale(most)
        assert 2 <= len(numbers) <= 5, most
        assert numbers[0] == 0, most
        assert numbers[-1] >= most, most
        assert len({after - before for before, after in itertools.pairwise(numbers)}) == 1, most


def test_the_numbers_beside_durations_are_whole_and_end_above_them() -> None:
    for slowest_ms, numbers in [
        (0, "0 ms, 1 ms"),
        (14, "0 ms, 5 ms, 10 ms, 15 ms"),
        (1000, "0 s, 1 s"),
        (4700, "0 s, 2 s, 4 s, 6 s"),
        (912_600, "0 min, 5 min, 10 min, 15 min, 20 min"),
        (7_300_000, "0 h, 1 h, 2 h, 3 h"),
    ]:
        chart = latency_chart([FIRST], [Latency(3, 2, slowest_ms, slowest_ms)])
        assert ", ".join(tick.text for tick in chart.ticks) == numbers, (slowest_ms, numbers)


def test_durations_are_in_readable_units() -> None:
    for ms, words in [
        (0, "0 ms"),
        (999, "999 ms"),
        (1000, "1 s"),
        (1240, "1.2 s"),
        (9949, "9.9 s"),
        (9950, "10 s"),
        (59_499, "59 s"),
        (59_500, "1 min"),
        (912_600, "15 min 13 s"),
        (3_600_000, "1 h"),
        (7_500_000, "2 h 5 min"),
        (3_605_000, "1 h"),
        (90_000_000, "1 d 1 h"),
        (None, "–"),
    ]:
        assert describe_duration(ms) == words, (ms, words)


def test_a_day_shows_its_values() -> None:
    asks = asks_chart([AskDay(day=FIRST, answered=1200, refused=3), AskDay(day=FIRST + timedelta(days=1))])
    assert [one.values for one in asks.columns] == ["2 Jan: 1,200 answered, 3 refused", "3 Jan: no asks"]
    times = latency_chart([FIRST, FIRST + timedelta(days=1)], [Latency(7, 42, 1300, 912_600), Latency()])
    assert [one.values for one in times.columns] == [
        "2 Jan: p50 42 ms, p95 1.3 s, p99 15 min 13 s, 7 answers",
        "3 Jan: no answers",
    ]


def test_no_bar_covers_another_and_none_leaves_the_plot() -> None:
    for count in [7, 30]:
        days = [FIRST + timedelta(days=number) for number in range(count)]
        equal = latency_chart(days, [Latency(1, 40, 40, 40)] * count)
        stacked = asks_chart([AskDay(100 * number, 1, number, 1, day=day) for number, day in enumerate(days)])
        for chart in (equal, stacked):
            bars = [bar for column in chart.columns for bar in column.bars]
            assert len(bars) > count, count
            assert not [pair for pair in itertools.combinations(bars, 2) if _overlap(*pair)], count
            assert all(bar.x >= LEFT and bar.x + bar.width <= RIGHT for bar in bars), count
            assert all(bar.y >= TOP - 5 and bar.y + bar.height <= BOTTOM + 0.5 for bar in bars), count
            assert 4 <= len([column for column in chart.columns if column.label]) <= 8, count


def _overlap(one: Bar, other: Bar) -> bool:
    """By more than the rounding of their places."""
    across = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
    along = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
    return across > 0.2 and along > 0.2
