"""The users who may see and steer a session of another owner."""

from typing import Annotated, Literal, TypedDict
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.models import User
from accounts.paging import PageQuery, page
from accounts.rest import Body, caller_of
from agents.api.sessions import get_session
from agents.models import Share
from agents.transcript.access import Role, SessionGone, share_session, unshare_session
from kit.describe import ErrorBody, Page, Time, Uuid
from kit.rows import Source, show_each

ShareRole = Literal["viewer", "prompter", "approver"]


class ApiShare(TypedDict):
    """To whom a session is lent; both names of the login are the same."""

    login: Annotated[str, Source("user.login")]
    userLogin: Annotated[str, Source("user.login")]
    role: ShareRole
    sharedByLogin: Annotated[str, Source("shared_by.login")]
    createdAt: Time


class Shared(TypedDict):
    """A share as it now is."""

    ok: Literal[True]
    sessionId: Uuid
    login: str
    userLogin: str
    role: ShareRole


class Unshared(TypedDict):
    """How many shares were removed: 1, or 0 when there was none."""

    ok: Literal[True]
    sessionId: Uuid
    login: str
    userLogin: str
    removed: int


class NewShare(Body):
    """Whom to lend it to, and what for."""

    login = serializers.CharField(max_length=64)
    role = serializers.ChoiceField(choices=Share.Role.choices)


class Shares(APIView):
    """`/sessions/{id}/shares`"""

    @extend_schema(parameters=[PageQuery], responses={200: Page[ApiShare], 403: ErrorBody})
    def get(self, request: Request, public_id: UUID) -> Response:
        """To whom a session is lent, oldest first."""
        session = get_session(request, public_id, at_least=Role.OWNER)
        found = Share.objects.filter(session=session).select_related("user", "shared_by").order_by("pk")
        return page(request, found, show_each(ApiShare))

    @extend_schema(request=NewShare, responses={200: Shared, 201: Shared})
    def post(self, request: Request, public_id: UUID) -> Response:
        """Lend a session to a user, or change their role."""
        session = get_session(request, public_id, at_least=Role.OWNER)
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
        answer: Shared = {
            "ok": True,
            "sessionId": str(public_id),
            "login": user.login,
            "userLogin": user.login,
            "role": role,
        }
        return Response(answer, status=201 if is_new else 200)


class OneShare(APIView):
    """`/sessions/{id}/shares/{login}`"""

    @extend_schema(responses={200: Unshared})
    def delete(self, request: Request, public_id: UUID, login: str) -> Response:
        """Take a session back from a user; fine when it was not lent to them."""
        session = get_session(request, public_id, at_least=Role.OWNER)
        user = User.objects.named(login)
        named = user.login if user else login
        answer: Unshared = {
            "ok": True,
            "sessionId": str(public_id),
            "login": named,
            "userLogin": named,
            "removed": unshare_session(session, user) if user else 0,
        }
        return Response(answer)
