"""Accounts over REST: who calls, which sessions and tokens they have, and ending them."""

from typing import Any

from django.conf import settings
from django.db import models
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotAuthenticated, NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.authn import CALLER_KINDS, COOKIE
from accounts.callers import presented_by
from accounts.models import MAX_KEPT_DAYS, Credential, User
from accounts.oauth import flows
from accounts.rest import BySession, Conflict, caller_of, identity_of
from accounts.shapes import (
    ApiToken,
    ApiUser,
    AuthSession,
    Kept,
    MintedAppToken,
    MintedChannelToken,
    RevokedSession,
    SignedIn,
)
from accounts.tokens import Minted, mint_channel
from kit.describe import ErrorBody, Items
from kit.iso import iso, iso_or_none

Kind = Credential.Kind
LISTED = 1000
MIN_PREFIX = 4
HEX = frozenset("0123456789abcdef")
NO_STORE = {"Cache-Control": "no-store"}


class Me(APIView):
    """Whose credential this is."""

    @extend_schema(responses=ApiUser)
    def get(self, request: Request) -> Response:
        """Whose credential this is."""
        return Response(api_user(caller_of(request)))


class RetentionBody(serializers.Serializer[Any]):
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
        body = RetentionBody(data=request.data)
        body.is_valid(raise_exception=True)
        user = caller_of(request)
        user.questions_kept_days = body.validated_data["questionsKeptDays"]
        user.save(update_fields=["questions_kept_days"])
        return Response(_kept(user))


def _kept(user: User) -> Kept:
    return {
        "questionsKeptDays": user.questions_kept_days,
        "hubsQuestionsKeptDays": settings.QUESTIONS_KEPT_DAYS,
    }


class NamedToken(serializers.Serializer[Any]):
    """The body of a mint."""

    name = serializers.CharField(max_length=100)


class ListQuery(serializers.Serializer[Any]):
    """What belongs in a list."""

    includeRevoked = serializers.BooleanField(default=False)


class ChannelTokens(APIView):
    """`/tokens/channel`"""

    @extend_schema(request=NamedToken, responses={201: MintedChannelToken, 429: ErrorBody})
    def post(self, request: Request) -> Response:
        """Make a channel token; its text is in this answer and nowhere else."""
        minted = mint_channel(caller_of(request), _name(request), user_agent=user_agent_of(request))
        shown: MintedChannelToken = {**api_token(minted.credential), "token": minted.token}
        return Response(shown, status=201, headers=NO_STORE)


class Tokens(APIView):
    """`/tokens`"""

    @extend_schema(parameters=[ListQuery], responses=Items[ApiToken])
    def get(self, request: Request) -> Response:
        """The caller's channel and app tokens, newest first."""
        return Response({"items": [api_token(one) for one in _listed(request, [Kind.CHANNEL, Kind.APP])]})


class OneToken(APIView):
    """`/tokens/{id}`"""

    @extend_schema(responses={204: None})
    def delete(self, request: Request, token_id: int) -> Response:
        """Revoke it; again is fine."""
        own = Credential.objects.filter(user=caller_of(request), kind__in=[Kind.CHANNEL, Kind.APP], pk=token_id)
        if not own.exists():
            raise NotFound("no such token")
        own.revoke()
        return Response(status=204)


class MintApp(APIView):
    """`/auth/apps/mint`"""

    permission_classes = [BySession]

    @extend_schema(request=NamedToken, responses={201: MintedAppToken, 429: ErrorBody})
    def post(self, request: Request) -> Response:
        """A new app token, of which one may hold 20."""
        minted = flows.mint_app(caller_of(request), _name(request), user_agent=user_agent_of(request))
        shown: MintedAppToken = {
            "token": minted.token,
            "tokenName": minted.credential.name,
            "kind": "app",
            "createdAt": iso(minted.credential.created_at),
        }
        return Response(shown, status=201, headers=NO_STORE)


class AuthSessions(APIView):
    """`/auth-sessions`"""

    permission_classes = [BySession]

    @extend_schema(parameters=[ListQuery], responses=Items[AuthSession])
    def get(self, request: Request) -> Response:
        """Where the caller is signed in, newest first."""
        current = identity_of(request).credential_id
        return Response({"items": [api_auth_session(one, current) for one in _listed(request, [Kind.SESSION])]})


class RevokeAuthSession(APIView):
    """`/auth-sessions/{prefix}/revoke`"""

    permission_classes = [BySession]

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
        response.delete_cookie(COOKIE, path="/", samesite="Lax")
        return response


def api_user(user: User) -> ApiUser:
    """ApiUser of the native API."""
    return {
        "id": user.pk,
        "githubLogin": user.login,
        "avatarUrl": user.avatar_url or None,
        "isAdmin": user.is_staff,
        "createdAt": iso(user.created_at),
    }


def api_token(credential: Credential) -> ApiToken:
    """ApiToken of the native API."""
    return {
        "id": credential.pk,
        "kind": credential.kind,
        "name": credential.name,
        "prefix": credential.prefix,
        "appName": credential.app_name or None,
        "createdAt": iso(credential.created_at),
        "lastUsedAt": iso_or_none(credential.last_used_at),
        "revokedAt": iso_or_none(credential.revoked_at),
        "machineId": credential.machine_id or None,
        "userAgent": credential.user_agent or None,
    }


def api_auth_session(credential: Credential, current: int) -> AuthSession:
    """AuthSession of the native API; its id is the hash of its token, which is of no use to anybody."""
    return {
        "id": credential.digest,
        "source": "web" if credential.source == Credential.Source.WEB else "cli",
        "userAgent": credential.user_agent or None,
        "machineId": credential.machine_id or None,
        "createdAt": iso(credential.created_at),
        "lastUsedAt": iso(credential.last_used_at or credential.created_at),
        "expiresAt": iso_or_none(credential.expires_at),
        "revokedAt": iso_or_none(credential.revoked_at),
        "isCurrent": credential.pk == current,
    }


def api_session_token(minted: Minted) -> SignedIn:
    """What a command line gets for its code."""
    credential = minted.credential
    return {
        "user": api_user(credential.user),
        "session": {"token": minted.token, "expiresAt": iso_or_none(credential.expires_at)},
    }


def user_agent_of(request: Request) -> str:
    """The program that asks."""
    return str(request.headers.get("User-Agent", ""))


def _name(request: Request) -> str:
    body = NamedToken(data=request.data)
    body.is_valid(raise_exception=True)
    return str(body.validated_data["name"])


def _listed(request: Request, kinds: list[Credential.Kind]) -> models.QuerySet[Credential]:
    query = ListQuery(data=request.query_params)
    query.is_valid(raise_exception=True)
    own = Credential.objects.filter(user=caller_of(request), kind__in=kinds)
    if not query.validated_data["includeRevoked"]:
        own = own.live()
    listed: models.QuerySet[Credential] = own.order_by("-created_at", "-pk")[:LISTED]
    return listed
