"""Who else may see and steer a session."""

from typing import Literal, TypedDict, cast
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
from kit.clock import iso
from kit.describe import ErrorBody, Page, Time, Uuid

ShareRole = Literal["viewer", "prompter", "approver"]


class ApiShare(TypedDict):
    """To whom a session is lent; both names of the login are the same."""

    login: str
    userLogin: str
    role: ShareRole
    sharedByLogin: str
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
        return page(request, found, lambda rows: [show_share(share) for share in rows])

    @extend_schema(request=NewShare, responses={200: Shared, 201: Shared})
    def post(self, request: Request, public_id: UUID) -> Response:
        """Lend a session to a user, or change their role."""
        session = get_session(request, public_id, at_least=Role.OWNER)
        body = NewShare(data=request.data)
        body.is_valid(raise_exception=True)
        role, user = body.validated_data["role"], _find_user(body.validated_data["login"])
        if user is None:
            raise NotFound(f"no user has the login {body.validated_data['login']}")
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
        user = _find_user(login)
        named = user.login if user else login
        answer: Unshared = {
            "ok": True,
            "sessionId": str(public_id),
            "login": named,
            "userLogin": named,
            "removed": unshare_session(session, user) if user else 0,
        }
        return Response(answer)


def show_share(share: Share) -> ApiShare:
    """One share, for the session's owner."""
    return {
        "login": share.user.login,
        "userLogin": share.user.login,
        "role": cast(ShareRole, share.role),
        "sharedByLogin": share.shared_by.login,
        "createdAt": iso(share.created_at),
    }


def _find_user(login: str) -> User | None:
    return User.objects.named(login) if login.isprintable() else None
