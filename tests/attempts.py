"""What attacks tried, how often, and what broke: a table at the end of a run.

A test of an attack counts what it tried by the fixture `attempts`. `make attack` runs the tests with the marker
`attack`, with `--attacks long`; `make test-deep` runs those that are `deep`, and `make test` the others, both with
fewer attempts.
"""

from collections.abc import Iterable
from typing import cast

import pytest

KEY = "attempts"  # of a report's user properties, which workers send to the process that prints
HEAD = ("what was tried", "times", "broke")


class Attempts:
    """What one test tried."""

    def __init__(self, item: pytest.Item) -> None:
        self._item = item
        self.is_long: bool = item.config.getoption("attacks") == "long"

    def number(self, short: int, long: int) -> int:
        """The number of attempts that this run makes of something."""
        return long if self.is_long else short

    def count(self, what: str, times: int, broke: int = 0) -> None:
        """Count what was tried. `broke`: the number of attempts that did what they must not."""
        self._item.user_properties.append((KEY, (what, times, broke)))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--attacks", choices=("short", "long"), default="short", help="how much tests of attacks try")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "attack: what `make attack` runs, and prints a table of")


@pytest.fixture
def attempts(request: pytest.FixtureRequest) -> Attempts:
    """Counts what a test of an attack tries."""
    return Attempts(request.node)


def sums(reports: Iterable[pytest.TestReport]) -> dict[str, tuple[int, int]]:
    """The numbers of attempts, and of those that broke something, by what was tried."""
    total: dict[str, tuple[int, int]] = {}
    for report in reports:
        for key, value in report.user_properties if report.when == "call" else ():
            if key == KEY:
                what, times, broke = cast(tuple[str, int, int], value)
                before = total.get(what, (0, 0))
                total[what] = (before[0] + times, before[1] + broke)
    return total


def table(total: dict[str, tuple[int, int]]) -> list[str]:
    """The lines of a table in Markdown."""
    rows = [HEAD, ("---", "---:", "---:")]
    rows += [(what, f"{times:,}", f"{broke:,}") for what, (times, broke) in sorted(total.items())]
    return [f"| {' | '.join(row)} |" for row in rows]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table after a run that attacked."""
    done = [*terminalreporter.stats.get("passed", ()), *terminalreporter.stats.get("failed", ())]
    if total := sums(one for one in done if isinstance(one, pytest.TestReport)):
        terminalreporter.section("attacks")
        for line in table(total):
            terminalreporter.line(line)
