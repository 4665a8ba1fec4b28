"""The caller's own account: who they are, how long questions are kept, where they are signed in, signing out."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotAuthenticated, NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import settings
from accounts.api.rendering import ListQuery, listed, show_auth_session
from accounts.authn import CALLER_KINDS, COOKIE, presented_by
from accounts.models import MAX_KEPT_DAYS, Credential, User
from accounts.rest import Body, Conflict, HasBrowserSession, caller_of, check_no_fields, identity_of
from accounts.shapes import ApiUser, AuthSession, Kept, RevokedSession
from kit.describe import ErrorBody, Items
from kit.rows import show


class Me(APIView):
    """Whose credential this is."""

    scope = None  # each but `connect`

    @extend_schema(responses=ApiUser)
    def get(self, request: Request) -> Response:
        """Whose credential this is."""
        return Response(show(ApiUser, caller_of(request)))


class RetentionBody(Body):
    """How long to keep questions; null: as long as the hub does."""

    questionsKeptDays = serializers.IntegerField(min_value=1, max_value=MAX_KEPT_DAYS, allow_null=True)


class Retention(APIView):
    """`/me/retention`"""

    @extend_schema(responses=Kept)
    def get(self, request: Request) -> Response:
        """How long the text of questions to the caller's agents is kept."""
        return Response(_kept(caller_of(request)))

    @extend_schema(request=RetentionBody, responses=Kept)
    def put(self, request: Request) -> Response:
        """Keep it for another time; what is older is blanked within hours."""
        body = RetentionBody.read(request)
        user = caller_of(request)
        user.questions_kept_days = body.validated_data["questionsKeptDays"]
        user.save(update_fields=["questions_kept_days"])
        return Response(_kept(user))


def _kept(user: User) -> Kept:
    return {
        "questionsKeptDays": user.questions_kept_days,
        "hubsQuestionsKeptDays": settings.QUESTIONS_KEPT_DAYS,
    }


Kind = Credential.Kind
MIN_PREFIX = 4
HEX = frozenset("0123456789abcdef")


class AuthSessions(APIView):
    """`/auth-sessions`"""

    permission_classes = [HasBrowserSession]

    @extend_schema(parameters=[ListQuery], responses=Items[AuthSession])
    def get(self, request: Request) -> Response:
        """Where the caller is signed in, newest first."""
        current = identity_of(request).credential_id
        return Response({"items": [show_auth_session(one, current) for one in listed(request, [Kind.SESSION])]})


class RevokeAuthSession(APIView):
    """`/auth-sessions/{prefix}/revoke`"""

    permission_classes = [HasBrowserSession]

    @extend_schema(request=None, responses={200: RevokedSession, 400: ErrorBody, 409: ErrorBody})
    def post(self, request: Request, prefix: str) -> Response:
        """Sign another place out, named by the beginning of its id."""
        wanted = prefix.lower()
        if not MIN_PREFIX <= len(wanted) <= 64 or not HEX.issuperset(wanted):
            raise ValidationError({"prefix": f"want at least {MIN_PREFIX} hex digits of the id"})
        own = Credential.objects.filter(user=caller_of(request), kind=Kind.SESSION, digest__startswith=wanted)
        found = list(own.live()[:2]) or list(own[:2])
        if not found:
            raise NotFound("no such session")
        if len(found) > 1:
            raise Conflict("several sessions begin like this: give more digits")
        if found[0].pk == identity_of(request).credential_id:
            raise Conflict("this is the session you are using: sign out instead")
        check_no_fields(request)
        Credential.objects.filter(pk=found[0].pk).revoke()
        return Response(RevokedSession(ok=True, id=found[0].digest))


class Logout(APIView):
    """`/auth/logout`"""

    authentication_classes = []
    permission_classes = []

    def get_authenticate_header(self, request: Request) -> str:
        """Makes an unknown token a 401."""
        return "Bearer"

    @extend_schema(request=None, responses={204: None, 401: ErrorBody})
    def post(self, request: Request) -> Response:
        """Revoke the credential this comes with; again is fine."""
        token = presented_by(request._request)
        if token is not None:
            presented = Credential.objects.filter(digest=token.digest, kind__in=CALLER_KINDS)
            if not presented.exists() and not token.by_cookie:
                raise NotAuthenticated
            presented.revoke()
        response = Response(status=204)
        response.delete_cookie(COOKIE, path=settings.SESSION_COOKIE_PATH, samesite="Lax")
        return response
