"""The table: one line for each invariant, and one for each figure a fault must meet."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from lab.faults.evidence import Evidence

SHOWN = 5


@dataclass
class InvariantRow:
    """An invariant or a figure: the number `n` of its cases, and a description of each violation."""

    name: str
    says: str
    n: int = 0
    violations: list[str] = field(default_factory=list)

    def case(self, ok: bool, detail: str = "") -> None:
        """Add a case."""
        self.n += 1
        if not ok:
            self.violations.append(detail)


Cases = Iterator[tuple[object, str]]  # of each whether the invariant held, and a description
Check = Callable[[Evidence], InvariantRow]


def invariant(name: str, says: str) -> Callable[[Callable[[Evidence], Cases]], Check]:
    """Declares an invariant, whose cases the decorated function yields; the result makes its row of the table."""

    def declare(find_cases: Callable[[Evidence], Cases]) -> Check:
        def check(found: Evidence) -> InvariantRow:
            row = InvariantRow(name, says)
            for holds, detail in find_cases(found):
                row.case(bool(holds), detail)
            return row

        return check

    return declare


def merged(tables: Sequence[Sequence[InvariantRow]]) -> list[InvariantRow]:
    """Tables of several hubs as one, invariants first; rows with the same name and text are added up."""
    found: dict[tuple[str, str], InvariantRow] = {}
    for row in (row for table in tables for row in table):
        whole = found.setdefault((row.name, row.says), InvariantRow(row.name, row.says))
        whole.n += row.n
        whole.violations += row.violations
    return sorted(found.values(), key=lambda row: (row.name[0] != "I", int(row.name[1:] or 0)))


def as_markdown(rows: Sequence[InvariantRow]) -> str:
    """`invariant | n | violations`."""
    lines = ["| invariant | n | violations |", "|---|---:|---:|"]
    lines += [f"| **{row.name}** {row.says} | {row.n:,} | {len(row.violations):,} |" for row in rows]
    return "\n".join(lines)


def examples(rows: Sequence[InvariantRow]) -> str:
    """The first violations of each row."""
    lines = []
    for row in rows:
        lines += [f"{row.name}: {one}" for one in row.violations[:SHOWN]]
        if len(row.violations) > SHOWN:
            lines.append(f"{row.name}: … {len(row.violations) - SHOWN} more")
    return "\n".join(lines)
