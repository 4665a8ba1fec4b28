"""Counts the processor time that each top folder of `tests/` takes, and prints it beside the folder's share.

The shares are the table in `tests/README.md`; together they are what `make test` may take. The time of a folder is
that of the worker and of all processes below it (hubs, PostgreSQL, browsers), from the first test of the folder to
the first test of another one.
"""

import re
from collections import Counter
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

SHARES = Path(__file__).with_name("README.md")
SHARE = re.compile(r"^\| `(\w+)` \| (\d+) \|", re.MULTILINE)
COLLECTING = "collecting"
KEY = "processor seconds"  # the key in a worker's report
MAX_READINGS = 10
TOTAL = pytest.StashKey["ProcessorTime"]()


class ProcessorTime:
    """Seconds of processor time by folder, in this process and those below it."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.tests: Counter[str] = Counter()
        self._folder = COLLECTING
        self._read = 0.0

    def begin(self, folder: str) -> None:
        """Count for this folder from now on; does nothing if this is the current folder."""
        if folder != self._folder:
            self.read()
            self._folder = folder

    def read(self) -> None:
        """Add the time since the last reading to the current folder.

        The time of a process that ended without being waited for is gone: such a reading adds nothing.
        """
        now = _seconds_of_the_tree()
        self.seconds[self._folder] += max(0.0, now - self._read)
        self._read = now


def _seconds_of_the_tree() -> float:
    """User and system time of this process and its descendants, those that have ended included.

    A process that its parent waits for between the readings of the two would be in neither, so such a reading is
    repeated; a browser may start and end processes all the time, so not without end.
    """
    own = psutil.Process()
    for _ in range(MAX_READINGS):
        processes = [own, *own.children(recursive=True)]
        total = 0.0
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                total += sum(process.cpu_times()[:4])
        if [own, *own.children(recursive=True)] == processes:
            break
    return total


def read_shares() -> dict[str, int]:
    """The processor seconds that each folder may take, from the table of the README."""
    return {folder: int(seconds) for folder, seconds in SHARE.findall(SHARES.read_text(encoding="utf-8"))}


def pytest_configure(config: pytest.Config) -> None:
    config.stash[TOTAL] = ProcessorTime()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    total = item.config.stash[TOTAL]
    path = item.nodeid.partition("::")[0]
    folder = path.split("/")[1] if "/" in path else path  # a test may make a test file of its own
    total.begin(folder)
    total.tests[folder] += 1
    return (yield)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker reports to the process that prints, after its fixtures have ended."""
    total = session.config.stash[TOTAL]
    if session.config.pluginmanager.hasplugin("dsession"):
        return  # its workers count
    total.read()
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput[KEY] = (dict(total.seconds), dict(total.tests))


def pytest_testnodedown(node: object) -> None:
    """Add the report of a worker that has ended; a worker that died has none."""
    config: pytest.Config = node.config  # type: ignore[attr-defined]
    seconds, tests = getattr(node, "workeroutput", {}).get(KEY, ({}, {}))
    total = config.stash[TOTAL]
    total.seconds.update(seconds)
    total.tests.update(tests)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the table after a run of several folders."""
    total = config.stash[TOTAL]
    if len(total.tests) < 2:
        return
    shares = read_shares()
    terminalreporter.section("processor time by folder of tests/")
    for folder, used in total.seconds.most_common():
        share = shares.get(folder)
        note = "no share" if share is None else f"share {share:4} s{', exceeded' if used > share else ''}"
        terminalreporter.line(f"{folder:14} {total.tests[folder]:6} tests {used:7.1f} s  {note}")
    sum_s, budget_s = sum(total.seconds.values()), sum(shares.values())
    terminalreporter.line(f"{'all':14} {sum(total.tests.values()):6} tests {sum_s:7.1f} s  share {budget_s:4} s")
