"""Exports the venues of the caller's own network as CSV, and imports such files."""

from dataclasses import asdict
from typing import TypedDict

from django.core.files.uploadedfile import UploadedFile
from django.http import HttpResponseBase, StreamingHttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.rest import Body, caller_of
from agents.api.files import OF_UPLOADS, AnyType
from agnt.models import Network
from agnt.service.networks import find_network, get_or_create_network
from agnt.service.venues.file import BadFile, export_venues
from agnt.service.venues.importing import import_venues
from kit.asgi import RequestRefused
from kit.async_db import stream_slices
from kit.concurrency import DOWNLOADS, take_slot
from kit.describe import ErrorBody

MEDIA_TYPE = "text/csv"
MAX_FILE_BYTES = 10 * 1024 * 1024
BAD_ROWS = "bad_rows"
NOT_DONE = "nothing was imported: the file has wrong rows"
FILE_NAME = "venues.csv"


class ApiBadRow(TypedDict):
    """Why a row was not taken. `line`: where it begins in the file; `field`: its column, or `row`."""

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
        responses={200: ApiImport, 400: RefusedImport, 413: ErrorBody, **OF_UPLOADS},
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
