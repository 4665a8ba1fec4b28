"""A transcript a page at a time, from its newest end: events, op-messages and files in one line."""

import heapq
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Self

from django.db.models import QuerySet

from agents.models import Event, File, OpMessage
from agents.transcript.reading import Moment

FARTHEST = 10**18 - 1  # 18 digits, as the pattern takes
_CURSOR = re.compile(r"(\d{1,18})-(\d{1,18})-(\d{1,18})\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Before:
    """Where a page ends: the ids of the oldest event, op-message and file that are newer than it."""

    event: int = FARTHEST
    op_message: int = FARTHEST
    file: int = FARTHEST

    @classmethod
    def read(cls, text: str) -> Self:
        """What `str` made; the newest end for anything else."""
        found = _CURSOR.match(text)
        return cls(*map(int, found.groups())) if found else cls()

    def __str__(self) -> str:
        return f"{self.event}-{self.op_message}-{self.file}"


@dataclass(frozen=True, slots=True)
class Page:
    """Moments, oldest first, and where the page before them ends; None when there is none."""

    moments: Sequence[Moment]
    before: Before | None


def history(session_id: int, before: Before, limit: int) -> Page:
    """The newest moments before a cursor: three reads along an index, of at most `limit` + 1 rows each.

    Each kind keeps the order of its ids, which may be a little out of step with time: none is left out.
    """
    events = Event.objects.filter(session_id=session_id, pk__lt=before.event)
    messages = OpMessage.objects.filter(session_id=session_id, pk__lt=before.op_message).select_related("author")
    files = File.objects.filter(session_id=session_id, pk__lt=before.file).select_related("uploader")
    newest = heapq.merge(
        (Moment(one.ts, one) for one in _newest(events, limit)),
        (Moment(one.ts, one) for one in _newest(messages, limit)),
        (Moment(one.uploaded_at, one, "uploaded") for one in _newest(files, limit)),
        key=lambda moment: moment.ts,
        reverse=True,
    )
    shown = list(islice(newest, limit))
    has_more = next(newest, None) is not None
    return Page(shown[::-1], _before(shown, before) if has_more else None)


def _newest(rows: QuerySet[Any, Any], limit: int) -> Iterator[Any]:
    return iter(rows.order_by("-pk")[: limit + 1])


def _before(shown: Sequence[Moment], before: Before) -> Before:
    last = {type(moment.row): moment.row.pk for moment in shown}  # newest first: the oldest stays
    return Before(
        event=last.get(Event, before.event),
        op_message=last.get(OpMessage, before.op_message),
        file=last.get(File, before.file),
    )
