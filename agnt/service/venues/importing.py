"""Imports files of venues (`agnt.service.venues.file`), and reports their bad rows.

An import writes all rows of a file or, when one of them is wrong, none; or all that are right, if the caller wants
that. A row whose slug the network has, in any case, changes that venue in the columns of the file; any other row
is a new venue. Venues that the file does not name stay as they are, so importing a file again changes nothing.

The file is read twice, 500 rows at a time: first every row is checked, then all of them are written in one
transaction. Of all rows together only the names are in memory.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, BinaryIO

from django.db import transaction
from django.db.models.functions import Lower

from agnt import limits
from agnt.models import Network, Venue
from agnt.service.venues.editing import NO_AGENT, find_agents, lock_network, note_venue_change
from agnt.service.venues.fields import AGENT_OR_URL, FIELDS, BadVenue, check_fields
from agnt.service.venues.file import COLUMN_OF, COLUMNS, ROWS_AT_ONCE, Row, read_cell, read_rows
from kit.clock import db_now

BAD_ROWS_NAMED = 200
WHOLE_ROW = "row"  # stands for the field in a report if the row itself is wrong


@dataclass(frozen=True, slots=True)
class BadRow:
    """The reason for leaving out a row. `line`: where it begins in the file; `field`: the column, or `row`."""

    line: int
    field: str
    reason: str


@dataclass(slots=True)
class ImportReport:
    """The result of an import. `bad`: the faults of its first 200 bad rows; `bad_rows`: how many there are.

    `is_done`: whether the right ones were written.
    """

    is_done: bool = False
    created: int = 0
    changed: int = 0
    unchanged: int = 0
    bad_rows: int = 0
    bad: list[BadRow] = field(default_factory=list)


@dataclass(slots=True)
class _Seen:
    """The values of a sound row that later rows may repeat; None: the file has no such column."""

    line: int
    agent_name: str | None
    has_agent: bool | None
    has_url: bool | None


@dataclass(slots=True)
class _Import:
    """An import under way. `seen`: by slug in lower case. `bad_lines`: of the rows that are not to be written."""

    network: Network
    file: BinaryIO
    report: ImportReport = field(default_factory=ImportReport)
    seen: dict[str, _Seen] = field(default_factory=dict)
    bad_lines: set[int] = field(default_factory=set)

    def refuse(self, line: int, reasons: Mapping[str, str]) -> None:
        """Leave a row out, once. `reasons` by column."""
        if line in self.bad_lines:
            return
        self.bad_lines.add(line)
        self.report.bad_rows = len(self.bad_lines)
        if self.report.bad_rows <= BAD_ROWS_NAMED:
            self.report.bad += [BadRow(line, column, reason) for column, reason in reasons.items()]


def import_venues(network: Network, file: BinaryIO, *, skips_bad_rows: bool = False) -> ImportReport:
    """Create and change venues by the rows of a file. With `skips_bad_rows` wrong rows do not stop the right ones.

    Raises:
        BadFile: it is no CSV file in UTF-8, a column is unknown, missing or there twice, or it has too many rows.
        accounts.quotas.QuotaExceeded: the network would have more venues than one may.
    """
    run = _Import(network, file)
    _check_rows(run)
    if run.bad_lines and not skips_bad_rows:
        return _sorted(run.report)
    with transaction.atomic():
        lock_network(network)
        stored = _load_stored(network)
        _check_against_stored(run, stored)
        if run.bad_lines and not skips_bad_rows:
            return _sorted(run.report)
        limits.VENUES.check_number(len(stored.keys() | run.seen.keys()), 0)
        _free_agent_names(run, stored)
        _write_rows(run)
        if run.bad_lines and not skips_bad_rows:  # an agent was deleted since the first reading
            transaction.set_rollback(True)
            return _sorted(ImportReport(bad_rows=run.report.bad_rows, bad=run.report.bad))
        if run.report.created or run.report.changed:
            note_venue_change(network)
    run.report.is_done = True
    return _sorted(run.report)


# The first reading: each row by itself.


def _check_rows(run: _Import) -> None:
    for rows in _read_chunks(run):
        for row, fields in zip(rows, _read_fields(run, rows), strict=True):
            if fields is None:
                continue
            key = fields["slug"].lower()
            if key in run.seen:
                run.refuse(row.line, {"slug": f"the row of line {run.seen[key].line} has this slug"})
                continue
            run.seen[key] = _Seen(
                row.line,
                fields.get("agent_name"),
                fields["agent"] is not None if "agent" in fields else None,
                fields["url"] != "" if "url" in fields else None,
            )


def _read_fields(run: _Import, rows: Sequence[Row]) -> Iterator[dict[str, Any] | None]:
    """The checked fields of each row, None of a wrong one."""
    handles = {cell for row in rows if (cell := row.cells.get("agent", ""))}
    agents = find_agents(run.network.owner, handles) if handles else {}
    for row in rows:
        if row.fault:
            run.refuse(row.line, {WHOLE_ROW: row.fault})
        if row.line in run.bad_lines:
            yield None
            continue
        values: dict[str, Any] = {}
        reasons: dict[str, str] = {}
        for column, cell in row.cells.items():
            try:
                values[COLUMNS[column]] = read_cell(column, cell)
            except ValueError as wrong:
                reasons[column] = str(wrong)
        if handle := row.cells.get("agent"):
            values["agent"] = agents.get(handle)
            if handle not in agents:
                reasons["agent"] = NO_AGENT
        try:
            fields = check_fields(values)
        except BadVenue as bad:
            reasons |= {COLUMN_OF[name]: reason for name, reason in bad.reasons.items()}
        if reasons:
            run.refuse(row.line, reasons)
        yield None if reasons else fields


# The second reading: the venues of the network, under the lock on its row.


def _load_stored(network: Network) -> dict[str, tuple[str, bool, bool]]:
    """By slug in lower case, for each venue: its agent name, whether it has an agent, and whether it has a URL."""
    rows = Venue.objects.filter(network=network).values_list(Lower("slug"), "agent_name", "agent_id", "url")
    return {key: (agent_name, agent_id is not None, url != "") for key, agent_name, agent_id, url in rows}


def _check_against_stored(run: _Import, stored: Mapping[str, tuple[str, bool, bool]]) -> None:
    """Refuse rows that do not fit what the network has."""
    for key, row in list(run.seen.items()):
        _, had_agent, had_url = stored.get(key, ("", False, False))
        has_agent = had_agent if row.has_agent is None else row.has_agent
        has_url = had_url if row.has_url is None else row.has_url
        if has_agent and has_url:
            run.refuse(row.line, {"url" if row.has_url else "agent": AGENT_OR_URL})
            del run.seen[key]
    _refuse_twins(run, stored)


def _refuse_twins(run: _Import, stored: Mapping[str, tuple[str, bool, bool]]) -> None:
    """Refuse rows whose agent name another venue would also have after the import.

    The venue of a row that is left out keeps its name; then the row that takes this name is left out as well.
    """
    holders = {name: key for key, (name, _, _) in stored.items() if name and _new_name(run, key) in (None, name)}
    named = [(key, row.agent_name) for key, row in run.seen.items() if row.agent_name]
    twins = [(key, holder) for key, name in named if (holder := holders.setdefault(name, key)) != key]
    while twins:
        key, holder = twins.pop()
        if (row := run.seen.pop(key, None)) is None:
            continue
        run.refuse(row.line, {"agent_id": f"the venue {holder} has this name"})
        kept = stored[key][0] if key in stored else ""
        if kept and (taker := holders.get(kept, key)) != key:
            twins.append((taker, key))


def _new_name(run: _Import, key: str) -> str | None:
    return run.seen[key].agent_name if key in run.seen else None


def _free_agent_names(run: _Import, stored: Mapping[str, tuple[str, bool, bool]]) -> None:
    """Clear the agent names that will change, so that two venues can swap their names."""
    leaving = [name for key, (name, _, _) in stored.items() if name and _new_name(run, key) not in (None, name)]
    for start in range(0, len(leaving), ROWS_AT_ONCE):
        names = leaving[start : start + ROWS_AT_ONCE]
        Venue.objects.filter(network=run.network, agent_name__in=names).update(agent_name="")


def _write_rows(run: _Import) -> None:
    now = db_now()
    for rows in _read_chunks(run):
        given = {one["slug"].lower(): one for one in _read_fields(run, rows) if one}
        known = Venue.objects.filter(network=run.network).alias(key=Lower("slug")).filter(key__in=list(given))
        venues = {venue.slug.lower(): venue for venue in known}
        new, changed = [], []
        for key, fields in given.items():
            venue = venues.get(key)
            if venue is None:
                new.append(Venue(network=run.network, created_at=now, updated_at=now, **fields))
            elif _differs(venue, fields):
                for name, value in fields.items():
                    setattr(venue, name, value)
                venue.updated_at = now
                changed.append(venue)
        run.report.created += len(new)
        run.report.changed += len(changed)
        run.report.unchanged += len(given) - len(new) - len(changed)
        Venue.objects.bulk_create(new)
        # Many times as fast as bulk_update, whose statements have a CASE for each row and field.
        Venue.objects.bulk_create(
            changed, update_conflicts=True, unique_fields=["id"], update_fields=[*FIELDS, "updated_at"]
        )


def _differs(venue: Venue, fields: Mapping[str, Any]) -> bool:
    agent = fields.get("agent")
    wanted = {**fields, "agent": agent.pk if agent else None} if "agent" in fields else fields
    return any(wanted[name] != (venue.agent_id if name == "agent" else getattr(venue, name)) for name in wanted)


def _read_chunks(run: _Import) -> Iterator[list[Row]]:
    rows = read_rows(run.file)
    while chunk := list(islice(rows, ROWS_AT_ONCE)):
        yield chunk


def _sorted(report: ImportReport) -> ImportReport:
    report.bad.sort(key=lambda one: one.line)
    return report
