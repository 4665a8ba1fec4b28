"""A report of the kit as it is kept beside the reference, and the page made of it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Literal

import msgspec

Level = Literal["MUST", "SHOULD", "MAY"]
Status = Literal["PASS", "FAIL", "SKIPPED", "NOT TESTED"]

REFERENCE = Path(__file__).parent.parent / "docs" / "reference"
RECORD, PAGE = REFERENCE / "conformance.json", REFERENCE / "conformance.md"
LEVELS: tuple[Level, ...] = ("MUST", "SHOULD")
WORST_FIRST: tuple[Status, ...] = ("FAIL", "PASS", "SKIPPED", "NOT TESTED")
COLUMNS: tuple[Status, ...] = ("PASS", "FAIL", "SKIPPED", "NOT TESTED")
HEADING = """\
# Conformance

The findings of the A2A conformance kit ([a2a-tck](https://github.com/a2aproject/a2a-tck), {kit}) of {day}.
`make conformance` made this page of [the record](conformance.json) of that run
([how](../howto/test.md#the-conformance-kit)).

A requirement counts as passed when it passed over every binding that the kit tried{homes}.
Skipped: the requirement is about gRPC, which the hub does not serve, or about the answer of an agent without a
capability that the hub has. Not tested: that version of the kit has no test of the requirement.
"""
HOMES = ",\non each kind of hub ({homes})"
KINDS = {"embedded": "embedded: one process on SQLite", "grown": "grown: two processes on PostgreSQL and Redis"}

# By the id of a requirement that the hub meets: why its test fails.
EXPLAINED = {
    "CARD-STRUCT-001": "the kit was pointed at the agent's base, whose card clients of 0.3 read too"
    " ([0070](../adr/0070-no-card-is-of-both-schemas.md)): point it at `/v1` below",
    "CORE-SEND-003": "the hub answers with ContentTypeNotSupportedError (-32005), as the requirement says; the"
    " kit's table names no expected error for it, so the test takes every error for a failure"
    " (`tests/v1/test_sending.py` checks the answer)",
}
UNEXPLAINED = "not looked into"

NO_RUN = """\
# Conformance

No run of the A2A conformance kit ([a2a-tck](https://github.com/a2aproject/a2a-tck)) is recorded in this
repository, so this page cannot say what passes. `make conformance` records a run and makes this page of it
([how](../howto/test.md#the-conformance-kit)).

Until then: `tests/v1`, `tests/malformed` and `tests/sdks` try A2A 1.0, by requests written by hand and by the
official SDKs. The kit is not part of them. At an agent's base address the kit fails the card in three MUSTs, which
[0070](../adr/0070-no-card-is-of-both-schemas.md) explains.
"""


class Requirement(msgspec.Struct, frozen=True):
    """One requirement of the specification; `transports`: the result over each binding."""

    level: Level
    status: Status
    transports: dict[str, str] = {}


class Summary(msgspec.Struct, frozen=True):
    """The summary of the kit's report: the time when the report was written (ISO 8601)."""

    timestamp: datetime


class Report(msgspec.Struct, frozen=True):
    """The fields of the kit's `reports/compatibility.json` that the record keeps."""

    summary: Summary
    per_requirement: dict[str, Requirement]


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """A run as the repository keeps it. `kit`: the kit's version or commit; `requirements` by id.

    `homes`: the kinds of hub that the kit ran against, when the record joins several runs.
    """

    kit: str
    day: str
    requirements: dict[str, Requirement]
    homes: list[str] = []


def read_report(raw: bytes, kit: str) -> Record:
    """The record of a report.

    Raises:
        ValueError: it is none, or no requirement was tested.
    """
    report = msgspec.json.decode(raw, type=Report)
    if all(one.status == "NOT TESTED" for one in report.per_requirement.values()):
        raise ValueError("no requirement was tested: the kit did not reach the hub")
    day = report.summary.timestamp.date().isoformat()
    return Record(kit, day, dict(sorted(report.per_requirement.items())))


def join(records: Mapping[str, Record]) -> Record:
    """Join the records of runs on several kinds of hub: a requirement that failed on one of them has failed."""
    found: dict[str, Requirement] = {}
    for home, record in records.items():
        for name, one in record.requirements.items():
            transports = {f"{binding} on {home}": went for binding, went in one.transports.items()}
            before = found.get(name, Requirement(one.level, one.status))
            status = min(before.status, one.status, key=WORST_FIRST.index)
            found[name] = Requirement(one.level, status, before.transports | transports)
    first = next(iter(records.values()))
    return Record(first.kit, max(one.day for one in records.values()), dict(sorted(found.items())), [*records])


def encode(record: Record) -> bytes:
    """The record as its file holds it."""
    return msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n"


def decode(raw: bytes) -> Record:
    """The record of a file."""
    return msgspec.json.decode(raw, type=Record)


def page_of(record: Record | None) -> str:
    """The page, as Markdown. None: no run is recorded, and the page says so."""
    if record is None:
        return NO_RUN
    homes = HOMES.format(homes="; ".join(KINDS.get(one, one) for one in record.homes)) if record.homes else ""
    parts = [HEADING.format(kit=record.kit, day=record.day, homes=homes)]
    for level in LEVELS:
        found = {name: one for name, one in record.requirements.items() if one.level == level}
        parts.append("\n".join([f"## {level}", "", *_table(found)]) + "\n")
        for title, status in (("Failed", "FAIL"), ("Not tested", "NOT TESTED")):
            if lines := list(_listed(found, status)):
                parts.append("\n".join([f"{title}:", "", *lines]) + "\n")
    return "\n".join(parts)


def _table(found: Mapping[str, Requirement]) -> Iterator[str]:
    """The number of requirements with each result, by capability and of all."""
    yield "| Capability | Passed | Failed | Skipped | Not tested |"
    yield "|---|---|---|---|---|"
    capabilities: dict[str, list[Status]] = {}
    for name, one in found.items():
        capabilities.setdefault(name.rpartition("-")[0] or name, []).append(one.status)
    for capability, statuses in sorted(capabilities.items()):
        yield _row(f"`{capability}`", statuses)
    yield _row("**all**", [one.status for one in found.values()])


def _row(name: str, statuses: Iterable[Status]) -> str:
    counts = Counter(statuses)
    return f"| {name} | {' | '.join(str(counts[column]) for column in COLUMNS)} |"


def _listed(found: Mapping[str, Requirement], status: str) -> Iterator[str]:
    for name, one in found.items():
        if one.status == status:
            bindings = ", ".join(sorted(binding for binding, went in one.transports.items() if went == status))
            line = f"- `{name}` ({bindings})" if bindings else f"- `{name}`"
            yield f"{line}: {EXPLAINED.get(name, UNEXPLAINED)}." if status == "FAIL" else line
