"""The venues of the caller's own network: one by one, their signing secrets, and as CSV files."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import timedelta
from typing import Annotated, Any, TypedDict
from uuid import UUID

from django.core.files.uploadedfile import UploadedFile
from django.http import HttpResponseBase, StreamingHttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.parsers import MultiPartParser
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.models import User
from accounts.paging import PageQuery, page, read_filters
from accounts.rest import Body, ColumnBody, Conflict, HasUnlimitedToken, caller_of, get_one
from accounts.shapes import NO_STORE
from agents.api.files import OF_UPLOADS, AnyType
from agnt.models import Network, Venue
from agnt.service.keys import (
    MAX_OVERLAP,
    MIN_OVERLAP,
    OVERLAP,
    VenueSecrets,
    derive_venue_secrets,
    rotate_venue_secret,
)
from agnt.service.networks import find_network, get_or_create_network
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
from agnt.service.venues.file import BadFile, export_venues
from agnt.service.venues.importing import import_venues
from kit.asgi import RequestRefused
from kit.async_db import stream_slices
from kit.columns import list_editable
from kit.concurrency import DOWNLOADS, take_slot
from kit.describe import ErrorBody, Page, Time, Uuid
from kit.rows import RowSource, show

NO_VENUE = "no such venue"
MAX_SEARCH_CHARS = 120
MEDIA_TYPE = "text/csv"
MAX_FILE_BYTES = 10 * 1024 * 1024
BAD_ROWS = "bad_rows"
NOT_DONE = "nothing was imported: the file has wrong rows"
FILE_NAME = "venues.csv"


class ApiVenue(TypedDict):
    """A venue. `id`: `venue_id` on the wire; `agentId`: `agent_id` on the wire. `agent`: a handle of this hub.

    `referralFeePct`: a decimal number as text. A venue with the highest `priorityRank` is listed first.
    """

    id: Annotated[Uuid, RowSource("public_id")]
    slug: str
    agentId: Annotated[str | None, RowSource("agent_name")]
    name: str
    description: str
    category: str
    area: str
    city: str
    tags: list[str]
    priceRange: str
    referralFeePct: str
    priorityRank: int
    active: Annotated[bool, RowSource("is_active")]
    agent: str | None
    url: str | None
    createdAt: Time
    updatedAt: Time


class VenueBody(ColumnBody):
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
    """The venues to list. `q`: words, as in `booking.search`; `location`: a part of the area or the city."""

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


class ApiVenueSecret(TypedDict):
    """The secrets that the hub signs with. Until `previousUntil` that is `previous`, and from then on `secret`."""

    secret: str
    previous: str | None
    previousUntil: Annotated[Time | None, RowSource("until")]


class VenueSecretRotation(Body):
    """For how many seconds the hub still signs with the previous secret: 0, or at least 300."""

    overlap = serializers.IntegerField(
        default=int(OVERLAP.total_seconds()), min_value=0, max_value=int(MAX_OVERLAP.total_seconds())
    )

    def validate_overlap(self, seconds: int) -> int:
        """No overlap, or one that is long enough."""
        least = int(MIN_OVERLAP.total_seconds())
        if 0 < seconds < least:
            raise serializers.ValidationError(f"want 0, or at least {least}")
        return seconds


class VenueSecret(APIView):
    """`/network/venues/{venue_id}/secret`"""

    permission_classes = [IsAuthenticated, HasUnlimitedToken]

    @extend_schema(responses=ApiVenueSecret)
    def get(self, request: Request, venue_id: UUID) -> Response:
        """The secret with which the hub signs what it asks of the venue, of an agent as by URL."""
        return Response(_show(derive_venue_secrets(get_venue(request, venue_id))), headers=NO_STORE)

    @extend_schema(request=VenueSecretRotation, responses={200: ApiVenueSecret})
    def post(self, request: Request, venue_id: UUID) -> Response:
        """A new secret; for the overlap, a day unless said otherwise, the hub signs with the one before."""
        venue = get_venue(request, venue_id)
        overlap = timedelta(seconds=VenueSecretRotation.read(request).validated_data["overlap"])
        return Response(_show(rotate_venue_secret(venue, overlap=overlap)), headers=NO_STORE)


def _show(secrets: VenueSecrets) -> ApiVenueSecret:
    previous = secrets.previous.hex() or None
    return show(ApiVenueSecret, secrets, secret=secrets.newest.hex(), previous=previous)


class ApiBadRow(TypedDict):
    """The reason for leaving out a row. `line`: where it begins in the file; `field`: its column, or `row`."""

    line: int
    field: str
    reason: str


class ApiImport(TypedDict):
    """The result of an import. `badRows`: the number of rows left out; `bad`: the faults of the first 200."""

    created: int
    changed: int
    unchanged: int
    badRows: int
    bad: list[ApiBadRow]


class RefusedImport(ErrorBody, total=False):
    """An import was refused as a whole. With the error `bad_rows`: the number of bad rows, and the first 200."""

    badRows: int
    bad: list[ApiBadRow]


class VenueFileForm(Body):
    """The file. With `skipBadRows`, rows that are wrong do not stop the others."""

    file = serializers.FileField()
    skipBadRows = serializers.BooleanField(default=False)

    def validate_file(self, file: "UploadedFile[bytes]") -> "UploadedFile[bytes]":
        """Refuse what is too large; DRF refuses what is empty."""
        if (file.size or 0) > MAX_FILE_BYTES:
            raise RequestRefused(413, "payload_too_large", f"a file has at most {MAX_FILE_BYTES} bytes")
        return file


class ExportVenues(APIView):
    """`/network/venues/export`"""

    content_negotiation_class = AnyType

    @extend_schema(responses={(200, MEDIA_TYPE): bytes, 429: ErrorBody, 503: ErrorBody})
    def get(self, request: Request) -> HttpResponseBase:
        """All venues of your network as CSV, oldest first; an import takes the file."""
        owner = caller_of(request)
        take_slot(request, DOWNLOADS, owner.pk)
        lines = export_venues(find_network(owner) or Network())
        headers = {
            "Content-Disposition": f'attachment; filename="{FILE_NAME}"',
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "private, no-store",
        }
        return StreamingHttpResponse(
            stream_slices(lines), content_type=f"{MEDIA_TYPE}; charset=utf-8", headers=headers
        )


class ImportVenues(APIView):
    """`/network/venues/import`"""

    parser_classes = [MultiPartParser]

    @extend_schema(
        request={"multipart/form-data": VenueFileForm},
        responses={200: ApiImport, 400: RefusedImport, **OF_UPLOADS},
    )
    def post(self, request: Request) -> Response:
        """Create and change venues by a CSV file of at most 10 MiB and 10,000 rows: all of its rows, or none.

        A row whose slug a venue has, in any case, changes this venue in the columns of the file; other rows are
        new venues. With `skipBadRows` the rows that are right are imported, though others are wrong.
        """
        given = VenueFileForm.read(request).validated_data
        network = get_or_create_network(caller_of(request))
        try:
            report = import_venues(network, given["file"].file, skips_bad_rows=given["skipBadRows"])
        except BadFile as bad:
            raise ValidationError({"file": str(bad)}) from None
        left_out = {"badRows": report.bad_rows, "bad": [asdict(one) for one in report.bad]}
        if not report.is_done:
            return Response({"error": BAD_ROWS, "message": NOT_DONE, **left_out}, status=400)
        done = {"created": report.created, "changed": report.changed, "unchanged": report.unchanged}
        return Response(done | left_out)
