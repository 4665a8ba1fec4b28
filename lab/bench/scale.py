"""What the commands of `make bench-scale` share: options, the result, where it is kept (docs/howto/bench.md)."""

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lab import ROOT
from lab.bench.cores import CPUS, LOAD_CORE
from lab.bench.report import goal, table
from lab.bench.targets import temporary_folder

RESULTS = ROOT / "lab" / "bench" / "results"
DISTURBED = 0.05


@dataclass
class Result:
    """What one command found. `runs` holds every single figure, `tables` title, head and lines."""

    name: str
    title: str
    tables: list[tuple[str, Sequence[str], list[list[str]]]] = field(default_factory=list)
    goals: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    runs: list[dict[str, Any]] = field(default_factory=list)

    def goal(self, what: str, relation: str, wanted: float, measured: float) -> None:
        """Hold a figure against what is wanted; `relation`: at least, or at most."""
        self.goals.append(goal(what, relation, wanted, measured))

    def note_others(self, shares: Sequence[float]) -> None:
        """Say how much strangers took of the processors during the runs."""
        if shares and max(shares) > DISTURBED:
            self.notes.append(
                f"others used {min(shares):.0%} to {max(shares):.0%} of the processors meanwhile:"
                " times are too long and throughput too low; ratios within a round hold better"
            )

    @property
    def text(self) -> str:
        """The tables, goals and notes."""
        parts = [f"{title}\n{table(head, rows)}" for title, head, rows in self.tables]
        if self.goals:
            parts.append("Goals\n" + table(["goal", "wanted", "measured", ""], self.goals))
        return "\n\n".join([self.title, *self.notes, *parts])


def parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """Options that every command has."""
    made = argparse.ArgumentParser(prog=f"python -m lab.bench.{name}", description=description)
    made.add_argument(
        "--results",
        type=Path,
        default=RESULTS,
        metavar="FOLDER",
        help="where figures are kept (lab/bench/results)",
    )
    return made


@contextmanager
def folder() -> Iterator[Path]:
    """A temporary folder for servers, with this process moved to the load's core; SIGTERM ends in order too."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {LOAD_CORE})
    try:
        with temporary_folder() as made:
            yield made
    finally:
        os.sched_setaffinity(0, before)


def publish(result: Result, results: Path) -> None:
    """Print it, and keep it as JSON with date, commit and machine."""
    print(result.text, flush=True)
    results.mkdir(parents=True, exist_ok=True)
    kept = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "commit": _commit(), "cores": len(CPUS)}
    path = results / f"{result.name}.json"
    path.write_text(json.dumps(kept | asdict(result), indent=1))
    say(f"kept in {path}")


def say(line: str) -> None:
    """Show progress on standard error."""
    print(line, file=sys.stderr, flush=True)


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of them does not exceed; not a number of none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else float("nan")


def _commit() -> str:
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip()
