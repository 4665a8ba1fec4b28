"""The log of the envelopes that came to the caller's own network."""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, TypedDict

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
from kit.describe import Time, Uuid
from kit.rows import Source, show

LISTED, MOST_LISTED = 50, 500
MAX_NAME_CHARS = 128
MAX_WORD_CHARS = 32
CURSOR = re.compile(r"(\d{1,17})-(\d{1,18})", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ApiInteraction(TypedDict):
    """One envelope. `status`: `ok`, `duplicate` or the code of the error. `keyId` null: the key was deleted.

    `metadata`: what is known of the program that asked; never a key or a signature. Of an error also its `reason`;
    of a failed ask the `rule` that the venue broke, and `venue_said`, the beginning of its answer.
    """

    id: Annotated[int, Source("pk")]
    at: Time
    source: str
    keyId: Annotated[Uuid | None, Source("key.public_id")]
    sender: str
    recipient: str
    intent: str
    status: str
    httpStatus: int
    latencyMs: int
    venueId: Annotated[Uuid | None, Source("venue.public_id")]
    bookingId: Annotated[Uuid | None, Source("booking.public_id")]
    metadata: dict[str, Any]


class ApiInteractions(TypedDict):
    """A part of the log, newest first. `next`: `before` of the part that follows; null at the end."""

    items: list[ApiInteraction]
    next: str | None


class InteractionQuery(serializers.Serializer[Any]):
    """Which envelopes: that came from `since` on and before `until`; `before`: the `next` of the part before."""

    keyId = serializers.UUIDField(required=False, source="key__public_id")
    venueId = serializers.UUIDField(required=False, source="venue__public_id")
    sender = serializers.CharField(required=False, max_length=MAX_NAME_CHARS)
    intent = serializers.CharField(required=False, max_length=MAX_WORD_CHARS)
    status = serializers.CharField(required=False, max_length=MAX_WORD_CHARS)
    since = serializers.DateTimeField(required=False, source="at__gte")
    until = serializers.DateTimeField(required=False, source="at__lt")
    limit = serializers.IntegerField(default=LISTED, min_value=1, max_value=MOST_LISTED)
    before = serializers.CharField(required=False, max_length=2 * MAX_WORD_CHARS)


class NetworkInteractions(APIView):
    """`/network/interactions`"""

    @extend_schema(parameters=[InteractionQuery], responses=ApiInteractions)
    def get(self, request: Request) -> Response:
        """The envelopes that came to your network with a key, newest first, as long as the network keeps them."""
        wanted = read_query(InteractionQuery, request)
        limit, before = wanted.pop("limit"), wanted.pop("before", None)
        found = Interaction.objects.filter(network__owner=caller_of(request), **wanted)
        found = found if before is None else _before(found, before)
        loaded = found.select_related("key", "venue", "booking").order_by("-at", "-pk")
        rows = list(loaded[: limit + 1])
        shown, more = rows[:limit], len(rows) > limit
        answer: ApiInteractions = {
            "items": [show(ApiInteraction, one) for one in shown],
            "next": _cursor_of(shown[-1]) if more else None,
        }
        return Response(answer)


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
