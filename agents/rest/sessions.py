"""The caller's running and past agents, published or not."""

import uuid
from collections.abc import Sequence
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.rest import caller_of
from agents.directory import online_sessions
from agents.models import Agent, Session
from agents.rest.paging import PageQuery, page, read_query
from agents.rest.serializers import routing_name
from agents.rest.shapes import ApiSession
from kit.describe import Page
from kit.iso import iso, iso_or_none


class SessionQuery(serializers.Serializer[Any]):
    """Which sessions to list."""

    connected = serializers.BooleanField(default=False)
    archived = serializers.BooleanField(default=False)


class Sessions(APIView):
    """`/sessions`"""

    @extend_schema(parameters=[SessionQuery, PageQuery], responses=Page[ApiSession])
    def get(self, request: Request) -> Response:
        """The caller's sessions, last seen first; archived ones only when asked for."""
        query = read_query(SessionQuery, request)
        found = Session.objects.owned_by(caller_of(request)).select_related("owner")
        if not query["archived"]:
            found = found.kept()
        if query["connected"]:
            found = found.filter(pk__in=online_sessions(found.values_list("pk", flat=True)))
        return page(request, found.order_by("-last_seen_at", "-pk"), show_sessions)


class OneSession(APIView):
    """`/sessions/{id}`"""

    @extend_schema(responses=ApiSession)
    def get(self, request: Request, public_id: uuid.UUID) -> Response:
        """One session of the caller's; others' and absent ones are the same 404."""
        own = Session.objects.owned_by(caller_of(request)).select_related("owner")
        session = own.filter(public_id=public_id).first()
        if session is None:
            raise NotFound("no such session")
        return Response(show_sessions([session])[0])


def show_sessions(sessions: Sequence[Session]) -> list[ApiSession]:
    """ApiSessions, whatever their number in the same two queries; the owner comes with the rows."""
    ids = [session.pk for session in sessions]
    online = online_sessions(ids)
    published = Agent.objects.published().filter(session_id__in=ids)
    handles = dict(published.values_list("session_id", "handle"))
    return [_show(session, session.pk in online, handles.get(session.pk)) for session in sessions]


def _show(session: Session, is_online: bool, handle: str | None) -> ApiSession:
    return {
        "id": str(session.public_id),
        "routingName": routing_name(session),
        "startedByLogin": session.owner.login,
        "role": "owner",
        "host": session.host or None,
        "cwd": session.cwd or None,
        "channelVersion": session.channel_version or None,
        "startedAt": iso(session.started_at),
        "lastSeenAt": iso(session.last_seen_at),
        "archivedAt": iso_or_none(session.archived_at),
        "connected": is_online,
        "agentHandle": handle,
        "managedBy": None,
        "autoStart": False,
        "autoEnter": False,
        "extraFlags": [],
        "preserveSessionId": False,
    }
