"""The audit log (`accounts.audit_log`) as files of CSV and JSON lines, for a SIEM too."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from django.contrib.admin.models import LogEntry
from django.db.models import QuerySet
from django.http import StreamingHttpResponse

from accounts.audit_log import ListedAct, record_reading, show_act
from accounts.models import User
from kit.async_db import stream_slices
from kit.clock import db_now
from kit.concurrency import DOWNLOADS, take_slot
from kit.csv_text import csv_lines, csv_response

CSV, JSON_LINES = "csv", "jsonl"
FORMS = (CSV, JSON_LINES)
JSON_LINES_TYPE = "application/x-ndjson"
ROWS_AT_ONCE = 1000


def export_acts(request: Any, acts: QuerySet[LogEntry], form: str, reader: User) -> StreamingHttpResponse:
    """These acts as a file of one of the FORMS, newest first, streamed. The export is itself recorded.

    Raises:
        TooManyAtOnce: the reader, or the process, has as many downloads under way as it may.
    """
    take_slot(request, DOWNLOADS, reader.pk)
    newest = LogEntry.objects.order_by("-pk").first()
    acts = acts.filter(pk__lte=newest.pk if newest else 0)  # without the record of this export
    record_reading(reader, LogEntry, f"an export as {form}")
    filename = f"clawbridge-log-{db_now():%Y-%m-%d}.{form}"
    if form == CSV:
        response = csv_response(_slices_of_csv(acts), filename)
    else:
        headers = {"Content-Disposition": f'attachment; filename="{filename}"'}
        lines = stream_slices(_slices_of_lines(acts))
        response = StreamingHttpResponse(lines, content_type=JSON_LINES_TYPE, headers=headers)
    response["Cache-Control"] = "private, no-store"
    return response


def _slices_of_csv(acts: QuerySet[LogEntry]) -> Iterator[str]:
    yield "".join(csv_lines([list(ListedAct.__annotations__)]))
    for rows in _batches(acts):
        yield "".join(csv_lines([*one.values()] for one in rows))


def _slices_of_lines(acts: QuerySet[LogEntry]) -> Iterator[bytes]:
    for rows in _batches(acts):
        yield b"".join(msgspec.json.encode(one) + b"\n" for one in rows)


def _batches(acts: QuerySet[LogEntry]) -> Iterator[Iterable[ListedAct]]:
    """The acts in batches, newest first; each is one query, from where the batch before ended."""
    loaded = acts.select_related("user", "content_type").order_by("-pk")
    rows = list(loaded[:ROWS_AT_ONCE])
    while rows:
        yield [show_act(one) for one in rows]
        rows = list(loaded.filter(pk__lt=rows[-1].pk)[:ROWS_AT_ONCE])
