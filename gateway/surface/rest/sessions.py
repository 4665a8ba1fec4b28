"""Sessions of a team over REST: a list, and exports and imports that are larger than a frame."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from django.core.files.uploadedfile import UploadedFile
from django.http import HttpResponse
from django.urls import path
from django.utils.http import content_disposition_header
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.paging import PageQuery, page, read_filters, read_query
from accounts.rest import Body, caller_of
from agents.api.files import OF_UPLOADS, AnyType
from gateway.models import SessionLog
from gateway.service.sessions import transfer
from gateway.service.sessions.rows import SessionUser
from gateway.wire.errors import ErrorCode, FrameRefused
from gateway.wire.frame_types import AGENT_NAME, MAX_ID_CHARS
from kit.asgi import RequestRefused
from kit.concurrency import DOWNLOADS, take_slot
from kit.describe import ErrorBody, Items, Page, Time
from kit.rows import Source, show

MEDIA_TYPE = "application/x-ndjson"
STATUS = {  # the rest is 400
    ErrorCode.AGENT_NOT_FOUND: 404,
    ErrorCode.SESSION_NOT_FOUND: 404,
}


class TeamSession(TypedDict):
    """A session of an agent of the team. `importedFrom`: the agent and session that it was exported from."""

    id: Annotated[str, Source("session_id")]
    agent: str
    entries: int
    createdAt: Time
    lastActivity: Annotated[Time, Source("last_entry_at")]
    state: Literal["active", "committed", "archived"]
    importedFrom: NotRequired[str]


class SessionsQuery(PageQuery):
    """Which sessions to list."""

    agent = serializers.RegexField(AGENT_NAME, required=False)


class ExportQuery(serializers.Serializer[Any]):
    """Which session to export."""

    agent = serializers.RegexField(AGENT_NAME)
    sessionId = serializers.CharField(max_length=MAX_ID_CHARS, trim_whitespace=False)


class ImportForm(Body):
    """The file, the agent that gets its sessions, and the file's `sessions.json`, if it has one."""

    agent = serializers.RegexField(AGENT_NAME)
    file = serializers.FileField()
    index = serializers.FileField(required=False)


class TeamSessions(APIView):
    """`/team/sessions`"""

    @extend_schema(parameters=[SessionsQuery], responses=Page[TeamSession])
    def get(self, request: Request) -> Response:
        """The sessions of the caller's team, newest first, archived ones too; `agent` takes only those of one."""
        found = SessionLog.objects.filter(owner=caller_of(request), **read_filters(SessionsQuery, request))
        return page(request, found.order_by("-pk"), show_sessions, SessionsQuery)


class ExportSession(APIView):
    """`/team/sessions/export`"""

    content_negotiation_class = AnyType

    @extend_schema(
        parameters=[ExportQuery],
        responses={(200, MEDIA_TYPE): bytes, 404: ErrorBody, 429: ErrorBody, 503: ErrorBody},
    )
    def get(self, request: Request) -> HttpResponse:
        """A session as `session.jsonl`: a header line, and a line for each entry."""
        query, user = read_query(ExportQuery, request), _user_of(request)
        take_slot(request, DOWNLOADS, user.owner_id)
        try:
            data = transfer.export_session(user, query["agent"], query["sessionId"])
        except FrameRefused as refused:
            raise _as_http(refused) from None
        response = HttpResponse(data, content_type=MEDIA_TYPE)
        name = content_disposition_header(True, f"{query['agent']}-session.jsonl")
        response["Content-Disposition"] = name or "attachment"
        response["X-Content-Type-Options"] = "nosniff"
        response["Cache-Control"] = "private, no-store"
        return response


class ImportSessions(APIView):
    """`/team/sessions/import`"""

    parser_classes = [MultiPartParser]

    @extend_schema(
        request={"multipart/form-data": ImportForm},
        responses={201: Items[TeamSession], 404: ErrorBody, 413: ErrorBody, **OF_UPLOADS},
    )
    def post(self, request: Request) -> Response:
        """Import all sessions of a file, up to 10 MiB, or none; a session whose id is taken gets a new one."""
        given = ImportForm.read(request).validated_data
        data, index = _bytes_of(given["file"]), _bytes_of(given.get("index"))
        try:
            logs = transfer.import_sessions(_user_of(request), given["agent"], data, index)
        except FrameRefused as refused:
            raise _as_http(refused) from None
        return Response({"items": show_sessions(logs)}, status=201)


def show_sessions(logs: Sequence[SessionLog]) -> list[TeamSession]:
    """Sessions without their entries."""
    return [show(TeamSession, log) for log in logs]


def _user_of(request: Request) -> SessionUser:
    caller = caller_of(request)
    return SessionUser(caller.pk, caller.login)


def _bytes_of(file: "UploadedFile[bytes] | None") -> bytes:
    if file is None:
        return b""
    if (file.size or 0) > transfer.MAX_FILE_BYTES:
        text = f"a file has at most {transfer.MAX_FILE_BYTES} bytes"
        raise RequestRefused(413, "payload_too_large", text)
    return bytes(file.read())


def _as_http(refused: FrameRefused) -> RequestRefused:
    return RequestRefused(STATUS.get(refused.code, 400), refused.code.name.lower(), str(refused))


urlpatterns = [
    path("team/sessions", TeamSessions.as_view(), name="team-sessions"),
    path("team/sessions/export", ExportSession.as_view(), name="team-session-export"),
    path("team/sessions/import", ImportSessions.as_view(), name="team-session-import"),
]
