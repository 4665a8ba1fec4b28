"""Reads a transcript: one kind by cursor, all kinds merged by time, and page by page from its newest end."""

import heapq
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Literal, Self, TypeVar

from django.db.models import Model, QuerySet

from agents.models import Event, File, OpMessage, PermissionRequest, Turn

Row = TypeVar("Row", bound=Model)
Kind = Literal["event", "op-message", "file"]
Action = Literal["uploaded", "deleted"]
KINDS: Mapping[Kind, type[Model]] = {"event": Event, "op-message": OpMessage, "file": File}


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineWindow:
    """The rows to read: the rows after one id, the rows just before one id, or the newest.

    At most one of the two cursors is given.
    """

    limit: int
    after: int | None = None
    before: int | None = None


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """A row of a timeline. `action`: what happened to a file."""

    ts: datetime
    row: Event | OpMessage | File | PermissionRequest
    action: Action | None = None


def read(rows: QuerySet[Row, Any], window: TimelineWindow) -> tuple[list[Row], bool]:
    """A window of rows, ascending by id; and True if more rows lie beyond it in the direction of the read."""
    if window.after is not None:
        found = list(rows.filter(pk__gt=window.after).order_by("pk")[: window.limit + 1])
        return found[: window.limit], len(found) > window.limit
    if window.before is not None:
        rows = rows.filter(pk__lt=window.before)
    found = list(rows.order_by("-pk")[: window.limit + 1])
    return found[: window.limit][::-1], len(found) > window.limit


def timeline(session_id: int, kinds: Collection[Kind], limit: int) -> list[TimelineRow]:
    """The newest moments of a session, oldest first: at most `limit` rows are read of each kind."""
    found: list[TimelineRow] = []
    for name, kind in KINDS.items():
        if name in kinds:
            newest = _rows(kind, session_id).order_by("-pk")[:limit]
            found += reversed(list(_moments(kind, newest)))
    if "file" in kinds:
        deleted = _rows(File, session_id).filter(deleted_at__isnull=False).order_by("-deleted_at", "-pk")
        found += [TimelineRow(file.deleted_at or file.uploaded_at, file, "deleted") for file in deleted[:limit]]
    return sorted(found, key=lambda moment: moment.ts)[-limit:]


FARTHEST = 10**18 - 1  # 18 digits, as the pattern takes
_CURSOR = re.compile(r"(\d{1,18})-(\d{1,18})-(\d{1,18})-(\d{1,18})\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Position:
    """A position between two moments: for each kind, the id of the first row that comes after the position."""

    event: int = FARTHEST
    op_message: int = FARTHEST
    file: int = FARTHEST
    permission: int = FARTHEST

    @classmethod
    def read(cls, text: str) -> Self:
        """The position that `str` wrote; the newest end for any other text."""
        found = _CURSOR.match(text)
        return cls(*map(int, found.groups())) if found else cls()

    def __str__(self) -> str:
        return f"{self.event}-{self.op_message}-{self.file}-{self.permission}"


NEWEST = Position()
AROUND = timedelta(minutes=1)  # the clocks that wrote a turn and its question may differ by this
_FIELDS: dict[type[Model], str] = {
    Event: "event",
    OpMessage: "op_message",
    File: "file",
    PermissionRequest: "permission",
}
_TIMES: dict[type[Model], str] = {
    Event: "ts",
    OpMessage: "ts",
    File: "uploaded_at",
    PermissionRequest: "requested_at",
}
_AUTHORS: dict[type[Model], str] = {OpMessage: "author", File: "uploader", PermissionRequest: "resolver"}


@dataclass(frozen=True, slots=True)
class TimelinePage:
    """Moments, oldest first, and the positions where the page before ends and the page after begins; None: no such
    page.
    """

    moments: Sequence[TimelineRow]
    before: Position | None
    after: Position | None = None


def read_history(session_id: int, before: Position, limit: int) -> TimelinePage:
    """The newest moments before a position: four reads of at most `limit` + 1 rows each.

    The rows of each kind keep the order of their ids, which may differ a little from that of time, so that none is
    left out.
    """
    shown, has_more = _merge(session_id, "lt", before, limit)
    firsts = {type(moment.row): moment.row.pk for moment in shown}  # newest first: the oldest stays
    after = None if before == NEWEST else before
    return TimelinePage(shown[::-1], _moved(before, firsts) if has_more else None, after)


def read_history_from(session_id: int, start: Position, limit: int) -> TimelinePage:
    """The oldest moments after a position; there may be older ones."""
    shown, has_more = _merge(session_id, "gte", start, limit)
    nexts = {type(moment.row): moment.row.pk + 1 for moment in shown}
    return TimelinePage(shown, start, _moved(start, nexts) if has_more else None)


def find_turn_position(turn: Turn) -> Position | None:
    """Just before a turn's question in the transcript of its session; None when the turn is gone."""
    chat = Event.objects.filter(session=turn.session_id, kind=Event.Kind.CHAT, type="prompt")
    asked = chat.filter(ts__gte=turn.asked_at - AROUND, payload__contains=f'"{turn.chat_id}"')
    event = asked.order_by("pk").first()
    if event is None:
        return None
    others = {
        kind: _next_pk(_rows(kind, turn.session_id), event.ts) for kind in (OpMessage, File, PermissionRequest)
    }
    return _moved(NEWEST, {**others, Event: event.pk})


def _merge(
    session_id: int, side: Literal["lt", "gte"], position: Position, limit: int
) -> tuple[list[TimelineRow], bool]:
    """The moments nearest to a position on one side of it, nearest first, and whether there are more."""
    back = side == "lt"
    kinds = []
    for kind, name in _FIELDS.items():
        rows = _rows(kind, session_id).filter(**{f"pk__{side}": getattr(position, name)})
        kinds.append(_moments(kind, rows.order_by("-pk" if back else "pk")[: limit + 1]))
    merged = heapq.merge(*kinds, key=lambda moment: moment.ts, reverse=back)
    return list(islice(merged, limit)), next(merged, None) is not None


def _rows(kind: type[Model], session_id: int) -> QuerySet[Any, Any]:
    rows = kind._default_manager.filter(session_id=session_id)
    return rows.select_related(_AUTHORS[kind]) if kind in _AUTHORS else rows


def _moments(kind: type[Model], rows: QuerySet[Any, Any]) -> Iterator[TimelineRow]:
    for row in rows:
        yield TimelineRow(getattr(row, _TIMES[kind]), row, "uploaded" if kind is File else None)


def _moved(position: Position, ids: Mapping[Any, int]) -> Position:
    return replace(position, **{_FIELDS[kind]: pk for kind, pk in ids.items()})


def _next_pk(rows: QuerySet[Any, Any], moment: datetime) -> int:
    """The id after the last row from before a moment."""
    kind = rows.model
    last = rows.filter(**{f"{_TIMES[kind]}__lt": moment}).order_by("-pk").values_list("pk", flat=True).first()
    return 0 if last is None else last + 1
