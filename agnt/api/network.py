"""The rules of the caller's own network, and its usage; the addresses of all calls below `/api/v1/network`."""

from datetime import UTC, date, timedelta
from typing import Annotated, Any, TypedDict

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.paging import read_query
from accounts.rest import ColumnBody, caller_of, get_one
from agnt.api import bookings, keys, venues
from agnt.models import Network
from agnt.models.network import RULES
from agnt.service.figures import load_days
from agnt.service.keys import list_keys
from agnt.service.networks import change_rules, find_network
from kit.clock import db_now
from kit.describe import ErrorBody
from kit.money import CENT, decimal_usd
from kit.rows import RowSource, show

USAGE_DAYS = 30
MAX_USAGE_DAYS = 366


class ApiNetwork(TypedDict):
    """The rules of a network. `strict`: unknown keys of a payload are refused. `acceptsHops`: `via` is taken."""

    strict: Annotated[bool, RowSource("is_strict")]
    requiresSignature: bool
    acceptsHops: bool
    interactionsKeptDays: int


class ApiUsageDay(TypedDict):
    """One UTC day. `calls`: envelopes that came with a key; `bookings`: those that were charged."""

    day: str
    calls: int
    bookings: int
    revenueUsd: str


class ApiUsage(TypedDict):
    """Each of the days, oldest first, and the revenue of all of them."""

    items: list[ApiUsageDay]
    calls: int
    bookings: int
    revenueUsd: str


class NetworkBody(ColumnBody):
    """The rules to change."""

    class Meta:
        model, columns, shape = Network, RULES, ApiNetwork


class NetworkUsageQuery(serializers.Serializer[Any]):
    """The first and the last day; without them the last 30. `keyId`: the calls with this key alone."""

    first = serializers.DateField(required=False)
    last = serializers.DateField(required=False)
    keyId = serializers.UUIDField(required=False)


class NetworkRules(APIView):
    """`/network`"""

    @extend_schema(responses=ApiNetwork)
    def get(self, request: Request) -> Response:
        """The rules of your network."""
        return Response(show(ApiNetwork, find_network(caller_of(request)) or Network()))

    @extend_schema(request=NetworkBody, responses=ApiNetwork)
    def patch(self, request: Request) -> Response:
        """Change what the body names; it counts from the next envelope on."""
        body = NetworkBody.read(request)
        return Response(show(ApiNetwork, change_rules(caller_of(request), body.validated_data)))


class NetworkUsage(APIView):
    """`/network/usage`"""

    @extend_schema(parameters=[NetworkUsageQuery], responses={200: ApiUsage, 404: ErrorBody})
    def get(self, request: Request) -> Response:
        """Calls, charged bookings and revenue of your network by UTC day, at most 366 days."""
        query = read_query(NetworkUsageQuery, request)
        first, last = _read_days(query)
        owner, key = caller_of(request), None
        if "keyId" in query:
            key = get_one(list_keys(owner, with_ended=True).filter(public_id=query["keyId"]), "no such key")
        days = load_days(owner, first, last, key=key)
        shown: ApiUsage = {
            "items": [show(ApiUsageDay, one, revenueUsd=decimal_usd(one.revenue_cents * CENT)) for one in days],
            "calls": sum(one.calls for one in days),
            "bookings": sum(one.bookings for one in days),
            "revenueUsd": decimal_usd(sum(one.revenue_cents for one in days) * CENT),
        }
        return Response(shown)


def _read_days(query: dict[str, Any]) -> tuple[date, date]:
    last: date = query.get("last") or db_now().astimezone(UTC).date()
    try:
        first: date = query.get("first") or last - timedelta(days=USAGE_DAYS - 1)
        last + timedelta(days=1)
    except OverflowError:
        raise ValidationError({"last": "there is no such day"}) from None
    if not 0 <= (last - first).days < MAX_USAGE_DAYS:
        raise ValidationError({"first": f"want 1 to {MAX_USAGE_DAYS} days, the first one first"})
    return first, last


urlpatterns = [
    path("network", NetworkRules.as_view(), name="network"),
    path("network/venues", venues.NetworkVenues.as_view(), name="network-venues"),
    path("network/venues/export", venues.ExportVenues.as_view(), name="network-venues-export"),
    path("network/venues/import", venues.ImportVenues.as_view(), name="network-venues-import"),
    path("network/venues/<uuid:venue_id>", venues.OneNetworkVenue.as_view(), name="network-venue"),
    path(
        "network/venues/<uuid:venue_id>/secret",
        venues.VenueSecret.as_view(),
        name="network-venue-secret",
    ),
    path("network/keys", keys.NetworkKeys.as_view(), name="network-keys"),
    path("network/keys/<uuid:api_key_id>", keys.OneNetworkKey.as_view(), name="network-key"),
    path(
        "network/keys/<uuid:api_key_id>/rotate-secret", keys.RotateKeySecret.as_view(), name="network-key-rotate"
    ),
    path("network/bookings", bookings.NetworkBookings.as_view(), name="network-bookings"),
    path("network/bookings/<uuid:booking_id>", bookings.OneNetworkBooking.as_view(), name="network-booking"),
    path("network/cancellations", bookings.NetworkCancellations.as_view(), name="network-cancellations"),
    path(
        "network/cancellations/<uuid:booking_id>/retry",
        bookings.RetryCancellation.as_view(),
        name="network-cancellation-retry",
    ),
    path("network/usage", NetworkUsage.as_view(), name="network-usage"),
    path("network/interactions", bookings.NetworkInteractions.as_view(), name="network-interactions"),
]
