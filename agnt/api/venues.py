"""The venues of the caller's own network, one by one."""

from collections.abc import Mapping
from typing import Annotated, Any, TypedDict
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.models import User
from accounts.paging import PageQuery, page, read_filters
from accounts.rest import Body, Conflict, caller_of, get_one
from agnt.models import Venue
from agnt.service.networks import get_or_create_network
from agnt.service.venues.editing import (
    VenueTaken,
    change_venue,
    create_venue,
    delete_venue,
    find_agent,
    find_venues,
    list_venues,
)
from agnt.service.venues.fields import FIELDS, MAX_TAGS, SLUG, WANTED_SLUG, BadVenue
from kit.columns import ColumnBody, list_editable
from kit.describe import ErrorBody, Page, Time, Uuid
from kit.rows import Source, show

NO_VENUE = "no such venue"
MAX_SEARCH_CHARS = 120


class ApiVenue(TypedDict):
    """A venue. `id`: `venue_id` on the wire; `agentId`: `agent_id` on the wire. `agent`: a handle of this hub.

    `referralFeePct`: a decimal number as text. A venue with the highest `priorityRank` is listed first.
    """

    id: Annotated[Uuid, Source("public_id")]
    slug: str
    agentId: Annotated[str | None, Source("agent_name")]
    name: str
    description: str
    category: str
    area: str
    city: str
    tags: list[str]
    priceRange: str
    referralFeePct: str
    priorityRank: int
    active: Annotated[bool, Source("is_active")]
    agent: str | None
    url: str | None
    createdAt: Time
    updatedAt: Time


class VenueBody(Body, ColumnBody):
    """The body of POST, and any part of it that of PATCH."""

    slug = serializers.RegexField(
        rf"\A{SLUG.pattern}\Z", max_length=FIELDS["slug"].most, error_messages={"invalid": WANTED_SLUG}
    )
    tags = serializers.ListField(
        child=serializers.CharField(max_length=FIELDS["tags"].most), max_length=MAX_TAGS, required=False
    )
    agent = serializers.CharField(
        max_length=FIELDS["agent"].most, required=False, allow_null=True, allow_blank=True
    )

    class Meta:
        model, columns, shape = Venue, list_editable(Venue), ApiVenue

    def fields_of_row(self, owner: User) -> Mapping[str, Any]:
        """The checked body as fields of `Venue`.

        Raises:
            BadVenue: the body names an agent that venues of the owner cannot have.
        """
        fields: dict[str, Any] = self.validated_data
        return fields | ({"agent": find_agent(owner, fields["agent"] or "")} if "agent" in fields else {})


class VenueQuery(PageQuery):
    """Which venues. `q`: words, as in `booking.search`; `location`: a part of the area or the city."""

    q = serializers.CharField(source="words", required=False, max_length=MAX_SEARCH_CHARS)
    category = serializers.CharField(required=False, max_length=FIELDS["category"].most)
    location = serializers.CharField(required=False, max_length=MAX_SEARCH_CHARS)
    active = serializers.BooleanField(source="is_active", required=False, allow_null=True, default=None)


class NetworkVenues(APIView):
    """`/network/venues`"""

    @extend_schema(parameters=[VenueQuery], responses=Page[ApiVenue])
    def get(self, request: Request) -> Response:
        """The venues of your network, by rank and name, inactive ones too."""
        found = find_venues(caller_of(request), **read_filters(VenueQuery, request))
        return page(request, found, lambda rows: [show_venue(one) for one in rows], VenueQuery)

    @extend_schema(request=VenueBody, responses={201: ApiVenue, 409: ErrorBody, 429: ErrorBody})
    def post(self, request: Request) -> Response:
        """Offer a venue; 409 when another one has its slug or agent id. Your network is made with its first."""
        body = VenueBody.read(request)
        owner = caller_of(request)
        try:
            fields = body.fields_of_row(owner)
            venue = create_venue(get_or_create_network(owner), fields)
        except (BadVenue, VenueTaken) as refused:
            raise as_api_failure(refused) from None
        return Response(show_venue(venue), status=201)


class OneNetworkVenue(APIView):
    """`/network/venues/{venue_id}`"""

    @extend_schema(responses=ApiVenue)
    def get(self, request: Request, venue_id: UUID) -> Response:
        """One venue of your network."""
        return Response(show_venue(get_venue(request, venue_id)))

    @extend_schema(request=VenueBody(partial=True), responses={200: ApiVenue, 409: ErrorBody})
    def patch(self, request: Request, venue_id: UUID) -> Response:
        """Change what the body names; it counts from the next envelope on."""
        venue = get_venue(request, venue_id)
        body = VenueBody.read(request, partial=True)
        try:
            is_there = change_venue(venue, body.fields_of_row(caller_of(request)))
        except (BadVenue, VenueTaken) as refused:
            raise as_api_failure(refused) from None
        if not is_there:
            raise NotFound(NO_VENUE)
        return Response(show_venue(venue))

    @extend_schema(request=None, responses={200: ApiVenue, 204: None})
    def delete(self, request: Request, venue_id: UUID) -> Response:
        """Delete it; a venue that has bookings is deactivated instead, and answered."""
        venue = get_venue(request, venue_id)
        if delete_venue(venue):
            return Response(status=204)
        return Response(show_venue(venue))


def get_venue(request: Request, venue_id: UUID) -> Venue:
    """A venue of the caller's own network; others' and absent ones are the same 404."""
    return get_one(list_venues(caller_of(request)).filter(public_id=venue_id), NO_VENUE)


def show_venue(venue: Venue) -> ApiVenue:
    """A venue that was loaded with its agent."""
    agent = f"@{venue.agent.handle}" if venue.agent else None
    return show(ApiVenue, venue, agent=agent, referralFeePct=f"{venue.referral_fee_pct:.2f}")


def as_api_failure(refused: BadVenue | VenueTaken) -> Exception:
    """The error of REST, with the fields as a body names them."""
    if isinstance(refused, VenueTaken):
        return Conflict(f"{FIELDS[refused.field].api}: {refused}")
    return ValidationError({FIELDS[name].api: reason for name, reason in refused.reasons.items()})
