"""Accounts over REST: the caller, how long questions are kept, sign-in sessions, and tokens."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotAuthenticated, NotFound, ValidationError
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import settings
from accounts.authn import CALLER_KINDS, COOKIE, SCOPES_OF_ONE_AGENT, TokenScope, presented_by
from accounts.models import MAX_KEPT_DAYS, USERS_KINDS, Credential, User
from accounts.rest import (
    Body,
    Conflict,
    HasBrowserSession,
    HasUnlimitedToken,
    caller_of,
    check_no_fields,
    identity_of,
)
from accounts.shapes import (
    NO_STORE,
    ApiToken,
    ApiUser,
    AuthSession,
    Kept,
    ListQuery,
    MintedAppToken,
    MintedChannelToken,
    RevokedSession,
    listed,
    show_auth_session,
    show_token,
    user_agent_of,
)
from accounts.tokens import (
    JWT_FORMAT,
    MAX_JWT_LIFETIME,
    Minted,
    TokenLimits,
    find_replaceable,
    mint_app,
    mint_channel,
    rotate,
)
from kit.describe import ErrorBody, Items
from kit.rows import show


class Me(APIView):
    """The user whose credential calls."""

    scope = None  # each but `connect`

    @extend_schema(responses=ApiUser)
    def get(self, request: Request) -> Response:
        """The user whose credential calls."""
        return Response(show(ApiUser, caller_of(request)))


class RetentionBody(Body):
    """The days for which to keep questions; null: as long as the hub does."""

    questionsKeptDays = serializers.IntegerField(min_value=1, max_value=MAX_KEPT_DAYS, allow_null=True)


class Retention(APIView):
    """`/me/retention`"""

    @extend_schema(responses=Kept)
    def get(self, request: Request) -> Response:
        """The days for which the text of questions to the caller's agents is kept."""
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
        """The sign-ins of the caller that are still valid, newest first."""
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
        """Revoke the credential this comes with; a repeated call succeeds."""
        token = presented_by(request._request)
        if token is not None:
            presented = Credential.objects.filter(digest=token.digest, kind__in=CALLER_KINDS)
            if not presented.exists() and not token.by_cookie:
                raise NotAuthenticated
            presented.revoke()
        response = Response(status=204)
        response.delete_cookie(COOKIE, path=settings.SESSION_COOKIE_PATH, samesite="Lax")
        return response


ABSENT = "no such token"
MAX_JWT_LIFETIME_S = int(MAX_JWT_LIFETIME.total_seconds())
HANDLE = r"@?[A-Za-z0-9-]{1,39}/[a-z0-9-]{1,64}"
SCOPE = rf"({'|'.join(TokenScope)})|({'|'.join(SCOPES_OF_ONE_AGENT)}):{HANDLE}"
FOR_ONE_AGENT = ", ".join(f"{scope}:owner/slug" for scope in SCOPES_OF_ONE_AGENT)
UNKNOWN_SCOPE = f"want {', '.join(TokenScope)}; for one agent alone, {FOR_ONE_AGENT}"
ONE_AGENT = "a token for one agent asks and reads it, or connects as it, nothing else"
MIN_LIFETIME_S = 60
MAX_LIFETIME_S = 10 * 365 * 24 * 3600
OVERLAP_S = 3600
MAX_OVERLAP_S = 7 * 24 * 3600


class NamedToken(Body):
    """The body of a mint."""

    name = serializers.CharField(max_length=100)


class NewToken(NamedToken):
    """The body that makes a token. `expires_in`: seconds until the token expires; without: until revoked."""

    expires_in = serializers.IntegerField(
        required=False, allow_null=True, min_value=MIN_LIFETIME_S, max_value=MAX_LIFETIME_S
    )

    def limits(self) -> TokenLimits:
        """The limits of the token that the checked body asks for."""
        body = self.validated_data
        lifetime = timedelta(seconds=body["expires_in"]) if body.get("expires_in") else None
        is_jwt = body.get("format") == JWT_FORMAT
        return TokenLimits(tuple(body.get("scopes") or ()), body.get("agent") or "", lifetime, is_jwt)


class NewAppToken(NewToken):
    """The body of an app token's mint. `scopes`: what it is for; without: all that an app may.

    `agent`: it asks this one alone, and reads its card; `ask` and `read` are the scopes that it may have then. The
    scopes may name it instead: `ask:owner/slug`. `format` `jwt`: others can verify it; it takes `expires_in`.
    """

    scopes = serializers.ListField(
        required=False,
        allow_null=True,
        allow_empty=False,
        child=serializers.RegexField(rf"\A({SCOPE})\Z", error_messages={"invalid": UNKNOWN_SCOPE}),
    )
    agent = serializers.RegexField(rf"\A{HANDLE}\Z", required=False, allow_null=True, max_length=160)
    format = serializers.ChoiceField(choices=["opaque", JWT_FORMAT], default="opaque")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """The scopes in one order, each once, without the agent that they name."""
        asked = [scope.partition(":") for scope in attrs.get("scopes") or ()]
        wanted = {scope for scope, _, _ in asked}
        attrs["agent"] = _find_only_agent(attrs.get("agent") or "", [agent for _, _, agent in asked])
        if attrs["agent"] and wanted - set(SCOPES_OF_ONE_AGENT):
            raise serializers.ValidationError({"scopes": ONE_AGENT})
        if TokenScope.CONNECT in wanted and not attrs["agent"]:
            raise serializers.ValidationError({"scopes": "connect names the agent: connect:owner/name"})
        if attrs["format"] == JWT_FORMAT and not 0 < (attrs.get("expires_in") or 0) <= MAX_JWT_LIFETIME_S:
            needed = f"a JWT expires: give {MIN_LIFETIME_S} to {MAX_JWT_LIFETIME_S} seconds"
            raise serializers.ValidationError({"expires_in": needed})
        attrs["scopes"] = [scope.value for scope in TokenScope if scope in wanted]
        return attrs


def _find_only_agent(given: str, of_scopes: Sequence[str]) -> str:
    """The one agent that a token is for, in lower case; empty: it is for every agent."""
    given = given.removeprefix("@").lower()
    named = {agent.removeprefix("@").lower() or given for agent in of_scopes}
    if given:
        named.add(given)
    if len(named) > 1:
        raise serializers.ValidationError({"scopes": "a token is for one agent in all its scopes, or for none"})
    return named.pop() if named else ""


class Rotation(Body):
    """The seconds for which the old token stays valid; 0: not at all."""

    overlap = serializers.IntegerField(default=OVERLAP_S, min_value=0, max_value=MAX_OVERLAP_S)


class ChannelTokens(APIView):
    """`/tokens/channel`"""

    permission_classes = [IsAuthenticated, HasUnlimitedToken]

    @extend_schema(request=NewToken, responses={201: MintedChannelToken, 429: ErrorBody})
    def post(self, request: Request) -> Response:
        """Make a channel token; its text is in this answer and nowhere else."""
        return _mint(request, NewToken, mint_channel, MintedChannelToken)


class Tokens(APIView):
    """`/tokens`"""

    @extend_schema(parameters=[ListQuery], responses=Items[ApiToken])
    def get(self, request: Request) -> Response:
        """The caller's channel and app tokens, newest first."""
        found = listed(request, USERS_KINDS)
        return Response({"items": [show_token(ApiToken, one) for one in found]})


class OneToken(APIView):
    """`/tokens/{id}`"""

    permission_classes = [IsAuthenticated, HasUnlimitedToken]

    @extend_schema(responses={204: None})
    def delete(self, request: Request, token_id: int) -> Response:
        """Revoke it; a repeated call succeeds."""
        own = Credential.objects.filter(user=caller_of(request), kind__in=USERS_KINDS, pk=token_id)
        if not own.exists():
            raise NotFound(ABSENT)
        own.revoke()
        return Response(status=204)


class RotateToken(APIView):
    """`/tokens/{id}/rotate`"""

    permission_classes = [HasBrowserSession]

    @extend_schema(request=Rotation, responses={201: MintedChannelToken, 429: ErrorBody})
    def post(self, request: Request, token_id: int) -> Response:
        """A new token like this one; the old one stays good for the overlap, an hour unless said otherwise."""
        body = Rotation.read(request)
        old = find_replaceable(caller_of(request), token_id)
        if old is None:
            raise NotFound(ABSENT)
        overlap = timedelta(seconds=body.validated_data["overlap"])
        return _show_minted(MintedChannelToken, rotate(old, overlap=overlap, user_agent=user_agent_of(request)))


class MintApp(APIView):
    """`/auth/apps/mint`"""

    permission_classes = [HasBrowserSession]

    @extend_schema(request=NewAppToken, responses={201: MintedAppToken, 429: ErrorBody})
    def post(self, request: Request) -> Response:
        """A new app token, of which one may hold 20."""
        return _mint(request, NewAppToken, mint_app, MintedAppToken)


def _mint(request: Request, body: type[NewToken], mint: Callable[..., Minted], shape: type[Any]) -> Response:
    """Make the token that the body of a request asks for."""
    wanted = body.read(request)
    name, limits = str(wanted.validated_data["name"]), wanted.limits()
    return _show_minted(shape, mint(caller_of(request), name, user_agent=user_agent_of(request), limits=limits))


def _show_minted(shape: type[Any], minted: Minted) -> Response:
    """The one answer that has the text of the token."""
    shown = show_token(shape, minted.credential, token=minted.token)
    return Response(shown, status=201, headers=NO_STORE)
