"""The hub as the authorization server of clients that register themselves: metadata, registration, tokens.

Where a user allows a client is `pages.consent`.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, NotRequired, TypedDict

from django.http import HttpRequest, JsonResponse
from django.urls import reverse
from django.views.decorators.http import require_safe
from drf_spectacular.utils import extend_schema
from rest_framework.parsers import FormParser
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import settings
from accounts.errors import UnsupportedGrant
from accounts.oauth import authorization_requests, clients, codes, refreshing
from accounts.oauth.authorization_requests import is_client_redirect, one
from accounts.oauth.clients import RegisteredClient, RegistrationRequest, get_client
from accounts.oauth.codes import CodeHolder, Purpose
from accounts.oauth.shapes import ClientToken
from accounts.oauth.views import PublicView
from accounts.shapes import NO_STORE, user_agent_of
from accounts.throttle import check_address
from accounts.tokens import Minted
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
    """An app token. `expires_in`: seconds after which the client has to refresh it or to sign in again.

    `refresh_token`: the next one of a client that registered for them.
    """

    access_token: str
    token_type: str
    scope: str
    expires_in: int
    refresh_token: NotRequired[str]


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
        "grant_types_supported": list(GRANTS),
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
            "grant_types": client.grant_types,
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        }
        return Response(shown, status=201, headers=NO_STORE)


class TokenOfClient(PublicView):
    """`/auth/clients/token`"""

    parser_classes = [FormParser]

    @extend_schema(request={FORM: ClientToken}, responses={200: GrantedToken, 429: ErrorBody})
    def post(self, request: Request) -> Response:
        """An app token for the code or the refresh token that a registered client got."""
        check_address(request._request, "exchange")
        given: Any = request.data
        grant = GRANTS.get(one(given, "grant_type"))
        if grant is None:
            raise UnsupportedGrant(f"grant_type: want {' or '.join(GRANTS)}")
        client = get_client(one(given, "client_id"))
        clients.check_resource(one(given, "resource"))
        minted = grant(given, client, user_agent_of(request))
        is_refreshed = bool(minted.refresh_token)
        lifetime = refreshing.TOLD_LIFETIME if is_refreshed else codes.CLIENT_TOKEN_LIFETIME
        shown: GrantedToken = {
            "access_token": minted.token,
            "token_type": "Bearer",
            "scope": minted.credential.scopes,
            "expires_in": int(lifetime.total_seconds()),
        }
        if is_refreshed:
            shown["refresh_token"] = minted.refresh_token
        return Response(shown, headers=NO_STORE)


def _exchange_code(given: Any, client: RegisteredClient, user_agent: str) -> Minted:
    code, verifier = authorization_requests.read_text(given, "code"), one(given, "code_verifier")
    holder = CodeHolder(client, one(given, "redirect_uri"))
    return codes.exchange(code, verifier, Purpose.CLIENT, user_agent=user_agent, holder=holder)


def _refresh(given: Any, client: RegisteredClient, user_agent: str) -> Minted:
    token, scope = (authorization_requests.read_text(given, name) for name in ("refresh_token", "scope"))
    return refreshing.refresh(token, client, scope, user_agent=user_agent)


GRANTS: Mapping[str, Callable[[Any, RegisteredClient, str], Minted]] = {
    clients.CODE_GRANT: _exchange_code,
    clients.REFRESH_GRANT: _refresh,
}
