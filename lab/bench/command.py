"""The command line that all benches share: options, cores, a folder, and the printed and kept result."""

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lab import ROOT
from lab.bench.meter import CPUS, LOAD_CORE
from lab.figures import BenchResult

RESULTS = ROOT / "lab" / "bench" / "results"
HOMES = ("embedded", "postgres")
Options = argparse.Namespace
_began = time.monotonic()


@dataclass(frozen=True)
class Option:
    """An option. `settings`: further arguments of `add_argument`."""

    flag: str
    default: Any
    what: str
    settings: dict[str, Any] = field(default_factory=dict)

    def add_to(self, parser: argparse.ArgumentParser) -> None:
        """Declare the option; its type is that of its default."""
        shown = " ".join(map(str, self.default)) if isinstance(self.default, list | tuple) else self.default
        is_number = isinstance(self.default, int | float) and not isinstance(self.default, bool)
        typed: dict[str, Any] = {"type": type(self.default)} if is_number else {}
        text = f"{self.what} (default {shown})" if self.default else self.what
        parser.add_argument(self.flag, default=self.default, help=text, **(typed | self.settings))


def flag(name: str, what: str) -> Option:
    """An option without a value."""
    return Option(name, False, what, {"action": "store_true"})


def homes(*known: str, default: str = "") -> Option:
    """The option for the kinds of hub to measure, separated by commas."""

    def read(text: str) -> list[str]:
        chosen = [home for home in text.split(",") if home]
        if unknown := set(chosen) - set(known):
            raise argparse.ArgumentTypeError(f"no home {', '.join(unknown)}: want some of {', '.join(known)}")
        return chosen

    return Option("--homes", default or ",".join(known), "hubs to measure, with commas between", {"type": read})


def home(default: str = "postgres") -> Option:
    """The option for the kind of hub to measure."""
    return Option("--home", default, "the hub to measure", {"choices": HOMES})


def rounds(default: int = 3) -> Option:
    """The option for the number of rounds in which everything is measured in turns."""
    return Option("--rounds", default, "rounds over everything that is compared")


def seconds(default: float, what: str = "length of one run") -> Option:
    """The option for the length of one run."""
    return Option("--seconds", default, what)


def bench(name: str, measure: Callable[[Options, Path], BenchResult], *options: Option) -> None:
    """Run a bench: read its options, measure, print the result, and keep it with date and commit.

    `name`: of its module; empty for `lab.bench` itself. `measure` is given the options and a folder for servers.
    """
    program = "lab.bench." + name if name else "lab.bench"
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=measure.__doc__)
    for option in options:
        option.add_to(parser)
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER", help="where figures are kept")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep every single figure in this file instead")
    chosen = parser.parse_args()
    with _folder() as folder:
        result = measure(chosen, folder)
    print(result.text, flush=True)
    path = chosen.json or chosen.results / f"{result.name}.json"
    result.keep(path, cores=len(CPUS))
    show_progress(f"kept in {path}")


def show_progress(line: str) -> None:
    """Show progress on standard error, with the seconds since the start."""
    print(f"{time.monotonic() - _began:7.1f} s  {line}", file=sys.stderr, flush=True)


def odd_lines(lines: Sequence[str]) -> list[str]:
    """Notes about what a hub printed beside its ready line; a few of them."""
    return [f"the hub printed: {line}" for line in lines if not line.startswith("ready ")][:10]


@contextmanager
def _folder() -> Iterator[Path]:
    """A temporary folder for servers, with this process moved to the load's core; SIGTERM ends the block too."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.sched_setaffinity(0, {LOAD_CORE})
    with TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # PostgreSQL may run as another user
        yield folder
