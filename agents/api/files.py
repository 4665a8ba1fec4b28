"""Files of a session: for users who may see the session, and for its agent at `/api/channel/files`.

Section 4.8 of the channel's wire specifies `/api/channel/files`.
"""

import unicodedata
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Literal, TypedDict
from urllib.parse import quote

from django.core.files.uploadedfile import UploadedFile
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.utils.http import content_disposition_header
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound, PermissionDenied
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import MultiPartParser
from rest_framework.permissions import BasePermission, IsAuthenticated
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.authn import Identity, OutOfScope, TokenScope
from accounts.paging import PageQuery, page, read_query
from accounts.rest import Body, ChannelAuthentication, caller_of, identity_of
from agents.api.sessions import get_session
from agents.models import File, Session
from agents.transcript import callers_files, files
from agents.transcript.access import NotAllowed, SessionRole
from agents.transcript.files import ANY_MIME, MAX_FILE_BYTES, SLICE_BYTES, ApiFile, Upload, show_file
from kit.asgi import RequestRefused
from kit.async_db import stream_slices
from kit.concurrency import DOWNLOADS, take_slot
from kit.describe import CHANNEL_TOKEN, ErrorBody, Page, Time, Url, Uuid
from kit.rows import RowSource, show

TOO_LARGE = f"a file has at most {MAX_FILE_BYTES} bytes"


class FileForm(Body):
    """The part `file`."""

    file = serializers.FileField()

    def validate_file(self, file: "UploadedFile[bytes]") -> "UploadedFile[bytes]":
        """Refuse a file over the limit; DRF refuses an empty one."""
        if (file.size or 0) > MAX_FILE_BYTES:
            raise RequestRefused(413, "payload_too_large", TOO_LARGE)
        return file


def read_form(form: type[FileForm], request: Request) -> dict[str, Any]:
    """The checked parts of a body, `file` as an `Upload`."""
    given = form.read(request).validated_data
    file = given["file"]
    upload = Upload(filename=file.name, mime=file.content_type, data=file.read())
    return {**given, "file": upload}


INERT = "sandbox; default-src 'none'"  # in case a browser shows the file after all
PREVIEW = f"{INERT}; frame-ancestors 'self'"  # pages of the hub may frame it
ANY_BYTES = (200, ANY_MIME)
DOWNLOAD = {ANY_BYTES: bytes, 429: ErrorBody, 503: ErrorBody}
# The statuses with which hub/bounded_django.py refuses an upload.
OF_UPLOADS = {408: ErrorBody, 429: ErrorBody, 503: ErrorBody}


class FileDeleted(TypedDict):
    """The result of deleting a file; bytes go with the last live file that names them."""

    ok: Literal[True]
    alreadyDeleted: bool
    blobDeleted: bool
    refsRemaining: int
    freedBytes: int


class AnyType(DefaultContentNegotiation):
    """Sends a file with its own media type, whatever `Accept` asks for; errors are JSON."""

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """Choose the first renderer, whatever `Accept` asks for."""
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
        session = get_session(request, public_id, at_least=SessionRole.PROMPTER)
        form = read_form(FileForm, request)
        return Response(show_file(files.store(session, caller_of(request), form["file"])), status=201)


class OneFile(APIView):
    """`/files/{id}`"""

    @extend_schema(responses={200: FileDeleted})
    def delete(self, request: Request, file_id: int) -> Response:
        """Delete a file; a repeated call succeeds."""
        file = get_file(request, file_id, SessionRole.PROMPTER)
        return Response(show(FileDeleted, files.delete(file)))


class FileContent(APIView):
    """`/files/{id}/content`"""

    content_negotiation_class = AnyType

    @extend_schema(responses=DOWNLOAD)
    def get(self, request: Request, file_id: int) -> HttpResponseBase:
        """The bytes of a live file, to be saved and never shown."""
        file = get_file(request, file_id, SessionRole.VIEWER)
        slices = files.open_file(file)
        if slices is None:
            raise NotFound("no such file")
        return download(request, file, slices)


def download(request: Request, file: File, slices: Iterator[bytes]) -> HttpResponseBase:
    """A response with a file that no browser opens with the hub's origin; the number of large ones at a time is
    limited.

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


class AskScope(BasePermission):
    """The permission of calls for files of questions: any token that may ask an agent."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """True if the credential may ask some agent; otherwise raises OutOfScope."""
        identity = request.auth
        if isinstance(identity, Identity) and not identity.may(TokenScope.ASK, agent=identity.only_agent):
            raise OutOfScope(TokenScope.ASK)
        return True


class QuestionFile(TypedDict):
    """A file that its uploader sends with a question. `url`: what the message names the file by.

    `chatId`: the question that came with it first; null before. A file without a question is deleted after a day.
    `hasPreview`: whether `/files/{id}/preview` shows it.
    """

    id: int
    filename: str
    mime: str
    size: int
    sha256: str
    url: Url
    agent: Annotated[str | None, RowSource("agent.handle")]
    chatId: str | None
    hasPreview: bool
    uploadedAt: Time
    expiresAt: Time
    deletedAt: Time | None


def show_question_file(file: File) -> QuestionFile:
    """One QuestionFile; the row must have its agent loaded."""
    return show(
        QuestionFile,
        file,
        url=callers_files.address_of(file.pk),
        chatId=file.chat_id or None,
        hasPreview=callers_files.has_preview(file),
    )


class QuestionFiles(APIView):
    """`/files`"""

    parser_classes = [MultiPartParser]

    def get_permissions(self) -> Sequence[Any]:
        """Uploads take a token that may ask; the list takes one that may read."""
        return [IsAuthenticated(), AskScope()] if self.request.method == "POST" else super().get_permissions()

    @extend_schema(parameters=[PageQuery], responses=Page[QuestionFile])
    def get(self, request: Request) -> Response:
        """The files that you uploaded to ask with, newest first, deleted ones too."""
        found = callers_files.own_files(caller_of(request).pk).select_related("agent").order_by("-pk")
        return page(request, found, lambda rows: [{**show_question_file(row)} for row in rows])

    @extend_schema(
        request={"multipart/form-data": FileForm}, responses={201: QuestionFile, 415: ErrorBody, **OF_UPLOADS}
    )
    def post(self, request: Request) -> Response:
        """Upload a file to ask with, up to 10 MiB; a message names it by its `url`."""
        form = read_form(FileForm, request)
        file = callers_files.add(caller_of(request), callers_files.check_upload(form["file"]))
        return Response(show_question_file(file), status=201)


class FilePreview(APIView):
    """`/files/{id}/preview`"""

    content_negotiation_class = AnyType

    @extend_schema(responses={(200, ANY_MIME): bytes, 429: ErrorBody, 503: ErrorBody})
    def get(self, request: Request, file_id: int) -> HttpResponseBase:
        """A picture or PDF that was sent with a question, for a page of the hub to show."""
        file = get_file(request, file_id, SessionRole.VIEWER)
        slices = files.open_file(file) if callers_files.has_preview(file) else None
        if slices is None:
            raise NotFound("no such file, or it has no preview")
        response = download(request, file, slices)
        response["Content-Type"] = file.mime
        response["Content-Disposition"] = content_disposition_header(False, file.filename) or "inline"
        response["Content-Security-Policy"] = PREVIEW
        response["X-Frame-Options"] = "SAMEORIGIN"
        return response


def get_file(request: Request, file_id: int, at_least: SessionRole) -> File:
    """A file of a session in which the caller has at least this role, or the caller's own of a question.

    Raises:
        NotFound: the file does not exist, or the caller may not see its session.
        PermissionDenied: the caller may read the file, but has only a lower role.
    """
    found = files.find_file(file_id, caller_of(request).pk)
    if found is None:
        raise NotFound("no such file")
    file, role = found
    if role is not None and role < at_least:
        raise PermissionDenied(str(NotAllowed(at_least)))
    return file


class ChannelFile(TypedDict):
    """A file an agent handed out."""

    id: int
    filename: str
    mime: str
    size: int
    sha256: str
    sessionId: Annotated[Uuid, RowSource("session.public_id")]


class ChannelFileForm(FileForm):
    """The part `file`, and the session it goes to."""

    sessionId = serializers.UUIDField()


class OwnSession(serializers.Serializer[Any]):
    """The agent's own session."""

    sessionId = serializers.UUIDField()


class ChannelFiles(APIView):
    """`/api/channel/files`"""

    authentication_classes = [ChannelAuthentication]
    parser_classes = [MultiPartParser]

    @extend_schema(
        auth=[CHANNEL_TOKEN],
        request={"multipart/form-data": ChannelFileForm},
        responses={201: ChannelFile, 404: ErrorBody, **OF_UPLOADS},
    )
    def post(self, request: Request) -> Response:
        """Add a file to a session of the token's owner, or to one they may prompt; up to 10 MiB."""
        form = read_form(ChannelFileForm, request)
        session = get_session(request, form["sessionId"], at_least=SessionRole.PROMPTER)
        file = files.store(session, caller_of(request), form["file"], File.Scope.REPLY)
        return Response(show(ChannelFile, file), status=201)


class OneChannelFile(APIView):
    """`/api/channel/files/{id}`"""

    authentication_classes = [ChannelAuthentication]
    content_negotiation_class = AnyType

    @extend_schema(auth=[CHANNEL_TOKEN], parameters=[OwnSession], responses=DOWNLOAD)
    def get(self, request: Request, file_id: int) -> HttpResponseBase:
        """The bytes of a live file of the session that last came with this token.

        A file that a caller sent is there while the agent answers that caller.
        """
        wanted = read_query(OwnSession, request)["sessionId"]
        own = Session.objects.filter(public_id=wanted, credential_id=identity_of(request).credential_id)
        file = File.objects.live().filter(pk=file_id, session__in=own, session__owner=caller_of(request)).first()
        slices = files.open_file(file) if file and callers_files.may_agent_read(file) else None
        if file is None or slices is None:
            raise NotFound("no such file of this session")
        response = download(request, file, slices)
        response["x-clawborrator-file-name"] = _header_text(file.filename)
        response["x-clawborrator-file-mime"] = file.mime
        response["x-clawborrator-file-size"] = str(file.size)
        return response


def _header_text(name: str) -> str:
    """The name of a file for a header, which the public channel reads as Latin-1 and decodes no further.

    Other characters are percent-encoded. `Content-Disposition` has the unchanged name.
    """
    # macOS sends "u" and a combining diaeresis, which NFC composes to one Latin-1 character.
    composed = unicodedata.normalize("NFC", name)
    return "".join(one if ord(one) < 256 else quote(one) for one in composed)
