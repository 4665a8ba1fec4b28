"""Tokens of the caller's own: made, listed, revoked."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.listing import ListQuery, listed
from accounts.api.shown import NO_STORE, api_token, user_agent_of
from accounts.models import Credential
from accounts.oauth import issuing
from accounts.rest import Body, BySession, caller_of
from accounts.shapes import ApiToken, MintedAppToken, MintedChannelToken
from accounts.tokens import mint_channel
from kit.describe import ErrorBody, Items
from kit.iso import iso

Kind = Credential.Kind


class NamedToken(Body):
    """The body of a mint."""

    name = serializers.CharField(max_length=100)


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
        return Response({"items": [api_token(one) for one in listed(request, [Kind.CHANNEL, Kind.APP])]})


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
        minted = issuing.mint_app(caller_of(request), _name(request), user_agent=user_agent_of(request))
        shown: MintedAppToken = {
            "token": minted.token,
            "tokenName": minted.credential.name,
            "kind": "app",
            "createdAt": iso(minted.credential.created_at),
        }
        return Response(shown, status=201, headers=NO_STORE)


def _name(request: Request) -> str:
    body = NamedToken(data=request.data)
    body.is_valid(raise_exception=True)
    return str(body.validated_data["name"])
