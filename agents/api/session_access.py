"""REST views of a session's shares, and of the permission requests that its users decide."""

from typing import Annotated, Literal, TypedDict
from uuid import UUID

from django.db.models import Case, IntegerField, Value, When
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.models import User
from accounts.paging import PageQuery, page
from accounts.rest import Body, Conflict, StrictJSONParser, caller_of
from agents.api.sessions import get_session
from agents.models import PermissionRequest, Share
from agents.transcript import permissions
from agents.transcript.access import SessionGone, SessionRole, share_session, unshare_session
from agents.transcript.permissions import MAX_MESSAGE_CHARS, AlreadyResolved, NoSuchRequest
from kit.describe import ErrorBody, Page, Time, Uuid
from kit.rows import RowSource, show, show_each

ShareRole = Literal["viewer", "prompter", "approver"]


class ApiShare(TypedDict):
    """To whom a session is lent; both names of the login are the same."""

    login: Annotated[str, RowSource("user.login")]
    userLogin: Annotated[str, RowSource("user.login")]
    role: ShareRole
    sharedByLogin: Annotated[str, RowSource("shared_by.login")]
    createdAt: Time


class Shared(TypedDict):
    """A share as it now is."""

    ok: Literal[True]
    sessionId: Annotated[Uuid, RowSource("public_id")]
    login: str
    userLogin: str
    role: ShareRole


class Unshared(TypedDict):
    """The number of removed shares: 1, or 0 when there was none."""

    ok: Literal[True]
    sessionId: Annotated[Uuid, RowSource("public_id")]
    login: str
    userLogin: str
    removed: int


class NewShare(Body):
    """The user who gets the share, and the role."""

    login = serializers.CharField(max_length=64)
    role = serializers.ChoiceField(choices=Share.Role.choices)


class SessionShares(APIView):
    """`/sessions/{id}/shares`"""

    @extend_schema(parameters=[PageQuery], responses={200: Page[ApiShare]})
    def get(self, request: Request, public_id: UUID) -> Response:
        """To whom a session is lent, oldest first."""
        session = get_session(request, public_id, at_least=SessionRole.OWNER)
        found = Share.objects.filter(session=session).select_related("user", "shared_by").order_by("pk")
        return page(request, found, show_each(ApiShare))

    @extend_schema(request=NewShare, responses={200: Shared, 201: Shared})
    def post(self, request: Request, public_id: UUID) -> Response:
        """Lend a session to a user, or change their role."""
        session = get_session(request, public_id, at_least=SessionRole.OWNER)
        wanted = NewShare.read(request).validated_data
        role, user = wanted["role"], User.objects.named(wanted["login"])
        if user is None:
            raise NotFound(f"no user has the login {wanted['login']}")
        if user.pk == session.owner_id:
            raise ValidationError({"login": "the session is theirs already"})
        try:
            is_new = share_session(session, user, role, by=caller_of(request))
        except SessionGone:
            raise NotFound("no such session") from None
        answer = show(Shared, session, login=user.login, userLogin=user.login, role=role)
        return Response(answer, status=201 if is_new else 200)


class OneSessionShare(APIView):
    """`/sessions/{id}/shares/{login}`"""

    @extend_schema(responses={200: Unshared})
    def delete(self, request: Request, public_id: UUID, login: str) -> Response:
        """Take a session back from a user; fine when it was not lent to them."""
        session = get_session(request, public_id, at_least=SessionRole.OWNER)
        user = User.objects.named(login)
        named = user.login if user else login
        removed = unshare_session(session, user) if user else 0
        return Response(show(Unshared, session, login=named, userLogin=named, removed=removed))


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
    resolverLogin: Annotated[str | None, RowSource("resolver.login")]
    resolvedMessage: Annotated[str | None, RowSource("message")]


class Permissions(APIView):
    """`/sessions/{id}/permissions`"""

    @extend_schema(parameters=[PageQuery], responses={200: Page[ApiPermission]})
    def get(self, request: Request, public_id: UUID) -> Response:
        """Permission requests, those that wait for a decision first; of each kind the newest first."""
        session = get_session(request, public_id, at_least=SessionRole.APPROVER)
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

    @extend_schema(request=DecisionBody, responses={200: PermissionDecided, 409: ErrorBody})
    def post(self, request: Request, public_id: UUID, request_id: str) -> Response:
        """Allow or deny a permission request, for good; 409 once it is decided or has run out."""
        session = get_session(request, public_id, at_least=SessionRole.APPROVER)
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
        given = {"sessionId": str(session.public_id), "resolverLogin": resolver.login}
        return Response(show(PermissionDecided, row, decision=said["decision"], **given))
