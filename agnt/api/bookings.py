"""The bookings of the caller's own network, what its venues are told to cancel, and the log of its envelopes."""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, TypedDict
from uuid import UUID

from django.db.models import Q, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.paging import PageQuery, page, read_filters, read_query
from accounts.rest import Body, Conflict, caller_of, check_no_fields, get_one
from agnt.models import Booking, Cancellation, Interaction, UsageEvent
from agnt.service.bookings import (
    STATUS_RULES,
    StatusRefused,
    change_status,
    list_actions,
    list_bookings,
)
from agnt.service.cancellations import SHOWN, list_cancellations, send_again
from kit.describe import ErrorBody, Page, Time, Uuid
from kit.money import CENT, decimal_usd
from kit.rows import RowSource, show

NO_BOOKING = "no such booking"
MAX_SENDER_CHARS = 128
Status = Literal["pending", "confirmed", "completed", "cancelled", "no_show"]
NO_CANCELLATION = "no such cancellation"
MAX_NAME_CHARS = 128
MAX_WORD_CHARS = 32
CURSOR = re.compile(r"(\d{1,17})-(\d{1,18})", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ApiBooking(TypedDict):
    """A booking. `actions`: the statuses that you can give it now. `keyId` null: the key was deleted.

    `venueBookingId`: the venue's own id. `venueReply`: what it answered; null: it was not asked.
    """

    id: Annotated[Uuid, RowSource("public_id")]
    venueId: Annotated[Uuid, RowSource("venue.public_id")]
    venueSlug: Annotated[str, RowSource("venue.slug")]
    venueName: Annotated[str, RowSource("venue.name")]
    keyId: Annotated[Uuid | None, RowSource("key.public_id")]
    sender: str
    slotId: str | None
    slotTime: str | None
    partySize: int | None
    userNote: str
    status: Status
    actions: list[Status]
    venueBookingId: str | None
    venueReply: dict[str, Any] | None
    chargedUsd: str
    createdAt: Time
    updatedAt: Time


class BookingQuery(PageQuery):
    """The bookings to list: made from `since` on and before `until`; of a venue, a key, a sender; in a status."""

    status = serializers.ChoiceField(required=False, choices=Booking.Status.values)
    venueId = serializers.UUIDField(required=False, source="venue__public_id")
    keyId = serializers.UUIDField(required=False, source="key__public_id")
    sender = serializers.CharField(required=False, max_length=MAX_SENDER_CHARS)
    since = serializers.DateTimeField(required=False, source="created_at__gte")
    until = serializers.DateTimeField(required=False, source="created_at__lt")


class BookingBody(Body):
    """The status that a booking gets."""

    status = serializers.ChoiceField(choices=[one.value for one in STATUS_RULES])


class NetworkBookings(APIView):
    """`/network/bookings`"""

    @extend_schema(parameters=[BookingQuery], responses=Page[ApiBooking])
    def get(self, request: Request) -> Response:
        """The bookings of your network, newest first."""
        wanted = read_filters(BookingQuery, request)
        found = list_bookings(caller_of(request)).filter(**wanted).order_by("-created_at", "-pk")
        return page(request, found, show_bookings, BookingQuery)


class OneNetworkBooking(APIView):
    """`/network/bookings/{booking_id}`"""

    @extend_schema(responses=ApiBooking)
    def get(self, request: Request, booking_id: UUID) -> Response:
        """One booking of your network."""
        return Response(_show_own(request, booking_id))

    @extend_schema(request=BookingBody(partial=True), responses={200: ApiBooking, 409: ErrorBody})
    def patch(self, request: Request, booking_id: UUID) -> Response:
        """Set the status of a booking, and send its event; a repeated call succeeds. 409: no such change."""
        own = _get_own(request, booking_id)
        body = BookingBody.read(request, partial=True)
        try:
            if status := body.validated_data.get("status"):
                change_status(own, Booking.Status(status))
        except StatusRefused as refused:
            raise Conflict(str(refused)) from None
        return Response(_show_own(request, booking_id))


def _get_own(request: Request, booking_id: UUID) -> Booking:
    return get_one(list_bookings(caller_of(request)).filter(public_id=booking_id), NO_BOOKING)


def _show_own(request: Request, booking_id: UUID) -> ApiBooking:
    return show_bookings([_get_own(request, booking_id)])[0]


def show_bookings(bookings: Sequence[Booking]) -> list[ApiBooking]:
    """Bookings that were loaded with their venues, keys and charges."""
    return [
        show(
            ApiBooking,
            one,
            actions=[status.value for status in list_actions(one)],
            venueReply=json.loads(one.venue_reply) if one.venue_reply else None,
            chargedUsd=_charged_usd(one),
        )
        for one in bookings
    ]


def _charged_usd(booking: Booking) -> str:
    charge: UsageEvent | None = getattr(booking, "usage_event", None)
    return decimal_usd(charge.amount_cents * CENT if charge else 0)


class ApiCancellation(TypedDict):
    """A `booking.cancel` for a venue. `bookingId`: of the booking, or of an order that did not become one.

    `state`: `told`, the venue acknowledged it; `given_up`, it did not within about three days. `lastError`: why
    the last attempt failed.
    """

    bookingId: Annotated[Uuid, RowSource("public_id")]
    venueId: Annotated[Uuid, RowSource("venue.public_id")]
    venueSlug: Annotated[str, RowSource("venue.slug")]
    reason: Literal["no_answer", "key_revoked", "owner", "caller"]
    state: Literal["owed", "told", "given_up"]
    attempts: int
    lastError: str | None
    createdAt: Time
    nextAttemptAt: Time | None
    endedAt: Time | None


class CancellationQuery(PageQuery):
    """The cancellations to list: of a venue, in a state."""

    venueId = serializers.UUIDField(required=False, source="venue__public_id")
    state = serializers.ChoiceField(required=False, choices=SHOWN)


class NetworkCancellations(APIView):
    """`/network/cancellations`"""

    @extend_schema(parameters=[CancellationQuery], responses=Page[ApiCancellation])
    def get(self, request: Request) -> Response:
        """The cancellations that your venues got, or will get, newest first; for 7 days after their end."""
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


LISTED, MAX_LISTED = 50, 500


class ApiInteraction(TypedDict):
    """One envelope. `status`: `ok`, `duplicate` or the code of the error. `keyId` null: the key was deleted.

    `metadata`: what is known of the program that asked; never a key or a signature. Of an error also its `reason`;
    of a failed ask the `rule` that the venue broke, and `venue_said`, the beginning of its answer.
    """

    id: Annotated[int, RowSource("pk")]
    at: Time
    source: str
    keyId: Annotated[Uuid | None, RowSource("key.public_id")]
    sender: str
    recipient: str
    intent: str
    status: str
    httpStatus: int
    latencyMs: int
    venueId: Annotated[Uuid | None, RowSource("venue.public_id")]
    bookingId: Annotated[Uuid | None, RowSource("booking.public_id")]
    metadata: dict[str, Any]


class ApiInteractions(TypedDict):
    """A part of the log, newest first. `next`: `before` of the part that follows; null at the end."""

    items: list[ApiInteraction]
    next: str | None


class InteractionQuery(serializers.Serializer[Any]):
    """The envelopes to list, received from `since` on, before `until`; `before`: the `next` of the part before."""

    keyId = serializers.UUIDField(required=False, source="key__public_id")
    venueId = serializers.UUIDField(required=False, source="venue__public_id")
    sender = serializers.CharField(required=False, max_length=MAX_NAME_CHARS)
    intent = serializers.CharField(required=False, max_length=MAX_WORD_CHARS)
    status = serializers.CharField(required=False, max_length=MAX_WORD_CHARS)
    since = serializers.DateTimeField(required=False, source="at__gte")
    until = serializers.DateTimeField(required=False, source="at__lt")
    limit = serializers.IntegerField(default=LISTED, min_value=1, max_value=MAX_LISTED)
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
