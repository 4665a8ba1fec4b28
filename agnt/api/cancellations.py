"""What the venues of the caller's own network were told to cancel, or will be."""

from collections.abc import Sequence
from typing import Annotated, Literal, TypedDict
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.paging import PageQuery, page, read_filters
from accounts.rest import Conflict, caller_of, check_no_fields, get_one
from agnt.models import Cancellation
from agnt.service.cancellations import SHOWN, list_cancellations, send_again
from kit.describe import ErrorBody, Page, Time, Uuid
from kit.rows import Source, show

NO_CANCELLATION = "no such cancellation"


class ApiCancellation(TypedDict):
    """A `booking.cancel` for a venue. `bookingId`: of the booking, or of an order that did not become one.

    `state`: `told`, the venue acknowledged it; `given_up`, it did not within about three days. `lastError`: why
    the last attempt failed.
    """

    bookingId: Annotated[Uuid, Source("public_id")]
    venueId: Annotated[Uuid, Source("venue.public_id")]
    venueSlug: Annotated[str, Source("venue.slug")]
    reason: Literal["no_answer", "key_revoked", "owner", "caller"]
    state: Literal["owed", "told", "given_up"]
    attempts: int
    lastError: str | None
    createdAt: Time
    nextAttemptAt: Time | None
    endedAt: Time | None


class CancellationQuery(PageQuery):
    """Which ones: of a venue, in a state."""

    venueId = serializers.UUIDField(required=False, source="venue__public_id")
    state = serializers.ChoiceField(required=False, choices=SHOWN)


class NetworkCancellations(APIView):
    """`/network/cancellations`"""

    @extend_schema(parameters=[CancellationQuery], responses=Page[ApiCancellation])
    def get(self, request: Request) -> Response:
        """What your venues were told to cancel, or will be, newest first; for 7 days after its end."""
        wanted = read_filters(CancellationQuery, request)
        found = list_cancellations(caller_of(request)).filter(**wanted).order_by("-created_at", "-pk")
        return page(request, found, show_cancellations, CancellationQuery)


class RetryCancellation(APIView):
    """`/network/cancellations/{booking_id}/retry`"""

    @extend_schema(request=None, responses={200: ApiCancellation, 400: ErrorBody, 409: ErrorBody})
    def post(self, request: Request, booking_id: UUID) -> Response:
        """Tell a venue again what was given up; 409 unless it was."""
        own = get_one(list_cancellations(caller_of(request)).filter(public_id=booking_id), NO_CANCELLATION)
        check_no_fields(request)
        if not send_again(own):
            raise Conflict("this cancellation was not given up")
        own.refresh_from_db()
        return Response(show_cancellations([own])[0])


def show_cancellations(rows: Sequence[Cancellation]) -> list[ApiCancellation]:
    """Cancellations that were loaded with their venues."""
    return [show(ApiCancellation, one) for one in rows]
