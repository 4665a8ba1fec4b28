"""Asks as a CSV file; no cell of it is read as a formula by a spreadsheet."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from django.db.models import QuerySet
from django.db.models.functions import Length
from django.http import StreamingHttpResponse

from accounts.models import User
from agents.core.errors import describe_reason
from agents.models import Turn
from kit.async_db import stream_slices
from kit.clock import iso
from kit.concurrency import DOWNLOADS, take_slot

ROWS_AT_ONCE = 500
SLICE_CHARS = 256 * 1024
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
COLUMNS = (
    "asked_at",
    "agent",
    "caller",
    "surface",
    "outcome",
    "reason",
    "why",
    "latency_ms",
    "repeats",
    "chat_id",
    "question",
)


def csv_of(request: Any, turns: QuerySet[Turn], filename: str) -> StreamingHttpResponse:
    """These turns as a file to keep, newest first, sent as they are read. `filename` is plain ASCII.

    Raises:
        TooManyAtOnce: the caller, or the process, has as many downloads under way as it may.
    """
    take_slot(request, DOWNLOADS, cast(User, request.user).pk)
    headers = {"Content-Disposition": f'attachment; filename="{filename}"'}
    rows = turns.select_related("agent", "session", "caller").order_by("-pk")
    return StreamingHttpResponse(
        stream_slices(_csv(rows)), content_type="text/csv; charset=utf-8", headers=headers
    )


def _csv(turns: QuerySet[Turn]) -> Iterator[str]:
    """The lines, joined to slices. Long questions are read a few rows at a time."""
    yield "".join(_lines([COLUMNS]))
    last: int | None = None
    while sizes := _sizes_of_older(turns, last):
        keys: list[int] = []
        held = 0
        for last, size in sizes:
            keys.append(last)
            held += size
            if held >= SLICE_CHARS:
                yield _joined(turns, keys)
                keys, held = [], 0
        if keys:
            yield _joined(turns, keys)


def _sizes_of_older(turns: QuerySet[Turn], than: int | None) -> list[tuple[int, int]]:
    """The keys of the next rows, and how long their questions are."""
    rows = turns if than is None else turns.filter(pk__lt=than)
    return list(rows.values_list("pk", Length("question"))[:ROWS_AT_ONCE])


def _joined(turns: QuerySet[Turn], keys: Sequence[int]) -> str:
    """Rows as lines, without those that were deleted meanwhile."""
    return "".join(_lines(map(_cells, turns.filter(pk__in=keys))))


def _cells(turn: Turn) -> Sequence[object]:
    caller = turn.caller.login if turn.caller else "(public)"
    return (
        *(iso(turn.asked_at), turn.asked, caller, turn.surface, turn.outcome or "open", turn.reason),
        *(describe_reason(turn.reason), turn.latency_ms, turn.repeats, turn.chat_id, turn.question),
    )


class _Line:
    """What csv writes to: it keeps nothing and hands the line back."""

    def write(self, line: str) -> str:
        return line


def _lines(rows: Iterable[Sequence[object]]) -> Iterator[str]:
    writer = csv.writer(_Line())
    for row in rows:
        yield writer.writerow([_harmless(cell) for cell in row])


def _harmless(cell: object) -> object:
    """A spreadsheet runs a text that starts like a formula; an apostrophe before it makes it text."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA_STARTS) else cell
