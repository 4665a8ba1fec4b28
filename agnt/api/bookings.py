"""The bookings of the caller's own network, and what its owner does about them."""

from collections.abc import Sequence
from typing import Literal, TypedDict, cast
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.paging import PageQuery, page, read_query
from accounts.rest import Body, Conflict, caller_of
from agnt.api.network import get_network
from agnt.bookings import BEFORE, BookingNotFound, StatusRefused, change_status, list_actions
from agnt.models import Booking
from kit.clock import iso
from kit.describe import ErrorBody, Page, Time, Uuid
from kit.money import CENT, decimal_usd

NO_BOOKING = "no such booking"
MAX_SENDER_CHARS = 128
Status = Literal["pending", "confirmed", "completed", "cancelled", "no_show"]


class ApiBooking(TypedDict):
    """A booking. `actions`: the statuses that you can give it now. `keyId` null: the key was deleted."""

    id: Uuid
    venueId: Uuid
    venueSlug: str
    venueName: str
    keyId: Uuid | None
    sender: str
    slotId: str | None
    slotTime: str | None
    partySize: int | None
    userNote: str
    status: Status
    actions: list[Status]
    chargedUsd: str
    createdAt: Time
    updatedAt: Time


class BookingQuery(PageQuery):
    """Which bookings: made from `since` on and before `until`; of a venue, a key, a sender; in a status."""

    status = serializers.ChoiceField(required=False, choices=Booking.Status.values)
    venueId = serializers.UUIDField(required=False)
    keyId = serializers.UUIDField(required=False)
    sender = serializers.CharField(required=False, max_length=MAX_SENDER_CHARS)
    since = serializers.DateTimeField(required=False)
    until = serializers.DateTimeField(required=False)


class BookingBody(Body):
    """The status that a booking gets."""

    status = serializers.ChoiceField(choices=[one.value for one in BEFORE])


class NetworkBookings(APIView):
    """`/network/bookings`"""

    @extend_schema(parameters=[BookingQuery], responses=Page[ApiBooking])
    def get(self, request: Request) -> Response:
        """The bookings of your network, newest first."""
        query = read_query(BookingQuery, request)
        columns = {
            "status": "status",
            "venueId": "venue__public_id",
            "keyId": "key__public_id",
            "sender": "sender",
            "since": "created_at__gte",
            "until": "created_at__lt",
        }
        wanted = {column: query[name] for name, column in columns.items() if name in query}
        found = _load(request).filter(**wanted).order_by("-created_at", "-pk")
        return page(request, found, show_bookings, BookingQuery)


class OneNetworkBooking(APIView):
    """`/network/bookings/{booking_id}`"""

    @extend_schema(responses=ApiBooking)
    def get(self, request: Request, booking_id: UUID) -> Response:
        """One booking of your network."""
        return Response(_show_own(request, booking_id))

    @extend_schema(request=BookingBody, responses={200: ApiBooking, 409: ErrorBody})
    def patch(self, request: Request, booking_id: UUID) -> Response:
        """Give it a status, and send the event of it; again is fine. 409 when it cannot get that status now."""
        network = get_network(request, NO_BOOKING)
        if not _load(request).filter(public_id=booking_id).exists():
            raise NotFound(NO_BOOKING)
        body = BookingBody(data=request.data)
        body.is_valid(raise_exception=True)
        try:
            change_status(network, str(booking_id), Booking.Status(body.validated_data["status"]))
        except BookingNotFound:
            raise NotFound(NO_BOOKING) from None
        except StatusRefused as refused:
            raise Conflict(str(refused)) from None
        return Response(_show_own(request, booking_id))


def _load(request: Request) -> QuerySet[Booking]:
    rows = Booking.objects.filter(network__owner=caller_of(request))
    return rows.select_related("venue", "key", "usage_event")


def _show_own(request: Request, booking_id: UUID) -> ApiBooking:
    booking = _load(request).filter(public_id=booking_id).first()
    if booking is None:
        raise NotFound(NO_BOOKING)
    return show_bookings([booking])[0]


def show_bookings(bookings: Sequence[Booking]) -> list[ApiBooking]:
    """Bookings that were loaded with their venues, keys and charges."""
    return [
        {
            "id": str(one.public_id),
            "venueId": str(one.venue.public_id),
            "venueSlug": one.venue.slug,
            "venueName": one.venue.name,
            "keyId": str(one.key.public_id) if one.key else None,
            "sender": one.sender,
            "slotId": one.slot_id or None,
            "slotTime": one.slot_time or None,
            "partySize": one.party_size,
            "userNote": one.user_note,
            "status": cast(Status, one.status),
            "actions": [cast(Status, status.value) for status in list_actions(one)],
            "chargedUsd": decimal_usd((one.usage_event.amount_cents if hasattr(one, "usage_event") else 0) * CENT),
            "createdAt": iso(one.created_at),
            "updatedAt": iso(one.updated_at),
        }
        for one in bookings
    ]
