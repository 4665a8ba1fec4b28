"""Sessions of all owners, and what happened in one, for the staff of the hub."""

import uuid
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypedDict

import msgspec
from django.db.models import Count, Q
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.audit_log import record_reading
from accounts.paging import page, read_query
from accounts.rest import caller_of, get_one
from agents.api.admin_lists import FIFTY, SearchQuery, StaffView
from agents.api.permissions import ApiPermission
from agents.models import Agent, Event, PermissionRequest, Session, Share
from agents.models.session import SEEN_AT, online_sessions
from kit.clock import iso
from kit.describe import Page, Time, Uuid
from kit.ids import read_uuid
from kit.rows import Source, show

MOST = 200


class ListedSession(TypedDict):
    """A session of any user. `managedByMachineId` is for clients that look for it."""

    id: Annotated[Uuid, Source("public_id")]
    ownerLogin: Annotated[str, Source("owner.login")]
    routingName: Annotated[str | None, Source("shown_name")]
    cwd: str | None
    host: str | None
    startedAt: Time
    lastSeenAt: Annotated[Time, Source("seen_at")]
    archivedAt: Time | None
    managedByMachineId: None
    connected: bool
    shareCount: int
    agentHandle: str | None


class TimelineEntry(TypedDict):
    """An event, or a permission request as it stands now."""

    kind: Literal["event", "permission"]
    ts: Time
    data: dict[str, Any]


class ListedTimeline(TypedDict):
    """The newest part of a session's history, oldest first."""

    items: list[TimelineEntry]
    sessionId: Annotated[Uuid, Source("public_id")]
    sessionRoute: Annotated[str | None, Source("shown_name")]
    ownerLogin: Annotated[str, Source("owner.login")]


class TimelineQuery(serializers.Serializer[Any]):
    """How far to look back."""

    limit = serializers.IntegerField(default=50, min_value=1)


class AdminSessions(StaffView):
    """`/admin/sessions`"""

    @extend_schema(parameters=[SearchQuery, FIFTY], responses=Page[ListedSession])
    def get(self, request: Request) -> Response:
        """Sessions of all users, newest first; `q` in id, name, owner, host or folder."""
        text = read_query(SearchQuery, request)["q"]
        found = _matching(text) if text else Session.objects.all()
        listed = found.annotate(seen_at=SEEN_AT).select_related("owner").order_by("-pk")
        return page(request, listed, show_sessions, FIFTY, most=MOST)


class AdminSession(StaffView):
    """`/admin/sessions/{id}`"""

    @extend_schema(responses=ListedSession)
    def get(self, request: Request, public_id: uuid.UUID) -> Response:
        """One of them."""
        return Response(show_sessions([_get_session(public_id)])[0])


class AdminTimeline(StaffView):
    """`/admin/sessions/{id}/timeline`"""

    @extend_schema(parameters=[TimelineQuery], responses=ListedTimeline)
    def get(self, request: Request, public_id: uuid.UUID) -> Response:
        """Its newest events and permission requests, oldest first."""
        limit = min(read_query(TimelineQuery, request)["limit"], MOST)
        session = _get_session(public_id)
        record_reading(caller_of(request), Session, "its timeline", session)
        events = Event.objects.filter(session=session).order_by("-pk")[:limit]
        requests = PermissionRequest.objects.filter(session=session).select_related("resolver")
        newest = [*map(_show_event, events), *map(_show_permission, requests.order_by("-pk")[:limit])]
        newest.reverse()  # and sorting keeps what is of one moment in order
        items = sorted(newest, key=lambda item: str(item["ts"]))[-limit:]
        return Response(show(ListedTimeline, session, items=items))


def show_sessions(sessions: Sequence[Session]) -> list[ListedSession]:
    """Rows with their owner and `seen_at` loaded, whatever their number in the same few queries."""
    ids = [session.pk for session in sessions]
    online = online_sessions(ids)
    shares = Share.objects.filter(session_id__in=ids).values("session_id").annotate(count=Count("pk"))
    counts = {row["session_id"]: row["count"] for row in shares}
    handles = dict(Agent.objects.published().filter(session_id__in=ids).values_list("session_id", "handle"))
    return [
        show(
            ListedSession,
            one,
            managedByMachineId=None,
            connected=session_id in online,
            shareCount=counts.get(session_id, 0),
            agentHandle=handles.get(session_id),
        )
        for session_id, one in zip(ids, sessions, strict=True)
    ]


def _matching(text: str) -> Any:
    name = text.removeprefix("@")
    found = Q(routing_name__icontains=name) | Q(owner__login__icontains=name)
    found |= Q(host__icontains=text) | Q(cwd__icontains=text)
    if public_id := read_uuid(text):
        found |= Q(public_id=public_id)
    return Session.objects.filter(found)


def _get_session(public_id: uuid.UUID) -> Session:
    sessions = Session.objects.annotate(seen_at=SEEN_AT).select_related("owner")
    return get_one(sessions.filter(public_id=public_id), "no such session")


def _show_event(event: Event) -> TimelineEntry:
    data = {"id": event.pk, "kind": event.kind, "type": event.type, "payload": _read(event.payload)}
    return {"kind": "event", "ts": iso(event.ts), "data": data}


def _show_permission(asked: PermissionRequest) -> TimelineEntry:
    data: dict[str, Any] = {**show(ApiPermission, asked)}
    return {"kind": "permission", "ts": data.pop("requestedAt"), "data": data}


def _read(payload: str) -> Any:
    """The payload as JSON; one that is not valid JSON, as the stored text."""
    try:
        return msgspec.json.decode(payload)
    except (msgspec.DecodeError, RecursionError):
        return {"text": payload}
