"""The audit of frames of the caller's own team, newest first."""

from datetime import UTC, datetime
from typing import Any, Literal, TypedDict

from django.urls import path
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.paging import read_query
from accounts.rest import caller_of
from gateway.models import FrameRecord
from gateway.wire.frame_types import FRAME_TYPES, read_iso
from kit.describe import Items, Time
from kit.rows import show

MOST_LIVE, LIVE = 200, 50
MOST_PAST, PAST = 500, 100
FARTHEST = 100_000
MAX_NAME_CHARS = 160
LATEST_MS = 253_370_764_800_000  # the begin of the year 9999
YEARS = range(1970, 9999)  # so that it can be moved to any zone


class ApiFrame(TypedDict):
    """A frame of a client as the audit has it, without its content. `errorCode`: null when it was served.

    `destination`: an agent, `*` for all, `gateway`, or empty when it could not be read. `latencyMs`: until the
    gateway had served or refused it.
    """

    messageId: str | None
    at: Time
    source: str
    destination: str
    type: str
    outcome: Literal["served", "refused", "dropped", "failed"]
    errorCode: int | None
    bytes: int
    latencyMs: int
    sessionId: str | None


@extend_schema_field(str)
class InstantField(serializers.Field):  # type: ignore[type-arg]
    """A time as ISO 8601, or as Unix milliseconds."""

    def to_internal_value(self, data: Any) -> datetime:
        """As a datetime."""
        text = str(data)
        if text.isascii() and text.isdigit() and len(text) <= len(str(LATEST_MS)) and int(text) <= LATEST_MS:
            return datetime.fromtimestamp(int(text) / 1000, UTC)
        if (moment := read_iso(text)) is not None and moment.year in YEARS:
            return moment
        raise serializers.ValidationError("want a time as ISO 8601, or Unix milliseconds")


class LiveQuery(serializers.Serializer[Any]):
    """How many of the newest frames, and from when on."""

    limit = serializers.IntegerField(default=LIVE, min_value=1, max_value=MOST_LIVE)
    since = InstantField(required=False, source="at__gte")


class HistoryQuery(serializers.Serializer[Any]):
    """Which frames: `from` a client, `to` an agent, of a type, from `since` on, before `until`."""

    to = serializers.CharField(required=False, max_length=MAX_NAME_CHARS, source="destination")
    type = serializers.ChoiceField(required=False, choices=sorted(FRAME_TYPES))
    since = InstantField(required=False, source="at__gte")
    until = InstantField(required=False, source="at__lt")
    limit = serializers.IntegerField(default=PAST, min_value=1, max_value=MOST_PAST)
    offset = serializers.IntegerField(default=0, min_value=0, max_value=FARTHEST)

    def get_fields(self) -> Any:
        """With the one whose name Python reserves."""
        sender = serializers.CharField(required=False, max_length=MAX_NAME_CHARS, source="source")
        return super().get_fields() | {"from": sender}


class LiveFrames(APIView):
    """`/live`"""

    @extend_schema(parameters=[LiveQuery], responses=Items[ApiFrame])
    def get(self, request: Request) -> Response:
        """The newest frames of the clients of one's team."""
        return Response(_list_frames(request, **read_query(LiveQuery, request)))


class FrameHistory(APIView):
    """`/history`"""

    @extend_schema(parameters=[HistoryQuery], responses=Items[ApiFrame])
    def get(self, request: Request) -> Response:
        """The frames of the clients of one's team, as long as the team keeps them."""
        return Response(_list_frames(request, **read_query(HistoryQuery, request)))


def _list_frames(request: Request, *, limit: int, offset: int = 0, **wanted: Any) -> Items[ApiFrame]:
    found = FrameRecord.objects.filter(owner=caller_of(request), **wanted).order_by("-at", "-pk")
    rows = found[offset : offset + limit]
    return {"items": [show(ApiFrame, row, errorCode=row.error_code or None) for row in rows]}


urlpatterns = [
    path("live", LiveFrames.as_view(), name="gateway-live"),
    path("history", FrameHistory.as_view(), name="gateway-history"),
]
