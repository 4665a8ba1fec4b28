"""Events, op-messages and files of a session in one line."""

from typing import Any
from uuid import UUID

import msgspec
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.views import APIView

from agents.api.cursors import json_answer
from agents.api.events import payload_of
from agents.api.paging import read_query
from agents.api.visible import get_session
from agents.models import Event, File, OpMessage
from agents.transcript.live import SeenEvent
from agents.transcript.reading import KINDS, Action, Moment, timeline
from kit.describe import Time
from kit.iso import iso

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
    """A file came, or went."""

    action: Action
    file: TimelineFileInfo


class Timeline(msgspec.Struct, frozen=True):
    """The newest items, oldest first."""

    items: list[TimelineEvent | TimelineOpMessage | TimelineFile]


class TimelineQuery(serializers.Serializer[Any]):
    """How much, and of what: `kinds` are names of kinds with commas between."""

    limit = serializers.IntegerField(default=50, min_value=1)
    kinds = serializers.CharField(default="", allow_blank=True, max_length=100)

    def validate_kinds(self, value: str) -> list[str]:
        """The kinds named; all when none is."""
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


def show_moment(moment: Moment) -> TimelineEvent | TimelineOpMessage | TimelineFile:
    """One TimelineItem."""
    row, ts = moment.row, iso(moment.ts)
    match row:
        case Event():
            return TimelineEvent(row.pk, ts, SeenEvent(row.kind, row.type, payload_of(row), ts))
        case OpMessage():
            return TimelineOpMessage(row.pk, ts, row.author.login, row.text, row.mentions)
        case File():
            shown = TimelineFileInfo(row.pk, row.filename, row.size, row.mime, row.uploader.login)
            return TimelineFile(row.pk, ts, moment.action or "uploaded", shown)
