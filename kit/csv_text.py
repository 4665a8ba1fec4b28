"""Lines of CSV files that spreadsheets open: no text in them runs as a formula."""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence

from django.http import StreamingHttpResponse

from kit.async_db import stream_slices

FORMULA = re.compile(r"'*[=+\-@\t\r]")
ESCAPED = re.compile(r"'+[=+\-@\t\r]")


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
    return cell[1:] if ESCAPED.match(cell) else cell


def _escape(cell: object) -> object:
    """Put an apostrophe before a text that a spreadsheet would run as a formula, so that it is shown as text.

    A formula after apostrophes gets one more apostrophe, so that `unescape` is exact.
    """
    return f"'{cell}" if isinstance(cell, str) and FORMULA.match(cell) else cell
