"""The venues of the caller's own network, one by one."""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.paging import PageQuery, page, read_query
from accounts.rest import Body, Conflict, caller_of
from agnt import venue_fields
from agnt.models import Venue
from agnt.networks import find_network, get_or_create_network
from agnt.venue_fields import BadVenue
from agnt.venues import (
    NO_AGENT,
    VenueTaken,
    change_venue,
    create_venue,
    delete_venue,
    find_agents,
    find_venues,
)
from kit.clock import iso
from kit.describe import ErrorBody, Page, Time, Uuid

NO_VENUE = "no such venue"
MAX_HANDLE_CHARS = 161
MAX_SEARCH_CHARS = 120


class ApiVenue(TypedDict):
    """A venue. `id`: `venue_id` on the wire; `agentId`: `agent_id` on the wire. `agent`: a handle of this hub.

    `referralFeePct`: a decimal number as text. A venue with the highest `priorityRank` is listed first.
    """

    id: Uuid
    slug: str
    agentId: str | None
    name: str
    description: str
    category: str
    area: str
    city: str
    tags: list[str]
    priceRange: str
    referralFeePct: str
    priorityRank: int
    active: bool
    agent: str | None
    url: str | None
    createdAt: Time
    updatedAt: Time


def _text(max_chars: int, **options: Any) -> serializers.CharField:
    return serializers.CharField(max_length=max_chars, required=False, allow_blank=True, **options)


def _null_text(max_chars: int, **options: Any) -> serializers.CharField:
    return _text(max_chars, allow_null=True, **options)


class VenueBody(Body):
    """The body of POST, and any part of it that of PATCH; what may stand in a field says `agnt.venue_fields`."""

    slug = serializers.RegexField(
        rf"\A{venue_fields.SLUG.pattern}\Z",
        max_length=venue_fields.MAX_SLUG_CHARS,
        error_messages={"invalid": venue_fields.WANTED_SLUG},
    )
    name = serializers.CharField(max_length=venue_fields.MAX_NAME_CHARS)
    agentId = _null_text(venue_fields.MAX_AGENT_NAME_CHARS, source="agent_name")
    description = _text(venue_fields.MAX_DESCRIPTION_CHARS)
    category = _text(venue_fields.MAX_CATEGORY_CHARS)
    area = _text(venue_fields.MAX_PLACE_CHARS)
    city = _text(venue_fields.MAX_PLACE_CHARS)
    tags = serializers.ListField(
        child=serializers.CharField(max_length=venue_fields.MAX_TAG_CHARS),
        max_length=venue_fields.MAX_TAGS,
        required=False,
    )
    priceRange = _text(venue_fields.MAX_PRICE_CHARS, source="price_range")
    referralFeePct = serializers.DecimalField(
        source="referral_fee_pct", max_digits=5, decimal_places=2, min_value=0, max_value=100, required=False
    )
    priorityRank = serializers.IntegerField(
        source="priority_rank",
        min_value=-venue_fields.HIGHEST_RANK,
        max_value=venue_fields.HIGHEST_RANK,
        required=False,
    )
    active = serializers.BooleanField(source="is_active", required=False)
    agent = _null_text(MAX_HANDLE_CHARS)
    url = _null_text(venue_fields.MAX_URL_CHARS)

    def fields_of_row(self, request: Request) -> Mapping[str, Any]:
        """The checked body as fields of `Venue`.

        Raises:
            ValidationError: it names an agent that the caller's venues cannot have.
        """
        fields = {name: "" if value is None else value for name, value in self.validated_data.items()}
        if handle := fields.get("agent"):
            fields["agent"] = find_agents(caller_of(request), [handle]).get(handle)
            if fields["agent"] is None:
                raise ValidationError({"agent": NO_AGENT})
        elif "agent" in fields:
            fields["agent"] = None
        return fields


class VenueQuery(PageQuery):
    """Which venues. `q`: a part of the name, the slug or the agent's id; `location`: of the area or the city."""

    q = serializers.CharField(required=False, max_length=MAX_SEARCH_CHARS)
    category = serializers.CharField(required=False, max_length=venue_fields.MAX_CATEGORY_CHARS)
    location = serializers.CharField(required=False, max_length=MAX_SEARCH_CHARS)
    active = serializers.BooleanField(required=False, allow_null=True, default=None)


class NetworkVenues(APIView):
    """`/network/venues`"""

    @extend_schema(parameters=[VenueQuery], responses=Page[ApiVenue])
    def get(self, request: Request) -> Response:
        """The venues of your network, by rank and name, inactive ones too."""
        query = read_query(VenueQuery, request)
        network = find_network(caller_of(request))
        found = (
            find_venues(
                network,
                words=query.get("q", ""),
                category=query.get("category", ""),
                location=query.get("location", ""),
                is_active=query["active"],
            )
            if network
            else Venue.objects.none()
        )
        return page(request, found, show_venues, VenueQuery)

    @extend_schema(request=VenueBody, responses={201: ApiVenue, 409: ErrorBody, 429: ErrorBody})
    def post(self, request: Request) -> Response:
        """Offer a venue; 409 when another one has its slug or agent id. Your network is made with its first."""
        body = VenueBody(data=request.data)
        body.is_valid(raise_exception=True)
        fields = body.fields_of_row(request)
        try:
            venue = create_venue(get_or_create_network(caller_of(request)), fields)
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
        body = VenueBody(data=request.data, partial=True)
        body.is_valid(raise_exception=True)
        try:
            is_there = change_venue(venue, body.fields_of_row(request))
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
    own = Venue.objects.filter(network__owner=caller_of(request)).select_related("agent", "network")
    venue = own.filter(public_id=venue_id).first()
    if venue is None:
        raise NotFound(NO_VENUE)
    return venue


def show_venues(venues: Sequence[Venue]) -> list[ApiVenue]:
    """Venues that were loaded with their agents."""
    return [show_venue(one) for one in venues]


def show_venue(venue: Venue) -> ApiVenue:
    """One ApiVenue."""
    return {
        "id": str(venue.public_id),
        "slug": venue.slug,
        "agentId": venue.agent_name or None,
        "name": venue.name,
        "description": venue.description,
        "category": venue.category,
        "area": venue.area,
        "city": venue.city,
        "tags": venue.tags,
        "priceRange": venue.price_range,
        "referralFeePct": f"{venue.referral_fee_pct:.2f}",
        "priorityRank": venue.priority_rank,
        "active": venue.is_active,
        "agent": f"@{venue.agent.handle}" if venue.agent else None,
        "url": venue.url or None,
        "createdAt": iso(venue.created_at),
        "updatedAt": iso(venue.updated_at),
    }


_NAMES = {field.source: name for name, field in VenueBody().fields.items()}


def as_api_failure(refused: BadVenue | VenueTaken) -> Exception:
    """The error of REST, with the fields as a body names them."""
    if isinstance(refused, VenueTaken):
        return Conflict(f"{_NAMES[refused.field]}: {refused}")
    return ValidationError({_NAMES[name]: reason for name, reason in refused.reasons.items()})
