"""Files of venues: CSV in UTF-8, with a first line of column names. Written here, and read row by row."""

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

from msgspec import Struct

from agnt.models import Network, Venue
from agnt.service.venues.fields import DEFAULTS, FIELDS, NEEDED, TAG_SEPARATOR
from kit.csv_text import csv_lines, unescape

_ORDER = (
    *("slug", "name", "category", "area", "city", "description", "tags", "price_range", "referral_fee_pct"),
    *("priority_rank", "is_active", "agent_name", "agent", "url"),
)
COLUMNS = {FIELDS[name].column: name for name in _ORDER}  # of a file, and the field of `Venue`
COLUMN_OF = {name: column for column, name in COLUMNS.items()}
MAX_ROWS = 10_000
ROWS_AT_ONCE = 500
MAX_SHOWN_CHARS = 40
YES, NO = ("true", "yes", "1"), ("false", "no", "0")


class BadFile(Exception):
    """The hub cannot read the file. `line`: where the reader stopped. The text is public."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line = line


class Row(Struct, frozen=True):
    """A row of a file: the line where it begins, and its cells by column. `fault`: why it has none, or empty."""

    line: int
    cells: Mapping[str, str]
    fault: str = ""


def export_venues(network: Network) -> Iterator[str]:
    """The venues of a network as a file, in pieces of 500 lines, oldest venue first.

    Of a network that is not stored: the names of the columns.
    """
    yield "".join(csv_lines([list(COLUMNS)]))
    last = 0
    while not network._state.adding and (rows := _load_after(network, last)):
        last = rows[-1].pk
        yield "".join(csv_lines(map(_show_cells, rows)))


def read_rows(file: BinaryIO) -> Iterator[Row]:
    """The rows of a file, from its start; `file` stays open. Empty lines are left out.

    Raises:
        BadFile: it is no CSV file in UTF-8, a column is unknown, missing or there twice, or it has too many rows.
    """
    file.seek(0)
    text = io.TextIOWrapper(file, "utf-8-sig", newline="")
    reader = csv.reader(text, strict=True)
    try:
        columns = _read_columns(next(reader, []))
        number, line = 0, reader.line_num + 1
        for cells in reader:
            begins, line = line, reader.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            number += 1
            if number > MAX_ROWS:
                raise BadFile(begins, f"a file has at most {MAX_ROWS} rows")
            yield _read_row(begins, columns, cells)
    except csv.Error as broken:
        raise BadFile(reader.line_num, f"this is not CSV: {broken}") from None
    except UnicodeDecodeError:
        raise BadFile(reader.line_num + 1, "the file is not UTF-8") from None
    finally:
        text.detach()


def read_cell(column: str, cell: str) -> Any:
    """The value of a cell, as `check_fields` takes it; the default for an empty cell. No agent is looked up.

    Raises:
        ValueError: it says nothing that the column may hold; the text is public.
    """
    return _READ.get(column, str)(cell) if cell else DEFAULTS[COLUMNS[column]]


def _load_after(network: Network, last: int) -> list[Venue]:
    found = Venue.objects.filter(network=network, pk__gt=last).select_related("agent").order_by("pk")
    return list(found[:ROWS_AT_ONCE])


def _show_cells(venue: Venue) -> Sequence[object]:
    values = {name: getattr(venue, name) for name in COLUMNS.values()}
    values["tags"] = TAG_SEPARATOR.join(venue.tags)
    values["is_active"] = YES[0] if venue.is_active else NO[0]
    values["agent"] = f"@{venue.agent.handle}" if venue.agent else ""
    return list(values.values())


def _read_columns(names: Sequence[str]) -> list[str]:
    columns = [name.strip().lower() for name in names]
    if unknown := [name for name in columns if name not in COLUMNS]:
        shown = unknown[0][:MAX_SHOWN_CHARS].encode("ascii", "backslashreplace").decode("ascii")
        raise BadFile(1, f"there is no column {shown!r}: want {', '.join(COLUMNS)}")
    if twice := [name for name in COLUMNS if columns.count(name) > 1]:
        raise BadFile(1, f"the column {twice[0]} is there twice")
    if missing := [name for name in NEEDED if name not in columns]:
        raise BadFile(1, f"the column {missing[0]} is missing")
    return columns


def _read_row(line: int, columns: Sequence[str], cells: Sequence[str]) -> Row:
    if len(cells) != len(columns):
        return Row(line, {}, f"it has {len(cells)} cells, and the first line names {len(columns)} columns")
    return Row(line, {name: unescape(cell.strip()) for name, cell in zip(columns, cells, strict=True)})


def _read_active(cell: str) -> bool:
    if (word := cell.lower()) not in YES + NO:
        raise ValueError("want true or false")
    return word in YES


def _read_rank(cell: str) -> int:
    digits = cell.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > MAX_SHOWN_CHARS:
        raise ValueError("want a whole number")
    return int(cell)


_READ: Mapping[str, Callable[[str], Any]] = {
    "tags": lambda cell: cell.split(TAG_SEPARATOR),
    "active": _read_active,
    "priority_rank": _read_rank,
    "agent": lambda cell: None,
}
