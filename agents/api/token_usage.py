"""Token usage: agents' programs report it, owners read it."""

from typing import Annotated, Any, Literal, TypedDict
from uuid import UUID

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound, PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.authn import Identity
from accounts.models import Credential, User
from accounts.paging import read_query
from accounts.rest import Body, ChannelAuthentication, CredentialAuthentication, caller_of, get_one, identity_of
from agents.api.events import MAX_ID
from agents.api.sessions import get_session
from agents.models import Session, TokenUsage
from agents.transcript.access import Role, SessionGone
from agents.transcript.token_usage import ModelUsage, store_usage_report
from kit.describe import BEARER, CHANNEL_TOKEN, COOKIE, Done, ErrorBody, Time, Uuid
from kit.rows import Source, show

HIGHEST_LIMIT = 1000
MAX_MODELS = 100
SNAPSHOTS = 10_000
READERS: list[Any] = [{BEARER: []}, {COOKIE: []}]
REPORTERS = [*READERS, {CHANNEL_TOKEN: []}]
UsageReason = Literal["hourly", "final"]


class UsageRow(TypedDict):
    """Counters of one model in one run of a program, up to one moment."""

    id: int
    sessionId: Annotated[Uuid, Source("session.public_id")]
    ccSessionId: str
    ownerId: int
    capturedAt: Time
    model: str
    inputTokens: int
    outputTokens: int
    cacheReadTokens: int
    cacheCreationTokens: int
    reason: UsageReason


class SessionUsage(TypedDict):
    """The rows of one session, oldest first."""

    sessionId: Uuid
    snapshots: list[UsageRow]
    nextCursor: int | None


class UsagePage(TypedDict):
    """Rows, oldest first; with `nextCursor` as `cursor` come the next ones."""

    rows: list[UsageRow]
    nextCursor: int | None


def _counter(source: str) -> serializers.IntegerField:
    return serializers.IntegerField(source=source, default=0, min_value=0, max_value=MAX_ID)


class OneModel(Body):
    """Counters of one model."""

    model = serializers.CharField(max_length=128)
    inputTokens = _counter("input_tokens")
    outputTokens = _counter("output_tokens")
    cacheReadTokens = _counter("cache_read_tokens")
    cacheCreationTokens = _counter("cache_creation_tokens")


class NewUsage(Body):
    """A report."""

    capturedAt = serializers.DateTimeField()
    ccSessionId = serializers.CharField(max_length=128)
    reason = serializers.ChoiceField(choices=TokenUsage.Reason.choices)
    models = serializers.ListField(child=OneModel(), min_length=1, max_length=MAX_MODELS)


class SpanQuery(serializers.Serializer[Any]):
    """Captured when, both ends counted; `cursor`: rows after this id."""

    since = serializers.DateTimeField(required=False, source="captured_at__gte")
    until = serializers.DateTimeField(required=False, source="captured_at__lte")
    cursor = serializers.IntegerField(default=0, min_value=0, max_value=MAX_ID, source="pk__gt")


class UsageQuery(SpanQuery):
    """Which part, and for staff: whose."""

    limit = serializers.IntegerField(default=HIGHEST_LIMIT, min_value=1)
    ownerId = serializers.IntegerField(required=False, source="owner_id", min_value=0, max_value=MAX_ID)


class ReporterAuthentication(ChannelAuthentication):
    """An agent's program may report; reading is for people and their apps."""

    def authenticate(self, request: Request) -> tuple[User, Identity] | None:
        """The token's owner; None without a live channel token."""
        return super().authenticate(request) if request.method == "POST" else None


class SessionTokenUsage(APIView):
    """`/sessions/{id}/token-usage`"""

    authentication_classes = [CredentialAuthentication, ReporterAuthentication]

    @extend_schema(parameters=[SpanQuery], responses=SessionUsage, auth=READERS)
    def get(self, request: Request, public_id: UUID) -> Response:
        """The usage that a session's programs reported, oldest first."""
        session = get_session(request, public_id)
        found = TokenUsage.objects.filter(session=session, **read_query(SpanQuery, request))
        rows, cursor = _page(found, SNAPSHOTS)
        answer: SessionUsage = {"sessionId": str(public_id), "snapshots": rows, "nextCursor": cursor}
        return Response(answer)

    @extend_schema(request=NewUsage, responses={201: Done, 429: ErrorBody}, auth=REPORTERS)
    def post(self, request: Request, public_id: UUID) -> Response:
        """Report counters of one run of a program: by the session's owner, or with its channel token."""
        session = _get_own(request, public_id)
        report = NewUsage.read(request).validated_data
        models = [ModelUsage(**one) for one in report["models"]]
        try:
            store_usage_report(session, report["ccSessionId"], report["capturedAt"], report["reason"], models)
        except SessionGone:
            raise NotFound("no such session") from None
        return Response({"ok": True}, status=201)


class AllTokenUsage(APIView):
    """`/token-usage`"""

    @extend_schema(parameters=[UsageQuery], responses={200: UsagePage, 403: ErrorBody})
    def get(self, request: Request) -> Response:
        """The usage that programs of the caller's sessions reported, oldest first; staff may name an owner."""
        wanted, caller = read_query(UsageQuery, request), caller_of(request)
        limit = min(wanted.pop("limit"), HIGHEST_LIMIT)
        if wanted.setdefault("owner_id", caller.pk) != caller.pk and not caller.is_staff:
            raise PermissionDenied("only staff may name another owner")
        rows, cursor = _page(TokenUsage.objects.filter(**wanted), limit)
        answer: UsagePage = {"rows": rows, "nextCursor": cursor}
        return Response(answer)


def _get_own(request: Request, public_id: UUID) -> Session:
    """The session of a report: the caller's own, or one that was registered with their channel token."""
    if identity_of(request).kind != Credential.Kind.CHANNEL:
        return get_session(request, public_id, at_least=Role.OWNER)
    registered = Session.objects.filter(owner=caller_of(request), credential_id=identity_of(request).credential_id)
    return get_one(registered.filter(public_id=public_id), "no such session")


def _page(rows: QuerySet[TokenUsage], limit: int) -> tuple[list[UsageRow], int | None]:
    shown = [show(UsageRow, row) for row in rows.select_related("session").order_by("pk")[: limit + 1]]
    return shown[:limit], shown[limit - 1]["id"] if len(shown) > limit else None
