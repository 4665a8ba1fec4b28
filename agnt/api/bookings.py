"""The bookings of the caller's own network, and what its owner does about them."""

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypedDict
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.paging import PageQuery, page, read_filters
from accounts.rest import Body, Conflict, caller_of, get_one
from agnt.models import Booking, UsageEvent
from agnt.service.bookings import (
    STATUS_RULES,
    StatusRefused,
    change_status,
    list_actions,
    list_bookings,
)
from kit.describe import ErrorBody, Page, Time, Uuid
from kit.money import CENT, decimal_usd
from kit.rows import Source, show

NO_BOOKING = "no such booking"
MAX_SENDER_CHARS = 128
Status = Literal["pending", "confirmed", "completed", "cancelled", "no_show"]


class ApiBooking(TypedDict):
    """A booking. `actions`: the statuses that you can give it now. `keyId` null: the key was deleted.

    `venueBookingId`: the venue's own id. `venueReply`: what it answered; null: it was not asked.
    """

    id: Annotated[Uuid, Source("public_id")]
    venueId: Annotated[Uuid, Source("venue.public_id")]
    venueSlug: Annotated[str, Source("venue.slug")]
    venueName: Annotated[str, Source("venue.name")]
    keyId: Annotated[Uuid | None, Source("key.public_id")]
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
    """Which bookings: made from `since` on and before `until`; of a venue, a key, a sender; in a status."""

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
        """Give it a status, and send the event of it; again is fine. 409 when it cannot get that status now."""
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
