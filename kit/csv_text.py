"""Lines of CSV files that spreadsheets open: no text in them runs as a formula."""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence

from django.http import StreamingHttpResponse

from kit.async_db import stream_slices

# Where a spreadsheet may begin a formula: at the start of a cell, and behind a character at which spreadsheets of
# some languages split lines that commas part. Before the sign may be what spreadsheets drop: spaces, quotation
# marks, and characters that are not seen.
_DROPPED = r"(?:[^\S\t\r\n]|[\"\x00-\x08\x0e-\x1f\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff])*"
_SIGN = r"[=+\-@\uff1d\uff0b\uff0d\uff20]"
_CELL = rf"'*{_DROPPED}(?:{_SIGN}|[\t\r\n])"
_PART = rf"'*{_DROPPED}{_SIGN}"
_BEHIND = r"(?<=[;\t\r\n])"
FORMULA = re.compile(rf"\A(?={_CELL})|{_BEHIND}(?={_PART})")
ESCAPED = re.compile(rf"\A'(?={_CELL})|{_BEHIND}'(?={_PART})")


class _Line:
    """A file for `csv.writer` that stores nothing: `write` returns the line."""

    def write(self, line: str) -> str:
        return line


def csv_lines(rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Rows as lines of a spreadsheet, in which no text runs as a formula."""
    writer = csv.writer(_Line())
    for row in rows:
        yield writer.writerow([_escape(cell) for cell in row])


def csv_response(slices: Iterator[str], filename: str) -> StreamingHttpResponse:
    """A response that downloads the lines as a file while they are read. `filename` is plain ASCII."""
    headers = {"Content-Disposition": f'attachment; filename="{filename}"'}
    return StreamingHttpResponse(stream_slices(slices), content_type="text/csv; charset=utf-8", headers=headers)


def unescape(cell: str) -> str:
    """The original text of a cell that `csv_lines` escaped."""
    return ESCAPED.sub("", cell)


def _escape(cell: object) -> object:
    """Put an apostrophe where a spreadsheet would begin a formula, so that it is shown as text.

    A formula after apostrophes gets one more apostrophe, so that `unescape` is exact.
    """
    return FORMULA.sub("'", cell) if isinstance(cell, str) else cell
