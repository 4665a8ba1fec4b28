"""Asks as a spreadsheet that harms nobody who opens it."""

import csv
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence

from django.db.models import QuerySet
from django.http import StreamingHttpResponse

from agents.models import Turn
from agents.reasons import in_words
from kit.async_db import db_call
from kit.iso import iso

ROWS_AT_ONCE = 500
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


def csv_of(turns: QuerySet[Turn], filename: str) -> StreamingHttpResponse:
    """These turns as a file to keep, newest first, sent as they are read. `filename` is plain ASCII."""
    headers = {"Content-Disposition": f'attachment; filename="{filename}"'}
    rows = turns.select_related("agent", "session", "caller").order_by("-pk")
    return StreamingHttpResponse(_csv(rows), content_type="text/csv; charset=utf-8", headers=headers)


async def _csv(turns: QuerySet[Turn]) -> AsyncIterator[str]:
    """The lines, a batch at a time: the loop never waits for the database, memory holds one batch."""
    yield "".join(_lines([COLUMNS]))
    last: int | None = None
    while batch := await db_call(_older)(turns, last):
        yield "".join(_lines(map(_cells, batch)))
        last = batch[-1].pk


def _older(turns: QuerySet[Turn], than: int | None) -> list[Turn]:
    rows = turns if than is None else turns.filter(pk__lt=than)
    return list(rows[:ROWS_AT_ONCE])


def _cells(turn: Turn) -> Sequence[object]:
    caller = turn.caller.login if turn.caller else "(public)"
    return (
        *(iso(turn.asked_at), turn.asked, caller, turn.surface, turn.outcome or "open", turn.reason),
        *(in_words(turn.reason), turn.latency_ms, turn.repeats, turn.chat_id, turn.question),
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
