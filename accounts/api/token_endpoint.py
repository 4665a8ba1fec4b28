"""The endpoints where command lines, apps, devices and registered clients get a token: `/auth/oauth/token`,
`/auth/spa`, `/auth/device`, `/auth/clients`, and the metadata of the hub as an authorization server.

`pages.consent` is the page where a user allows a client.
"""

import time
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, NotRequired, TypedDict
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.views.decorators.http import require_safe
from drf_spectacular.utils import OpenApiParameter, extend_schema
from msgspec import UNSET, Meta, Struct, UnsetType
from rest_framework.exceptions import ParseError
from rest_framework.parsers import FormParser
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import settings
from accounts.api.sign_in import PublicView, client_parameters, redirect_once
from accounts.authn import find_caller
from accounts.errors import InvalidGrant, UnsupportedGrant
from accounts.oauth import clients, grants
from accounts.oauth.clients import (
    MACHINE_ID,
    MAX_APP_NAME_CHARS,
    VERIFIER,
    RegisteredClient,
    RegistrationRequest,
    get_client,
    one,
    read_text,
)
from accounts.oauth.grants import Purpose
from accounts.oauth.signin_methods import check_signin_possible, find_signin_methods
from accounts.shapes import (
    NO_STORE,
    DeviceCodes,
    DeviceGranted,
    ExchangedApp,
    SignedIn,
    user_agent_of,
)
from accounts.throttle import check_address
from accounts.tokens import Minted
from kit.describe import ErrorBody, as_pattern
from kit.rows import Always, RowSource, show

KEPT = "public, max-age=300"
FORM = "application/x-www-form-urlencoded"
APP_START = [
    *client_parameters(required=True),
    OpenApiParameter("app_name", str, required=True, description="what the user is told"),
]


class CodeExchange(Struct):
    """A code, and the verifier of the challenge it was asked for with."""

    code: str
    code_verifier: Annotated[str, Meta(pattern=as_pattern(VERIFIER.pattern))]


class ClientToken(Struct):
    """The code of a registered client, with `redirect_uri` and `code_verifier`; or its refresh token.

    `scope`: with a refresh token, some of the scopes that the user allowed; without, all of these.
    """

    grant_type: Literal["authorization_code", "refresh_token"]
    client_id: str
    code: str = ""
    redirect_uri: str = ""
    code_verifier: Annotated[str, Meta(pattern=as_pattern(VERIFIER.pattern))] | UnsetType = UNSET
    refresh_token: str = ""
    scope: str = ""
    resource: str = ""


class DeviceStart(Struct):
    """The app that starts, and its machine."""

    app_name: Annotated[str, Meta(min_length=1, max_length=MAX_APP_NAME_CHARS)]
    machine_id: Annotated[str, Meta(pattern=as_pattern(MACHINE_ID.pattern))] = ""


class DevicePoll(Struct):
    """The device's own code."""

    device_code: str


class Registration(TypedDict):
    """A registered client (RFC 7591)."""

    client_id: str
    client_id_issued_at: int
    client_name: Annotated[str, RowSource("name")]
    redirect_uris: list[str]
    grant_types: list[str]
    response_types: Annotated[list[str], Always(("code",))]
    token_endpoint_auth_method: Annotated[str, Always("none")]


class GrantedToken(TypedDict):
    """An app token. `expires_in`: seconds after which the client has to refresh it or to sign in again.

    `refresh_token`: the next one of a client that registered for them.
    """

    access_token: Annotated[str, RowSource("token")]
    token_type: Annotated[str, Always("Bearer")]
    scope: Annotated[str, RowSource("credential.scopes")]
    expires_in: int
    refresh_token: NotRequired[str]


def field(request: Request, name: str) -> str:
    """A text of the body; nothing when it is absent.

    Raises:
        ParseError: the body is no object, or the field no text that can be stored.
    """
    body: Any = request.data
    value = body.get(name) if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(value or "", str):
        raise ParseError(f"want an object with the text {name}")
    text = value or ""
    if "\0" in text or (not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text)):
        raise ParseError(f"{name}: text may hold neither NUL nor a lone surrogate")
    return text


def _exchange_code(request: Request, purpose: Purpose) -> Minted:
    """Exchange the code in the body of a request for a token."""
    code, verifier = field(request, "code"), field(request, "code_verifier")
    return grants.exchange_code(code, verifier, purpose, user_agent=user_agent_of(request))


class OAuthToken(PublicView):
    """`/auth/oauth/token`"""

    @extend_schema(request=CodeExchange, responses={200: SignedIn, 429: ErrorBody, 503: ErrorBody})
    def post(self, request: Request) -> Response:
        """A session for a command line's code."""
        check_address(request._request, "exchange")
        check_signin_possible()
        return Response(show(SignedIn, _exchange_code(request, Purpose.CLI)), headers=NO_STORE)


class SpaStart(PublicView):
    """`/auth/spa/start`"""

    @extend_schema(parameters=APP_START, responses={302: None, 429: ErrorBody, 503: ErrorBody})
    def get(self, request: Request) -> HttpResponse:
        """To the page where the user allows the app, signed in first where needed."""
        raw = request._request
        check_address(raw, "start")
        clients.read_app(raw.GET)
        consent = f"{reverse('consent')}?{raw.GET.urlencode()}"
        if find_caller(raw) is not None:
            return redirect_once(consent)
        check_signin_possible()
        first = "oauth-start" if find_signin_methods().is_github_alone else "signin"
        return redirect_once(f"{reverse(first)}?{urlencode({'next': consent})}")


class SpaExchange(PublicView):
    """`/auth/spa/exchange`"""

    @extend_schema(request=CodeExchange, responses={200: ExchangedApp, 429: ErrorBody})
    def post(self, request: Request) -> Response:
        """An app token for an app's code."""
        check_address(request._request, "exchange")
        return Response(show(ExchangedApp, _exchange_code(request, Purpose.APP)), headers=NO_STORE)


class DeviceCode(PublicView):
    """`/auth/device/code`"""

    @extend_schema(request=DeviceStart, responses={200: DeviceCodes, 429: ErrorBody})
    def post(self, request: Request) -> Response:
        """Codes for a device, and where its user types one."""
        check_address(request._request, "start")
        app_name = clients.read_app_name(field(request, "app_name"))
        machine_id = clients.read_machine_id(field(request, "machine_id"))
        device_code, user_code = grants.begin_device_grant(app_name, machine_id)
        page = f"{settings.PUBLIC_ORIGIN}{reverse('device')}"
        shown: DeviceCodes = {
            "device_code": device_code,
            "user_code": user_code,
            "verification_uri": page,
            "verification_uri_complete": f"{page}?{urlencode({'user_code': user_code})}",
            "expires_in": int(grants.DEVICE_LIFETIME.total_seconds()),
            "interval": grants.POLL_EVERY_S,
        }
        return Response(shown, headers=NO_STORE)


class DeviceToken(PublicView):
    """`/auth/device/token`"""

    @extend_schema(request=DevicePoll, responses={200: DeviceGranted, 429: ErrorBody})
    def post(self, request: Request) -> Response:
        """The app token, once the user has allowed it.

        Polling is paced by the grant; only guesses are counted.
        """
        try:
            minted = grants.poll_device_grant(field(request, "device_code"), user_agent=user_agent_of(request))
        except InvalidGrant:
            check_address(request._request, "exchange")
            raise
        return Response(show(DeviceGranted, minted), headers=NO_STORE)


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
        client = clients.register(request.data)
        shown = show(Registration, client, client_id_issued_at=int(time.time()))
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
        lifetime = grants.SHOWN_ACCESS_LIFETIME if minted.refresh_token else grants.CLIENT_TOKEN_LIFETIME
        shown = show(GrantedToken, minted, expires_in=int(lifetime.total_seconds()))
        return Response(shown, headers=NO_STORE)


def _exchange_client_code(given: Any, client: RegisteredClient, user_agent: str) -> Minted:
    code, verifier, redirect_uri = (
        read_text(given, "code"),
        one(given, "code_verifier"),
        one(given, "redirect_uri"),
    )
    return grants.exchange_code(
        code, verifier, Purpose.CLIENT, user_agent=user_agent, client=client, redirect_uri=redirect_uri
    )


def _refresh(given: Any, client: RegisteredClient, user_agent: str) -> Minted:
    token, scope = read_text(given, "refresh_token"), read_text(given, "scope")
    return grants.refresh(token, client, scope, user_agent=user_agent)


GRANTS: Mapping[str, Callable[[Any, RegisteredClient, str], Minted]] = {
    clients.CODE_GRANT: _exchange_client_code,
    clients.REFRESH_GRANT: _refresh,
}
