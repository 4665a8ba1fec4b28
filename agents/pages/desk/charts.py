"""Computes the charts of the audit, which `desk/chart.html` draws: bars by day, and values for the hover text."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from agents.core.explanations import OUTCOME_LABELS
from agents.core.figures import COUNTED_AS, AskDay, Latency
from kit.page_tags import describe_duration

LEFT, TOP, RIGHT, BOTTOM = 64, 40, 500, 268  # the plot; labels and values are outside of it
MIN_BAR = 2
MAX_LABELS = 8
OUTCOMES = {name: OUTCOME_LABELS[outcome] for outcome, name in COUNTED_AS.items()}
PERCENTILES = ("p50", "p95", "p99")
UNITS = ((3_600_000, "h"), (60_000, "min"), (1000, "s"), (1, "ms"))


@dataclass(frozen=True, slots=True)
class Bar:
    """A rectangle of the chart; `kind` determines its colour."""

    kind: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Column:
    """A day with its bars, its values in words, and its label, which is empty if labels would be too close."""

    x: float
    width: float
    bars: Sequence[Bar]
    values: str
    label: str

    @property
    def middle(self) -> float:
        """The horizontal position of the label."""
        return round(self.x + self.width / 2, 1)


@dataclass(frozen=True, slots=True)
class Tick:
    """A number beside the plot, and its vertical position."""

    text: str
    y: float


@dataclass(frozen=True, slots=True)
class Chart:
    """The values that the template draws. `about` describes the chart to readers who do not see it."""

    about: str
    ticks: Sequence[Tick]
    columns: Sequence[Column]
    kinds: Mapping[str, str]
    left: int = LEFT
    top: int = TOP
    right: int = RIGHT
    height: int = BOTTOM - TOP


def asks_chart(days: Sequence[AskDay]) -> Chart:
    """The chart of asks: one bar a day, divided by outcome."""
    return _stacked_chart(
        [one.day for one in days],
        [{kind: getattr(one, kind) for kind in OUTCOMES} for one in days],
        about="A bar for each day, by outcome; the table has the numbers.",
        kinds=OUTCOMES,
        describe="{:,}".format,
        values=[_describe_day(one) for one in days],
    )


def amount_chart(
    days: Sequence[date], amounts: Sequence[int], *, kind: str, about: str, describe: Callable[[int], str]
) -> Chart:
    """A chart with one bar a day; `describe` formats an amount, `kind` is the colour of the bars."""
    return _stacked_chart(
        days,
        [{kind: amount} for amount in amounts],
        about=f"{about} A bar for each day; the table has the numbers.",
        kinds={kind: kind},
        describe=describe,
        values=[describe(amount) for amount in amounts],
    )


def _stacked_chart(
    days: Sequence[date],
    counts: Sequence[Mapping[str, int]],
    *,
    about: str,
    kinds: Mapping[str, str],
    describe: Callable[[int], str],
    values: Sequence[str],
) -> Chart:
    numbers = scale(max((sum(one.values()) for one in counts), default=0))

    def draw(number: int, x: float, width: float) -> Sequence[Bar]:
        bars: list[Bar] = []
        for kind, count in counts[number].items():
            if count:
                foot = bars[-1].y if bars else BOTTOM
                bars.append(_bar(kind, x + width * 0.15, width * 0.7, foot=foot, value=count, most=numbers[-1]))
        return bars

    ticks = [Tick(describe(number), _height(number, numbers[-1])) for number in numbers]
    return Chart(about=about, ticks=ticks, columns=_columns(days, draw, values), kinds=kinds)


def latency_chart(days: Sequence[date], latencies: Sequence[Latency]) -> Chart:
    """The chart of latencies: three bars a day, side by side; no bars on a day without answers."""
    ticks = scale_of_durations(max((one.p99 or 0 for one in latencies), default=0))
    most = ticks[-1][0]

    def draw(number: int, x: float, width: float) -> Sequence[Bar]:
        times = [(kind, getattr(latencies[number], kind)) for kind in PERCENTILES]
        step = width * 0.8 / len(times)
        return [
            _bar(kind, x + width * 0.1 + place * step, step * 0.9, foot=BOTTOM, value=ms, most=most)
            for place, (kind, ms) in enumerate(times)
            if ms is not None
        ]

    return Chart(
        about="Three bars for each day: half, 95 % and 99 % of its answers came within these times."
        " The table has the numbers.",
        ticks=[Tick(text, _height(ms, most)) for ms, text in ticks],
        columns=_columns(days, draw, [_describe_latency(one) for one in latencies]),
        kinds={kind: kind for kind in PERCENTILES},
    )


def scale(most: int) -> list[int]:
    """The numbers beside the bars: at most five, from 0 to `most` or above, in round steps."""
    steps = (times * 10**power for power in itertools.count() for times in (1, 2, 5))
    step = next(step for step in steps if 4 * step >= most)
    above = -(-max(most, 1) // step)
    return [number * step for number in range(above + 1)]


def scale_of_durations(most_ms: int) -> list[tuple[int, str]]:
    """A scale of durations, each in ms and in words; the unit is the largest that is not above `most_ms`."""
    size, unit = next((one for one in UNITS if most_ms >= one[0]), UNITS[-1])
    return [(number * size, f"{number} {unit}") for number in scale(-(-most_ms // size))]


def _columns(
    days: Sequence[date], draw: Callable[[int, float, float], Sequence[Bar]], values: Sequence[str]
) -> list[Column]:
    width = (RIGHT - LEFT) / max(len(days), 1)
    every = -(-len(days) // MAX_LABELS)
    return [
        Column(
            x=round(LEFT + number * width, 1),
            width=round(width, 1),
            bars=draw(number, LEFT + number * width, width),
            values=f"{_name(day)}: {values[number]}",
            label=_name(day) if (len(days) - 1 - number) % every == 0 else "",
        )
        for number, day in enumerate(days)
    ]


def _name(day: date) -> str:
    return f"{day.day} {day:%b}"


def _bar(kind: str, x: float, width: float, *, foot: float, value: int, most: int) -> Bar:
    height = max(BOTTOM - _height(value, most), MIN_BAR)
    return Bar(kind, round(x, 1), round(foot - height, 1), round(width, 1), round(height, 1))


def _height(value: int, most: int) -> float:
    return round(BOTTOM - (BOTTOM - TOP) * value / most, 1)


def _describe_day(day: AskDay) -> str:
    parts = [f"{getattr(day, kind):,} {name}" for kind, name in OUTCOMES.items() if getattr(day, kind)]
    return ", ".join(parts) or "no asks"


def _describe_latency(one: Latency) -> str:
    parts = [f"{kind} {describe_duration(getattr(one, kind))}" for kind in PERCENTILES if one.count]
    return ", ".join([*parts, f"{one.count:,} answers"]) if parts else "no answers"
