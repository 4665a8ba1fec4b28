"""Messages of the caller's own team over REST: queued ones, sessions, and the audit of frames.

Rows of other teams, and absent ones, are the same 404.
"""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from django.core.files.uploadedfile import UploadedFile
from django.http import HttpResponse
from django.urls import path
from django.utils.http import content_disposition_header
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.models import User
from accounts.paging import PageQuery, page, read_filters, read_query
from accounts.rest import Body, Conflict, caller_of, check_no_fields, get_one
from agents.api.files import OF_UPLOADS, AnyType
from gateway.models import FrameRecord, Letter, SessionLog
from gateway.service import session_files
from gateway.service.inbox import delete_message, retry_message
from gateway.service.queue_rows import WAITING, show_frame
from gateway.service.session_rows import SessionUser
from gateway.wire.errors import FrameRefused, GatewayErrorCode
from gateway.wire.frame_types import AGENT_NAME, FRAME_TYPES, MAX_ID_CHARS, read_iso
from kit.asgi import RequestRefused
from kit.concurrency import DOWNLOADS, take_slot
from kit.describe import ErrorBody, Items, Page, Time
from kit.rows import RowSource, Shape, show

MAX_NAME_CHARS = 80
State = Literal["queued", "delivered", "read", "dead"]
Priority = Literal["critical", "high", "normal", "low"]
STATES: Sequence[State] = ("queued", "delivered", "read", "dead")


class ApiLetter(TypedDict):
    """A message that was stored for an agent. `expiresAt` null: it waits for ever. `reason`: why it died."""

    id: int
    agent: Annotated[str, RowSource("recipient.routing_name")]
    sender: str
    messageId: str
    priority: Priority
    state: State
    reason: str | None
    wantsResponse: bool
    bytes: int
    receivedAt: Time
    expiresAt: Time | None
    deliveredAt: Time | None
    readAt: Time | None


class ApiLetterDetail(ApiLetter):
    """A letter with the content and the metadata of its message."""

    content: dict[str, Any]
    metadata: dict[str, Any]


class LetterQuery(PageQuery):
    """The queued messages to list."""

    state = serializers.ChoiceField(required=False, choices=STATES, source="state__in")
    agent = serializers.CharField(required=False, max_length=MAX_NAME_CHARS, source="recipient__routing_name")

    def validate_state(self, state: State) -> Collection[str]:
        """The states of the rows that have this one."""
        return WAITING if state == "queued" else [state]


def _show(shape: type[Shape], one: Letter, **given: Any) -> Shape:
    state = "queued" if one.state in WAITING else one.state
    return show(shape, one, priority=one.get_priority_display().lower(), state=state, **given)


class Letters(APIView):
    """`/team/letters`"""

    @extend_schema(parameters=[LetterQuery], responses=Page[ApiLetter])
    def get(self, request: Request) -> Response:
        """The letters of your team, newest first; `state` and `agent` (a name) take only those."""
        found = Letter.objects.filter(owner=caller_of(request), **read_filters(LetterQuery, request))
        newest_first = found.select_related("recipient").order_by("-pk")
        return page(request, newest_first, lambda rows: [_show(ApiLetter, one) for one in rows], LetterQuery)


class OneLetter(APIView):
    """`/team/letters/{letterId}`"""

    @extend_schema(responses=ApiLetterDetail)
    def get(self, request: Request, letter_id: int) -> Response:
        """One letter with what it says."""
        letter = _get_own(letter_id, caller_of(request))
        carried = show_frame(letter.envelope)
        return Response(_show(ApiLetterDetail, letter, content=carried["content"], metadata=carried["metadata"]))

    @extend_schema(responses={204: None, 409: ErrorBody})
    def delete(self, request: Request, letter_id: int) -> Response:
        """Delete it; 409 while it is being delivered. The sender of one that waits gets an error."""
        if not delete_message(_get_own(letter_id, caller_of(request))):
            raise Conflict("it is being delivered at this moment")
        return Response(status=204)


class LetterRetry(APIView):
    """`/team/letters/{letterId}/retry`"""

    @extend_schema(request=None, responses={202: ApiLetter, 400: ErrorBody, 409: ErrorBody})
    def post(self, request: Request, letter_id: int) -> Response:
        """Let a dead letter wait again, without an end; its sender waits for no reply any more."""
        letter = _get_own(letter_id, caller_of(request))
        check_no_fields(request)
        if not retry_message(letter):
            raise Conflict("only a dead letter is sent again")
        letter.refresh_from_db()
        return Response(_show(ApiLetter, letter), status=202)


def _get_own(letter_id: int, owner: User) -> Letter:
    own = Letter.objects.filter(owner=owner, pk=letter_id)
    return get_one(own.select_related("recipient", "sender_session"), "no such letter")


MEDIA_TYPE = "application/x-ndjson"
STATUS = {  # the rest is 400
    GatewayErrorCode.AGENT_NOT_FOUND: 404,
    GatewayErrorCode.SESSION_NOT_FOUND: 404,
}


class TeamSession(TypedDict):
    """A session of an agent of the team. `importedFrom`: the agent and session that it was exported from."""

    id: Annotated[str, RowSource("session_id")]
    agent: str
    entries: int
    createdAt: Time
    lastActivity: Annotated[Time, RowSource("last_entry_at")]
    state: Literal["active", "committed", "archived"]
    importedFrom: NotRequired[str]


class SessionsQuery(PageQuery):
    """The sessions to list."""

    agent = serializers.RegexField(AGENT_NAME, required=False)


class ExportQuery(serializers.Serializer[Any]):
    """The session to export."""

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
            data = session_files.export_session(user, query["agent"], query["sessionId"])
        except FrameRefused as refused:
            raise _as_http(refused) from None
        name = content_disposition_header(True, f"{query['agent']}-session.jsonl") or "attachment"
        inert = {"X-Content-Type-Options": "nosniff", "Cache-Control": "private, no-store"}
        return HttpResponse(data, content_type=MEDIA_TYPE, headers={"Content-Disposition": name, **inert})


class ImportSessions(APIView):
    """`/team/sessions/import`"""

    parser_classes = [MultiPartParser]

    @extend_schema(
        request={"multipart/form-data": ImportForm},
        responses={201: Items[TeamSession], 404: ErrorBody, **OF_UPLOADS},
    )
    def post(self, request: Request) -> Response:
        """Import all sessions of a file, up to 10 MiB, or none; a session whose id is taken gets a new one."""
        given = ImportForm.read(request).validated_data
        data, index = _bytes_of(given["file"]), _bytes_of(given.get("index"))
        try:
            logs = session_files.import_sessions(_user_of(request), given["agent"], data, index)
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
    if (file.size or 0) > session_files.MAX_FILE_BYTES:
        text = f"a file has at most {session_files.MAX_FILE_BYTES} bytes"
        raise RequestRefused(413, "payload_too_large", text)
    return bytes(file.read())


def _as_http(refused: FrameRefused) -> RequestRefused:
    return RequestRefused(STATUS.get(refused.code, 400), refused.code.name.lower(), str(refused))


MAX_LIVE, LIVE = 200, 50
MAX_PAST, PAST = 500, 100
FARTHEST = 100_000
MAX_PARTY_CHARS = 160
LATEST_MS = 253_370_764_800_000  # the begin of the year 9999
YEARS = range(1970, 9999)  # so that it can be moved to any zone


class ApiFrame(TypedDict):
    """A frame of a client as the audit has it, without its content. `errorCode`: null when it was served.

    `destination`: an agent, `*` for all, `gateway`, or empty when it could not be read. `latencyMs`: until the
    gateway had served or refused it.
    """

    messageId: str | None
    at: Time
    source: str
    destination: str
    type: str
    outcome: Literal["served", "refused", "dropped", "failed"]
    errorCode: int | None
    bytes: int
    latencyMs: int
    sessionId: str | None


@extend_schema_field(str)
class InstantField(serializers.Field):  # type: ignore[type-arg]
    """A time as ISO 8601, or as Unix milliseconds."""

    def to_internal_value(self, data: Any) -> datetime:
        """The value as a datetime."""
        text = str(data)
        if text.isascii() and text.isdigit() and len(text) <= len(str(LATEST_MS)) and int(text) <= LATEST_MS:
            return datetime.fromtimestamp(int(text) / 1000, UTC)
        if (moment := read_iso(text)) is not None and moment.year in YEARS:
            return moment
        raise serializers.ValidationError("want a time as ISO 8601, or Unix milliseconds")


class LiveQuery(serializers.Serializer[Any]):
    """The wanted number of newest frames, and the earliest time."""

    limit = serializers.IntegerField(default=LIVE, min_value=1, max_value=MAX_LIVE)
    since = InstantField(required=False, source="at__gte")


class HistoryQuery(serializers.Serializer[Any]):
    """The frames to list: `from` a client, `to` an agent, of a type, from `since` on, before `until`."""

    to = serializers.CharField(required=False, max_length=MAX_PARTY_CHARS, source="destination")
    type = serializers.ChoiceField(required=False, choices=sorted(FRAME_TYPES))
    since = InstantField(required=False, source="at__gte")
    until = InstantField(required=False, source="at__lt")
    limit = serializers.IntegerField(default=PAST, min_value=1, max_value=MAX_PAST)
    offset = serializers.IntegerField(default=0, min_value=0, max_value=FARTHEST)

    def get_fields(self) -> Any:
        """The fields, with the one whose name is reserved in Python."""
        sender = serializers.CharField(required=False, max_length=MAX_PARTY_CHARS, source="source")
        return super().get_fields() | {"from": sender}


class LiveFrames(APIView):
    """`/live`"""

    @extend_schema(parameters=[LiveQuery], responses=Items[ApiFrame])
    def get(self, request: Request) -> Response:
        """The newest frames of the clients of one's team."""
        return Response(_list_frames(request, **read_query(LiveQuery, request)))


class FrameHistory(APIView):
    """`/history`"""

    @extend_schema(parameters=[HistoryQuery], responses=Items[ApiFrame])
    def get(self, request: Request) -> Response:
        """The frames of the clients of one's team, as long as the team keeps them."""
        return Response(_list_frames(request, **read_query(HistoryQuery, request)))


def _list_frames(request: Request, *, limit: int, offset: int = 0, **wanted: Any) -> Items[ApiFrame]:
    found = FrameRecord.objects.filter(owner=caller_of(request), **wanted).order_by("-at", "-pk")
    rows = found[offset : offset + limit]
    return {"items": [show(ApiFrame, row, errorCode=row.error_code or None) for row in rows]}


urlpatterns = [
    path("team/letters", Letters.as_view(), name="team-letters"),
    path("team/letters/<int:letter_id>", OneLetter.as_view(), name="team-letter"),
    path("team/letters/<int:letter_id>/retry", LetterRetry.as_view(), name="team-letter-retry"),
    path("team/sessions", TeamSessions.as_view(), name="team-sessions"),
    path("team/sessions/export", ExportSession.as_view(), name="team-session-export"),
    path("team/sessions/import", ImportSessions.as_view(), name="team-session-import"),
]
audit_urlpatterns = [  # at `/api/a2a/`
    path("live", LiveFrames.as_view(), name="gateway-live"),
    path("history", FrameHistory.as_view(), name="gateway-history"),
]
