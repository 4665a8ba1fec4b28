"""What happened in a session, and what its operators said about it."""

from typing import Any
from uuid import UUID

import msgspec
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.views import APIView

from agents.api.cursors import CursorPage, CursorQuery, cursor_page
from agents.api.visible import get_session
from agents.models import Event, OpMessage
from kit.describe import Time, Uuid
from kit.iso import iso


class ApiEvent(msgspec.Struct, frozen=True, rename="camel"):
    """One thing that happened in a session. `payload` is an object of any members."""

    id: int
    session_id: Uuid
    kind: str
    type: str
    payload: msgspec.Raw
    ts: Time


class ApiOpMessage(msgspec.Struct, frozen=True, rename="camel"):
    """What one operator told the others; `mentions` are logins."""

    id: int
    session_id: Uuid
    author_login: str
    text: str
    mentions: list[str]
    ts: Time
    edited_at: Time | None = None
    deleted_at: Time | None = None


class EventQuery(CursorQuery):
    """Which events."""

    highest_limit = 1000

    limit = serializers.IntegerField(default=200, min_value=1)
    kind = serializers.ChoiceField(required=False, choices=Event.Kind.choices)
    type = serializers.CharField(required=False, max_length=64)


class OpMessageQuery(CursorQuery):
    """Which messages."""

    highest_limit = 500

    limit = serializers.IntegerField(default=100, min_value=1)


class Events(APIView):
    """`/sessions/{id}/events`"""

    @extend_schema(parameters=[EventQuery], responses=CursorPage[ApiEvent])
    def get(self, request: Request, public_id: UUID) -> HttpResponse:
        """Events of a session."""
        session = get_session(request, public_id)
        query = checked(EventQuery, request)
        rows = Event.objects.filter(session=session)
        for field in query.validated_data.keys() & {"kind", "type"}:
            rows = rows.filter(**{field: query.validated_data[field]})
        return cursor_page(rows, query.window, lambda event: show_event(event, str(public_id)))


class OpMessages(APIView):
    """`/sessions/{id}/op-messages`"""

    @extend_schema(parameters=[OpMessageQuery], responses=CursorPage[ApiOpMessage])
    def get(self, request: Request, public_id: UUID) -> HttpResponse:
        """Messages among the operators of a session."""
        session = get_session(request, public_id)
        rows = OpMessage.objects.filter(session=session).select_related("author")
        window = checked(OpMessageQuery, request).window
        return cursor_page(rows, window, lambda message: show_op_message(message, str(public_id)))


def checked(query_class: type[CursorQuery], request: Request) -> Any:
    """The checked query string of a request, with its window."""
    query = query_class(data=request.query_params)
    query.is_valid(raise_exception=True)
    return query


def show_event(event: Event, session_id: str) -> ApiEvent:
    """One Event."""
    return ApiEvent(event.pk, session_id, event.kind, event.type, payload_of(event), iso(event.ts))


def show_op_message(message: OpMessage, session_id: str) -> ApiOpMessage:
    """One OpMessage."""
    author = message.author.login
    return ApiOpMessage(message.pk, session_id, author, message.text, message.mentions, iso(message.ts))


def payload_of(event: Event) -> msgspec.Raw:
    """The stored text, to be written as it is."""
    return msgspec.Raw(event.payload.encode())
