"""Permission requests of the programs of a session: reading and deciding them."""

from typing import Annotated, Literal, TypedDict
from uuid import UUID

from django.db.models import Case, IntegerField, Value, When
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.paging import PageQuery, page
from accounts.rest import Body, Conflict, StrictJSONParser, caller_of
from agents.api.sessions import get_session
from agents.models import PermissionRequest
from agents.transcript import permissions
from agents.transcript.access import Role
from agents.transcript.permissions import MAX_MESSAGE_CHARS, AlreadyResolved, NoSuchRequest
from kit.describe import ErrorBody, Page, Time, Uuid
from kit.rows import Source, show, show_each

DECIDED = Case(
    When(status=PermissionRequest.Status.PENDING, then=Value(0)), default=Value(1), output_field=IntegerField()
)


PermissionStatus = Literal["pending", "allowed", "denied", "expired"]


class ApiPermission(TypedDict):
    """A request of an agent's program for permission."""

    requestId: str
    tool: str
    inputPreview: str
    status: PermissionStatus
    requestedAt: Time
    resolvedAt: Time | None
    resolverLogin: Annotated[str | None, Source("resolver.login")]
    resolvedMessage: Annotated[str | None, Source("message")]


class Permissions(APIView):
    """`/sessions/{id}/permissions`"""

    @extend_schema(parameters=[PageQuery], responses={200: Page[ApiPermission], 403: ErrorBody})
    def get(self, request: Request, public_id: UUID) -> Response:
        """Permission requests, those that wait for a decision first; of each kind the newest first."""
        session = get_session(request, public_id, at_least=Role.APPROVER)
        found = PermissionRequest.objects.filter(session=session).select_related("resolver")
        ordered = found.order_by(DECIDED, "-pk")
        return page(request, ordered, show_each(ApiPermission))


class DecisionBody(Body):
    """Yes or no, and a word about it that the agent reads."""

    decision = serializers.ChoiceField(["allow", "deny"])
    message = serializers.CharField(
        required=False, allow_null=True, allow_blank=True, max_length=MAX_MESSAGE_CHARS
    )


class PermissionDecided(TypedDict):
    """The decision, which stands."""

    ok: Literal[True]
    sessionId: Uuid
    requestId: str
    decision: Literal["allow", "deny"]
    resolverLogin: str
    resolvedAt: Time | None


class ResolvePermission(APIView):
    """`/sessions/{id}/permissions/{requestId}/resolve`"""

    parser_classes = [StrictJSONParser]

    @extend_schema(
        request=DecisionBody, responses={200: PermissionDecided, 403: ErrorBody, 404: ErrorBody, 409: ErrorBody}
    )
    def post(self, request: Request, public_id: UUID, request_id: str) -> Response:
        """Allow or deny a permission request, for good; 409 once it is decided or has run out."""
        session = get_session(request, public_id, at_least=Role.APPROVER)
        body = DecisionBody.read(request)
        resolver, said = caller_of(request), body.validated_data
        try:
            row = permissions.decide(
                session.pk,
                request_id if request_id.isprintable() else "",
                decision=said["decision"],
                resolver_id=resolver.pk,
                message=said.get("message") or "",
            )
        except NoSuchRequest:
            raise NotFound("no such permission request") from None
        except AlreadyResolved as resolved:
            raise Conflict(str(resolved)) from None
        given = {"ok": True, "sessionId": str(session.public_id), "resolverLogin": resolver.login}
        return Response(show(PermissionDecided, row, decision=said["decision"], **given))
