"""Files of a session, for those who may see it."""

import uuid
from collections.abc import Iterable, Iterator
from typing import Literal, TypedDict

from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.utils.http import content_disposition_header
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import NotFound, PermissionDenied
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import MultiPartParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.rest import caller_of
from agents.api.paging import PageQuery, page
from agents.api.uploads import FileForm, read_form
from agents.api.visible import get_session
from agents.models import File
from agents.transcript import files
from agents.transcript.access import NotAllowed, Role, role_of
from agents.transcript.blobs import SLICE_BYTES
from agents.transcript.file_names import ANY_MIME
from agents.transcript.shown_files import ApiFile, show_file
from kit.async_db import stream_slices
from kit.concurrency import DOWNLOADS, take_slot
from kit.describe import ErrorBody, Page

INERT = "sandbox; default-src 'none'"  # should a browser show it after all
ANY_BYTES = (200, ANY_MIME)
DOWNLOAD = {ANY_BYTES: bytes, 429: ErrorBody, 503: ErrorBody}
OF_UPLOADS = {408: ErrorBody, 429: ErrorBody, 503: ErrorBody}  # what hub/bounded_django.py says to an upload


class FileDeleted(TypedDict):
    """What deleting a file did; bytes go with the last live file that names them."""

    ok: Literal[True]
    alreadyDeleted: bool
    blobDeleted: bool
    refsRemaining: int
    freedBytes: int


class AnyType(DefaultContentNegotiation):
    """A file has the type it has, whatever `Accept` says; its errors are JSON."""

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """The first renderer."""
        first = next(iter(renderers))
        return first, first.media_type


class SessionFiles(APIView):
    """`/sessions/{id}/files`"""

    parser_classes = [MultiPartParser]

    @extend_schema(parameters=[PageQuery], responses=Page[ApiFile])
    def get(self, request: Request, public_id: uuid.UUID) -> Response:
        """The files of a session, newest first, deleted ones too."""
        session = get_session(request, public_id)
        found = File.objects.filter(session=session).select_related("session", "uploader")
        return page(request, found.order_by("-pk"), lambda rows: [{**show_file(row)} for row in rows])

    @extend_schema(request={"multipart/form-data": FileForm}, responses={201: ApiFile, **OF_UPLOADS})
    def post(self, request: Request, public_id: uuid.UUID) -> Response:
        """Upload a file, up to 10 MiB."""
        session = get_session(request, public_id, at_least=Role.PROMPTER)
        form = read_form(FileForm, request)
        return Response(show_file(files.store(session, caller_of(request), form["file"])), status=201)


class OneFile(APIView):
    """`/files/{id}`"""

    @extend_schema(responses={200: FileDeleted})
    def delete(self, request: Request, file_id: int) -> Response:
        """Delete a file; again is fine."""
        file = get_file(request, file_id, Role.PROMPTER)
        done = files.delete(file)
        return Response(
            {
                "ok": True,
                "alreadyDeleted": done.already_deleted,
                "blobDeleted": done.blob_deleted,
                "refsRemaining": done.refs_remaining,
                "freedBytes": done.freed_bytes,
            }
        )


class FileContent(APIView):
    """`/files/{id}/content`"""

    content_negotiation_class = AnyType

    @extend_schema(responses=DOWNLOAD)
    def get(self, request: Request, file_id: int) -> HttpResponseBase:
        """The bytes of a live file, to be saved and never shown."""
        file = get_file(request, file_id, Role.VIEWER)
        slices = files.open_file(file)
        if slices is None:
            raise NotFound("no such file")
        return download(request, file, slices)


def download(request: Request, file: File, slices: Iterator[bytes]) -> HttpResponseBase:
    """An answer that no browser opens in the hub's name. A file of more than one slice is one of few at once.

    Raises:
        TooManyAtOnce: the caller, or the process, has as many downloads under way as it may.
    """
    response: HttpResponseBase
    if file.size > SLICE_BYTES:
        take_slot(request, DOWNLOADS, caller_of(request).pk)
        response = StreamingHttpResponse(stream_slices(slices), content_type=ANY_MIME)
        response["Content-Length"] = str(file.size)
    else:
        response = HttpResponse(b"".join(slices), content_type=ANY_MIME)
    response["Content-Disposition"] = content_disposition_header(True, file.filename) or "attachment"
    response["Content-Security-Policy"] = INERT
    response["X-Content-Type-Options"] = "nosniff"
    response["Cache-Control"] = "private, no-store"
    return response


def get_file(request: Request, file_id: int, at_least: Role) -> File:
    """A file of a session in which the caller has this role.

    Raises:
        NotFound: absent, or of a session that they do not see: no difference.
        PermissionDenied: they may read it, but their role does not reach.
    """
    file = files.find_file(file_id, caller_of(request).pk)
    if file is None:
        raise NotFound("no such file")
    if role_of(file.session) < at_least:
        raise PermissionDenied(str(NotAllowed(at_least)))
    return file
