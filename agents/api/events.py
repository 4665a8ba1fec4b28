"""REST views of a session's events and operators' messages: by cursor, or with its files as one timeline."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar
from uuid import UUID

import msgspec
from django.db.models import Model, QuerySet
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.views import APIView

from accounts.paging import read_query
from agents.api.sessions import get_session
from agents.models import Event, File, OpMessage
from agents.transcript.announcements import SeenEvent
from agents.transcript.timeline import KINDS, Action, TimelineRow, TimelineWindow, read, timeline
from kit.clock import iso
from kit.describe import Time, Uuid

Row = TypeVar("Row", bound=Model)
Shown = TypeVar("Shown")
MAX_ID = 2**63 - 1


class CursorPage(msgspec.Struct, Generic[Shown], frozen=True, rename="camel"):
    """A window of a list, ascending by id. `firstId` is the next `before`, `lastId` the next `after`."""

    items: list[Shown]
    first_id: int | None
    last_id: int | None
    has_more: bool


class CursorQuery(serializers.Serializer[Any]):
    """The part of the list to show."""

    after = serializers.IntegerField(required=False, min_value=0, max_value=MAX_ID)
    before = serializers.IntegerField(required=False, min_value=0, max_value=MAX_ID)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse `after` together with `before`."""
        if "after" in attrs and "before" in attrs:
            raise serializers.ValidationError("give after or before, not both")
        return attrs


def cursor_page(
    rows: QuerySet[Row, Any], query: dict[str, Any], most: int, show: Callable[[Row], Shown]
) -> HttpResponse:
    """A response with the rows that a `CursorQuery` asks for, at most `most`."""
    window = TimelineWindow(limit=min(query["limit"], most), after=query.get("after"), before=query.get("before"))
    found, has_more = read(rows, window)
    first, last = (found[0].pk, found[-1].pk) if found else (None, None)
    return json_answer(CursorPage([show(row) for row in found], first, last, has_more))


def json_answer(body: msgspec.Struct) -> HttpResponse:
    """A JSON response that msgspec encodes: a stored payload is sent unchanged."""
    return HttpResponse(msgspec.json.encode(body), content_type="application/json")


class ApiEvent(msgspec.Struct, frozen=True, rename="camel"):
    """One thing that happened in a session. `payload` is an object of any members."""

    id: int
    session_id: Uuid
    kind: str
    type: str
    payload: msgspec.Raw
    ts: Time


class ApiOpMessage(msgspec.Struct, frozen=True, rename="camel"):
    """A message of one operator to the others; `mentions` are logins."""

    id: int
    session_id: Uuid
    author_login: str
    text: str
    mentions: list[str]
    ts: Time
    edited_at: Time | None = None
    deleted_at: Time | None = None


class EventQuery(CursorQuery):
    """The events to show."""

    limit = serializers.IntegerField(default=200, min_value=1)
    kind = serializers.ChoiceField(required=False, choices=Event.Kind.choices)
    type = serializers.CharField(required=False, max_length=64)


class OpMessageQuery(CursorQuery):
    """The messages to show."""

    limit = serializers.IntegerField(default=100, min_value=1)


class Events(APIView):
    """`/sessions/{id}/events`"""

    @extend_schema(parameters=[EventQuery], responses=CursorPage[ApiEvent])
    def get(self, request: Request, public_id: UUID) -> HttpResponse:
        """Events of a session."""
        session = get_session(request, public_id)
        query = read_query(EventQuery, request)
        named = {field: query[field] for field in query.keys() & {"kind", "type"}}
        rows = Event.objects.filter(session=session, **named)
        return cursor_page(rows, query, 1000, lambda event: show_event(event, str(public_id)))


class OpMessages(APIView):
    """`/sessions/{id}/op-messages`"""

    @extend_schema(parameters=[OpMessageQuery], responses=CursorPage[ApiOpMessage])
    def get(self, request: Request, public_id: UUID) -> HttpResponse:
        """Messages among the operators of a session."""
        session = get_session(request, public_id)
        rows = OpMessage.objects.filter(session=session).select_related("author")
        query = read_query(OpMessageQuery, request)
        return cursor_page(rows, query, 500, lambda message: show_op_message(message, str(public_id)))


def show_event(event: Event, session_id: str) -> ApiEvent:
    """An event as REST shows it."""
    return ApiEvent(event.pk, session_id, event.kind, event.type, payload_of(event), iso(event.ts))


def show_op_message(message: OpMessage, session_id: str) -> ApiOpMessage:
    """A message of an operator as REST shows it."""
    author = message.author.login
    return ApiOpMessage(message.pk, session_id, author, message.text, message.mentions, iso(message.ts))


def payload_of(event: Event) -> msgspec.Raw:
    """The stored text of a payload, which is sent unchanged."""
    return msgspec.Raw(event.payload.encode())


HIGHEST_LIMIT = 5000


class TimelineItem(msgspec.Struct, frozen=True, rename="camel", tag_field="kind"):
    """One item; `id` is that of its row among its kind."""

    id: int
    ts: Time


class TimelineEvent(TimelineItem, frozen=True, tag="event"):
    """Something happened."""

    event: SeenEvent


class TimelineOpMessage(TimelineItem, frozen=True, tag="op-message"):
    """An operator wrote to the others."""

    author_login: str
    text: str
    mentions: list[str]


class TimelineFileInfo(msgspec.Struct, frozen=True, rename="camel"):
    """A file, in short."""

    id: int
    filename: str
    size: int
    mime: str
    uploader_login: str


class TimelineFile(TimelineItem, frozen=True, tag="file"):
    """A file was added or deleted."""

    action: Action
    file: TimelineFileInfo


class Timeline(msgspec.Struct, frozen=True):
    """The newest items, oldest first."""

    items: list[TimelineEvent | TimelineOpMessage | TimelineFile]


class TimelineQuery(serializers.Serializer[Any]):
    """The number of items, and their kinds: `kinds` are names of kinds, separated by commas."""

    limit = serializers.IntegerField(default=50, min_value=1)
    kinds = serializers.CharField(default="", allow_blank=True, max_length=100)

    def validate_kinds(self, value: str) -> list[str]:
        """The named kinds of items; all kinds if none is named."""
        named = [kind for kind in (part.strip() for part in value.split(",")) if kind]
        if unknown := sorted(set(named) - set(KINDS)):
            raise serializers.ValidationError(f"no such kind: {unknown[0]}; want {', '.join(KINDS)}")
        return named or list(KINDS)


class SessionTimeline(APIView):
    """`/sessions/{id}/timeline`"""

    @extend_schema(parameters=[TimelineQuery], responses=Timeline)
    def get(self, request: Request, public_id: UUID) -> HttpResponse:
        """The newest of what happened in a session, oldest first."""
        session = get_session(request, public_id)
        query = read_query(TimelineQuery, request)
        moments = timeline(session.pk, query["kinds"], min(query["limit"], HIGHEST_LIMIT))
        return json_answer(Timeline([show_moment(moment) for moment in moments]))


def show_moment(moment: TimelineRow) -> TimelineEvent | TimelineOpMessage | TimelineFile:
    """A moment of the timeline as REST shows it."""
    row, ts = moment.row, iso(moment.ts)
    match row:
        case Event():
            return TimelineEvent(row.pk, ts, SeenEvent(row.kind, row.type, payload_of(row), ts))
        case OpMessage():
            return TimelineOpMessage(row.pk, ts, row.author.login, row.text, row.mentions)
        case File():
            shown = TimelineFileInfo(row.pk, row.filename, row.size, row.mime, row.uploader.login)
            return TimelineFile(row.pk, ts, moment.action or "uploaded", shown)
        case _:
            raise TypeError(f"{KINDS} are the kinds of a timeline, not {type(row).__name__}")
