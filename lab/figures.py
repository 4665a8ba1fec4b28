"""Figures of a measurement: percentiles, tables, goals, and the result that a command prints and keeps."""

import json
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from lab import ROOT

DISTURBED = 0.05
ERRORS_SHOWN = 5
GOAL_HEAD = ("goal", "wanted", "measured", "")
NOT_A_NUMBER = float("nan")


@dataclass
class BenchResult:
    """The findings of one command. `tables`: title, head and rows of each; `runs`: every single figure."""

    name: str
    title: str
    tables: list[tuple[str, Sequence[str], list[list[str]]]] = field(default_factory=list)
    goals: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    runs: list[Any] = field(default_factory=list)

    def table(self, title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Add a table."""
        self.tables.append((title, head, [list(row) for row in rows]))

    def goal(self, what: str, relation: str, wanted: float, measured: float) -> None:
        """Compare a figure with its goal; `relation`: at least, at most, or under. NaN meets no goal."""
        is_met = measured >= wanted if relation == "at least" else measured < wanted
        self.goals.append([what, f"{relation} {wanted:g}", f"{measured:.2f}", "met" if is_met else "NOT MET"])

    def note_errors(self, errors: Iterable[str]) -> None:
        """Show some of the different errors."""
        self.notes += [f"an error: {error}" for error in sorted({one for one in errors if one})[:ERRORS_SHOWN]]

    def note_others(self, shares: Sequence[float]) -> None:
        """Say which share of the processors other programs used during the runs."""
        if shares and max(shares) > DISTURBED:
            self.notes.append(
                f"others used {min(shares):.0%} to {max(shares):.0%} of the processors meanwhile:"
                " times are too long and throughput too low; ratios within a round hold better"
            )

    @property
    def text(self) -> str:
        """The title, the notes, the tables and the goals."""
        parts = [f"{title}\n{table(head, rows)}" for title, head, rows in self.tables if rows]
        if self.goals:
            parts.append("Goals\n" + table(GOAL_HEAD, self.goals))
        return "\n\n".join([self.title, *self.notes, *parts])

    def keep(self, path: Path, **about: object) -> None:
        """Write everything as JSON, with date and commit."""
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "commit": commit(), **about, **asdict(self)}
        path.write_text(json.dumps(kept, indent=1))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Rows below their head; the first column is aligned to the left, the others to the right."""
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "  ".join(
            [
                line[0].ljust(widths[0]),
                *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)),
            ]
        )
        for line in lines
    )


def percentile(values: Iterable[float], share: float) -> float:
    """The value that this share of the values does not exceed; NaN without values."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else NOT_A_NUMBER


def spread(values: Sequence[float], *shares: float, digits: int = 1) -> list[str]:
    """Percentiles as cells of a table; the share 1 is the largest value."""
    return [f"{percentile(values, share):.{digits}f}" for share in shares]


def median_ratio(ones: Sequence[float], others: Sequence[float]) -> float:
    """The median of the ratios of pairs; each pair was measured in one round. NaN without pairs."""
    ratios = [one / other for one, other in zip(ones, others, strict=True) if other]
    return median(ratios) if ratios else NOT_A_NUMBER


def commit() -> str:
    """The commit of this checkout; empty without git."""
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()
