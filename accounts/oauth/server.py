"""The hub as the authorization server of clients that register themselves: metadata, registration, tokens.

Where a user allows a client is `pages.consent`.
"""

import time
from typing import Any, TypedDict

from django.http import HttpRequest, JsonResponse
from django.urls import reverse
from django.views.decorators.http import require_safe
from drf_spectacular.utils import extend_schema
from rest_framework.parsers import FormParser
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import settings
from accounts.api.rendering import NO_STORE, user_agent_of
from accounts.errors import UnsupportedGrant
from accounts.oauth import authorization_requests, clients, codes
from accounts.oauth.authorization_requests import is_client_redirect, one
from accounts.oauth.clients import RegistrationRequest, get_client
from accounts.oauth.codes import Purpose
from accounts.oauth.shapes import ClientToken
from accounts.oauth.views import PublicView
from accounts.throttle import check_address
from kit.describe import ErrorBody

KEPT = "public, max-age=300"
FORM = "application/x-www-form-urlencoded"


class Registration(TypedDict):
    """A registered client (RFC 7591)."""

    client_id: str
    client_id_issued_at: int
    client_name: str
    redirect_uris: list[str]
    grant_types: list[str]
    response_types: list[str]
    token_endpoint_auth_method: str


class GrantedToken(TypedDict):
    """An app token. `expires_in`: seconds after which the client has to sign in again."""

    access_token: str
    token_type: str
    scope: str
    expires_in: int


@require_safe
def metadata(request: HttpRequest) -> JsonResponse:
    """`/.well-known/oauth-authorization-server` (RFC 8414)."""
    here = settings.PUBLIC_ORIGIN
    shown: dict[str, Any] = {
        "issuer": settings.PUBLIC_URL,
        "authorization_endpoint": f"{here}{reverse('consent')}",
        "token_endpoint": f"{here}{reverse('client-token')}",
        "registration_endpoint": f"{here}{reverse('register-client')}",
        "jwks_uri": f"{here}{reverse('jwks')}",
        "scopes_supported": [str(scope) for scope in clients.SCOPES],
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code"],
        "token_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
    }
    return JsonResponse(shown, headers={"Access-Control-Allow-Origin": "*", "Cache-Control": KEPT})


class RegisterClient(PublicView):
    """`/auth/clients`"""

    @extend_schema(request=RegistrationRequest, responses={201: Registration, 429: ErrorBody})
    def post(self, request: Request) -> Response:
        """Register a client: its id holds what it registered, and nothing is stored."""
        check_address(request._request, "start")
        client = clients.register(request.data, is_client_redirect)
        shown: Registration = {
            "client_id": client.client_id,
            "client_id_issued_at": int(time.time()),
            "client_name": client.name,
            "redirect_uris": list(client.redirect_uris),
            "grant_types": ["authorization_code"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        }
        return Response(shown, status=201, headers=NO_STORE)


class TokenOfClient(PublicView):
    """`/auth/clients/token`"""

    parser_classes = [FormParser]

    @extend_schema(request={FORM: ClientToken}, responses={200: GrantedToken, 429: ErrorBody})
    def post(self, request: Request) -> Response:
        """An app token for the code that a registered client got."""
        check_address(request._request, "exchange")
        given: Any = request.data
        if one(given, "grant_type") != "authorization_code":
            raise UnsupportedGrant("grant_type: want authorization_code")
        client = get_client(one(given, "client_id"))
        clients.check_resource(one(given, "resource"))
        minted = codes.exchange(
            authorization_requests.read_text(given, "code"),
            one(given, "code_verifier"),
            Purpose.CLIENT,
            user_agent=user_agent_of(request),
            client_digest=client.digest_for(one(given, "redirect_uri")),
        )
        shown: GrantedToken = {
            "access_token": minted.token,
            "token_type": "Bearer",
            "scope": minted.credential.scopes,
            "expires_in": int(codes.CLIENT_TOKEN_LIFETIME.total_seconds()),
        }
        return Response(shown, headers=NO_STORE)
