"""Figures as pictures: SVG for an `<img>`, in the page's colours, light and dark."""

import itertools
from collections.abc import Sequence
from datetime import date
from typing import Any

import pygal
from pygal.style import Style

from agents.web.desk.figures import Day, Latency

WIDTH, HEIGHT = 520, 300
LINES = {"p50": 3, "p95": 6, "p99": 2}  # widths: on few answers p99 lies upon p95, and both are seen
COLOURS = """inline:
:root { --ink: #53615d; --line: #d9e0dd; --good: #0f766e; --bad: #b3261e; --busy: #b26a00; --open: #7c8a86; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #a3b1ad; --line: #2c3835; --good: #5eead4; --bad: #ff9a92; --busy: #f5b94d; --open: #71807b; }
}
.series .line { stroke-width: inherit !important; }"""


def asks_chart(days: Sequence[Day]) -> bytes:
    """Asks per day, one bar a day, by what became of them."""
    chart = pygal.StackedBar(**_look(("good", "bad", "busy", "open")))
    _label(chart, [one.day for one in days])
    for name in ("answered", "failed", "refused", "open"):
        chart.add(name, [getattr(one, name) or None for one in days])
    chart.y_labels = scale(max((one.total for one in days), default=0))
    return _svg(chart)


def latency_chart(days: Sequence[date], latencies: Sequence[Latency]) -> bytes:
    """Time to an answer, per day, in seconds or, if all came within one, in ms; a day without answers is a gap."""
    most = max((one.p99 or 0 for one in latencies), default=0)
    ms, unit = (1000, "seconds") if most >= 1000 else (1, "ms")
    chart = pygal.Line(**_look(("good", "busy", "bad")), allow_interruptions=True, y_title=unit)
    _label(chart, days)
    for name, width in LINES.items():
        found = [getattr(one, name) for one in latencies]
        times = [None if one is None else one / ms for one in found]
        chart.add(name, times, stroke_style={"width": width}, dots_size=width)
    chart.y_labels = scale(most // ms + 1)
    return _svg(chart)


def scale(most: int) -> list[int]:
    """The numbers beside the bars: at most five, from 0 to `most` or above, in round steps."""
    steps = (times * 10**power for power in itertools.count() for times in (1, 2, 5))
    step = next(step for step in steps if 4 * step >= most)
    above = -(-max(most, 1) // step)
    return [number * step for number in range(above + 1)]


def _look(colours: Sequence[str]) -> dict[str, Any]:
    style = Style(
        background="transparent",
        plot_background="transparent",
        foreground="var(--ink)",
        foreground_strong="var(--ink)",
        foreground_subtle="var(--line)",
        guide_stroke_color="var(--line)",
        major_guide_stroke_color="var(--line)",
        guide_stroke_dasharray="none",
        major_guide_stroke_dasharray="none",
        colors=tuple(f"var(--{colour})" for colour in colours),
        font_family="system-ui, sans-serif",
        label_font_size=14,
        major_label_font_size=14,
        legend_font_size=14,
        no_data_font_size=14,
        opacity="1",
        transition="none",
    )
    return {
        "style": style,
        "css": ["file://style.css", "file://graph.css", COLOURS],
        "js": (),
        "width": WIDTH,
        "height": HEIGHT,
        "margin": 8,
        "margin_right": 24,
        "truncate_label": -1,
        "legend_at_bottom": True,
        "legend_at_bottom_columns": len(colours),
        "legend_box_size": 12,
        "include_x_axis": True,
        "y_labels_major_count": 5,
        "show_minor_y_labels": False,
        "disable_xml_declaration": True,
        "no_data_text": "Nothing yet",
    }


def _label(chart: Any, days: Sequence[date]) -> None:
    """Every day, or of many each fifth."""
    chart.x_labels = [f"{day.day} {day:%b}" for day in days]
    if len(days) > 10:
        chart.x_labels_major_every = 5
        chart.show_minor_x_labels = False


def _svg(chart: Any) -> bytes:
    chart.add_xml_filter(_without_scripts)
    text: str | bytes = chart.render()
    return text.encode() if isinstance(text, str) else text


def _without_scripts(root: Any) -> Any:
    for parent in list(root.iter()):
        for child in [one for one in parent if str(one.tag).endswith("script")]:
            parent.remove(child)
    return root
