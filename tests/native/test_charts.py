"""The numbers beside the charts."""

import itertools
import re
from datetime import date

import pytest

from agents.web.desk.figures import Latency, latency_chart, scale


@pytest.mark.parametrize("most", [0, 1, 4, 5, 7, 41, 999, 100_000])
def test_the_numbers_beside_the_bars_are_few_and_in_equal_steps(most: int) -> None:
    numbers = scale(most)
    assert 2 <= len(numbers) <= 5
    assert numbers[0] == 0
    assert numbers[-1] >= most
    assert len({after - before for before, after in itertools.pairwise(numbers)}) == 1


@pytest.mark.parametrize(
    ("slowest_ms", "unit", "numbers"),
    [(14, "ms", "0 5 10 15"), (1000, "seconds", "0 1 2"), (4700, "seconds", "0 2 4 6")],
)
def test_the_numbers_beside_the_lines_are_whole_and_end_above_them(
    slowest_ms: int, unit: str, numbers: str
) -> None:
    chart = latency_chart([date(2026, 1, 2)], [Latency(3, 2, slowest_ms, slowest_ms)]).decode()
    assert f">{unit}</text>" in chart
    axis = chart.partition('class="axis y')[2].partition("</g></g>")[0]
    assert re.findall(r"<text[^>]*>(\d+)</text>", axis) == numbers.split()
