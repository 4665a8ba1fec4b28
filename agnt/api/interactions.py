"""The log of the envelopes that came to the caller's own network."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict

from django.db.models import Q, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.paging import read_query
from accounts.rest import caller_of
from agnt.models import Interaction
from kit.clock import iso
from kit.describe import Time, Uuid

LISTED, MOST_LISTED = 50, 500
MAX_NAME_CHARS = 128
MAX_WORD_CHARS = 32
CURSOR = re.compile(r"(\d{1,17})-(\d{1,18})", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ApiInteraction(TypedDict):
    """One envelope. `status`: `ok`, `duplicate` or the code of the error. `keyId` null: the key was deleted.

    `metadata`: what is known of the program that asked; never a key or a signature.
    """

    id: int
    at: Time
    source: str
    keyId: Uuid | None
    sender: str
    recipient: str
    intent: str
    status: str
    httpStatus: int
    latencyMs: int
    venueId: Uuid | None
    bookingId: Uuid | None
    metadata: dict[str, Any]


class ApiInteractions(TypedDict):
    """A part of the log, newest first. `next`: `before` of the part that follows; null at the end."""

    items: list[ApiInteraction]
    next: str | None


class InteractionQuery(serializers.Serializer[Any]):
    """Which envelopes: that came from `since` on and before `until`; `before`: the `next` of the part before."""

    keyId = serializers.UUIDField(required=False)
    venueId = serializers.UUIDField(required=False)
    sender = serializers.CharField(required=False, max_length=MAX_NAME_CHARS)
    intent = serializers.CharField(required=False, max_length=MAX_WORD_CHARS)
    status = serializers.CharField(required=False, max_length=MAX_WORD_CHARS)
    since = serializers.DateTimeField(required=False)
    until = serializers.DateTimeField(required=False)
    limit = serializers.IntegerField(default=LISTED, min_value=1, max_value=MOST_LISTED)
    before = serializers.CharField(required=False, max_length=2 * MAX_WORD_CHARS)


class NetworkInteractions(APIView):
    """`/network/interactions`"""

    @extend_schema(parameters=[InteractionQuery], responses=ApiInteractions)
    def get(self, request: Request) -> Response:
        """The envelopes that came to your network with a key, newest first, as long as the network keeps them."""
        query = read_query(InteractionQuery, request)
        columns = {
            "keyId": "key__public_id",
            "venueId": "venue__public_id",
            "sender": "sender",
            "intent": "intent",
            "status": "status",
            "since": "at__gte",
            "until": "at__lt",
        }
        wanted = {column: query[name] for name, column in columns.items() if name in query}
        found = Interaction.objects.filter(network__owner=caller_of(request), **wanted)
        found = _before(found, query["before"]) if "before" in query else found
        loaded = found.select_related("key", "venue", "booking").order_by("-at", "-pk")
        rows = list(loaded[: query["limit"] + 1])
        shown, more = rows[: query["limit"]], len(rows) > query["limit"]
        answer: ApiInteractions = {
            "items": show_interactions(shown),
            "next": _cursor_of(shown[-1]) if more else None,
        }
        return Response(answer)


def show_interactions(rows: Sequence[Interaction]) -> list[ApiInteraction]:
    """Rows that were loaded with their keys, venues and bookings."""
    return [
        {
            "id": one.pk,
            "at": iso(one.at),
            "source": one.source,
            "keyId": str(one.key.public_id) if one.key else None,
            "sender": one.sender,
            "recipient": one.recipient,
            "intent": one.intent,
            "status": one.status,
            "httpStatus": one.http_status,
            "latencyMs": one.latency_ms,
            "venueId": str(one.venue.public_id) if one.venue else None,
            "bookingId": str(one.booking.public_id) if one.booking else None,
            "metadata": one.metadata,
        }
        for one in rows
    ]


def _cursor_of(row: Interaction) -> str:
    return f"{(row.at - _EPOCH) // timedelta(microseconds=1)}-{row.pk}"


def _before(found: QuerySet[Interaction], cursor: str) -> QuerySet[Interaction]:
    parts = CURSOR.fullmatch(cursor)
    try:
        at = _EPOCH + timedelta(microseconds=int(parts[1])) if parts else None
    except OverflowError:
        at = None
    if parts is None or at is None:
        raise ValidationError({"before": "want the `next` of an earlier answer"})
    return found.filter(Q(at__lt=at) | Q(at=at, pk__lt=int(parts[2])), at__lte=at)
