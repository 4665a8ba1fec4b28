"""Reading a transcript: by cursor, or the newest of everything in one line of time."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeVar

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
