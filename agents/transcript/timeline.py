"""Reading a transcript: by cursor, all kinds in one line, and page by page from its newest end."""

import heapq
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Literal, Self, TypeVar

from django.db.models import Model, QuerySet

from agents.models import Event, File, OpMessage

Row = TypeVar("Row", bound=Model)
Kind = Literal["event", "op-message", "file"]
Action = Literal["uploaded", "deleted"]
KINDS: tuple[Kind, ...] = ("event", "op-message", "file")


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Which rows, by their ids: those after one, those just before one, or the newest. Never both cursors."""

    limit: int
    after: int | None = None
    before: int | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """One item of a timeline. `action`: what happened to a file."""

    ts: datetime
    row: Event | OpMessage | File
    action: Action | None = None


def read(rows: QuerySet[Row, Any], window: Window) -> tuple[list[Row], bool]:
    """A window of rows, ascending by id, and whether more lie beyond it, the way it was read."""
    if window.after is not None:
        found = list(rows.filter(pk__gt=window.after).order_by("pk")[: window.limit + 1])
        return found[: window.limit], len(found) > window.limit
    if window.before is not None:
        rows = rows.filter(pk__lt=window.before)
    found = list(rows.order_by("-pk")[: window.limit + 1])
    return found[: window.limit][::-1], len(found) > window.limit


def timeline(session_id: int, kinds: Collection[Kind], limit: int) -> list[Moment]:
    """The newest moments of a session, oldest first: at most `limit` rows are read of each kind."""
    found: list[Moment] = []
    if "event" in kinds:
        found += [Moment(event.ts, event) for event in _newest(Event.objects.filter(session_id=session_id), limit)]
    if "op-message" in kinds:
        messages = OpMessage.objects.filter(session_id=session_id).select_related("author")
        found += [Moment(message.ts, message) for message in _newest(messages, limit)]
    if "file" in kinds:
        found += _moments_of_files(session_id, limit)
    return sorted(found, key=lambda moment: moment.ts)[-limit:]


def _newest(rows: QuerySet[Row, Any], limit: int) -> list[Row]:
    return list(rows.order_by("-pk")[:limit])[::-1]


def _moments_of_files(session_id: int, limit: int) -> Iterator[Moment]:
    files = File.objects.filter(session_id=session_id).select_related("uploader")
    for file in _newest(files, limit):
        yield Moment(file.uploaded_at, file, "uploaded")
    for file in files.filter(deleted_at__isnull=False).order_by("-deleted_at", "-pk")[:limit]:
        yield Moment(file.deleted_at or file.uploaded_at, file, "deleted")


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
        (Moment(one.ts, one) for one in _iterate(events, limit)),
        (Moment(one.ts, one) for one in _iterate(messages, limit)),
        (Moment(one.uploaded_at, one, "uploaded") for one in _iterate(files, limit)),
        key=lambda moment: moment.ts,
        reverse=True,
    )
    shown = list(islice(newest, limit))
    has_more = next(newest, None) is not None
    return Page(shown[::-1], _before(shown, before) if has_more else None)


def _iterate(rows: QuerySet[Any, Any], limit: int) -> Iterator[Any]:
    return iter(rows.order_by("-pk")[: limit + 1])


def _before(shown: Sequence[Moment], before: Before) -> Before:
    last = {type(moment.row): moment.row.pk for moment in shown}  # newest first: the oldest stays
    return Before(
        event=last.get(Event, before.event),
        op_message=last.get(OpMessage, before.op_message),
        file=last.get(File, before.file),
    )
