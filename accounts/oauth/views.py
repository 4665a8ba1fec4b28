"""`/auth/oauth`, `/auth/spa`, `/auth/device`: how browsers, command lines, apps and devices get a credential."""

import logging
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import ParseError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import settings
from accounts.authn import find_caller
from accounts.browser import own_path, sign_in
from accounts.errors import AccessDenied, InvalidGrant, InvalidState, NotConfigured, Refused, TooFast
from accounts.models import LoginAttempt
from accounts.oauth import attempts, authorization_requests, codes, devices, github, provider_accounts
from accounts.oauth.attempts import browser_key, keep_key, sound_key
from accounts.oauth.authorization_requests import AuthorizationRequest
from accounts.oauth.codes import Purpose
from accounts.oauth.shapes import APP_START, CALLBACK, CLI_START, CodeExchange, DevicePoll, DeviceStart
from accounts.oauth.signin_methods import NOTHING_SET_UP, SignInMethods, check_signin_possible, find_signin_methods
from accounts.rest import JSONNegotiation
from accounts.shapes import (
    NO_STORE,
    DeviceCodes,
    DeviceGranted,
    ExchangedApp,
    SignedIn,
    show_signed_in,
    user_agent_of,
)
from accounts.throttle import check_address
from kit.clock import iso_or_none
from kit.describe import ErrorBody


class JsonWhateverAccepted(JSONNegotiation):
    """Ignores the Accept header: a browser that wants a page is redirected to one."""

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> Any:
        """JSON."""
        return renderers[0], renderers[0].media_type


class PublicView(APIView):
    """A view for callers without a credential: credentials in the request are ignored."""

    content_negotiation_class = JsonWhateverAccepted
    authentication_classes = []
    permission_classes = []


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


def redirect_once(address: str) -> HttpResponseRedirect:
    """On to another address, this once."""
    response = HttpResponseRedirect(address)
    response["Cache-Control"] = "no-store"
    return response


logger = logging.getLogger(__name__)

MAX_CODE_CHARS = 2048
CALLBACK_REFUSALS = (400, 403, 429, 502, 503)


class OAuthStart(PublicView):
    """`/auth/oauth/start`"""

    @extend_schema(parameters=CLI_START, responses={302: None, 429: ErrorBody, 503: ErrorBody})
    def get(self, request: Request) -> HttpResponse:
        """Off to GitHub, or to a choice; with `redirect_uri` for a command line, without for this browser."""
        raw = request._request
        try:
            check_address(raw, "start")
            wanted = authorization_requests.read_cli(raw.GET) if "redirect_uri" in raw.GET else None
            next_path = own_path(authorization_requests.one(raw.GET, "next")) if wanted is None else ""
            ways = find_signin_methods()
            if wanted is not None and not ways.is_github_alone:
                return _elsewhere(raw, wanted, ways)
            github.check_configured()
        except Refused as refused:
            return refused_page(raw, refused)
        browser = sound_key(raw)
        started = attempts.begin(browser, next_path=next_path, asked=wanted)
        response = redirect_once(github.authorize_url(started.state, started.verifier))
        keep_key(response, browser)
        return response


class OAuthCallback(PublicView):
    """`/auth/oauth/callback`"""

    @extend_schema(parameters=CALLBACK, responses={302: None} | dict.fromkeys(CALLBACK_REFUSALS, ErrorBody))
    def get(self, request: Request) -> HttpResponse:
        """Back from GitHub: the browser is signed in, or the command line gets its code, or learns why not."""
        raw = request._request
        try:
            attempt, started = attempts.finish_attempt(
                browser_key(raw), authorization_requests.one(raw.GET, "state")
            )
        except Refused as refused:
            return refused_page(raw, refused)
        try:
            return self._finish(raw, attempt, started.verifier)
        except Refused as refused:
            logger.info("signin.refused", extra={"reason": refused.code})
            if attempt.redirect_uri:
                return _back(attempt, error=refused.code, error_description=str(refused))
            return refused_page(raw, refused)

    def _finish(self, request: HttpRequest, attempt: LoginAttempt, verifier: str) -> HttpResponse:
        code = code_of(request, "GitHub")
        with github.open_provider_session(code, verifier) as person:
            user = provider_accounts.sign_in_github_user(person.profile(), is_member=person.is_member)
        if not attempt.redirect_uri:
            response = redirect_once(own_path(attempt.next_path))
            sign_in(request, response, user)
            return response
        wanted = AuthorizationRequest(
            redirect_uri=attempt.redirect_uri,
            state=attempt.client_state,
            code_challenge=attempt.code_challenge,
            machine_id=attempt.machine_id,
        )
        return _back(attempt, code=codes.issue(user, Purpose.CLI, wanted))


class OAuthToken(PublicView):
    """`/auth/oauth/token`"""

    @extend_schema(request=CodeExchange, responses={200: SignedIn, 429: ErrorBody, 503: ErrorBody})
    def post(self, request: Request) -> Response:
        """A session for a command line's code."""
        check_address(request._request, "exchange")
        check_signin_possible()
        code, verifier = field(request, "code"), field(request, "code_verifier")
        minted = codes.exchange(code, verifier, Purpose.CLI, user_agent=user_agent_of(request))
        return Response(show_signed_in(minted), headers=NO_STORE)


def code_of(request: HttpRequest, provider: str) -> str:
    """The code that a provider sent a browser back with.

    Raises:
        AccessDenied: the user said no there.
        InvalidState: there is no code.
    """
    if authorization_requests.one(request.GET, "error"):
        raise AccessDenied(f"you did not allow the sign-in at {provider}")
    code = authorization_requests.one(request.GET, "code")
    if not code.isascii() or not code.isprintable() or not 0 < len(code) <= MAX_CODE_CHARS:
        raise InvalidState(attempts.BAD_STATE)
    return code


def _elsewhere(request: HttpRequest, wanted: AuthorizationRequest, ways: SignInMethods) -> HttpResponse:
    """A command line where there is more than GitHub: its user signs in by any way, then allows it on a page."""
    if ways.is_any:
        return redirect_once(f"{reverse('consent')}?{request.GET.urlencode()}")
    logger.info("signin.refused", extra={"reason": NotConfigured.code})
    answer = {"error": NotConfigured.code, "error_description": NOTHING_SET_UP, "state": wanted.state}
    return redirect_once(f"{wanted.redirect_uri}?{urlencode(answer)}")


def _back(attempt: LoginAttempt, **answer: str) -> HttpResponse:
    """To where the command line listens; the address was checked at the start."""
    return redirect_once(f"{attempt.redirect_uri}?{urlencode(answer | {'state': attempt.client_state})}")


def refused_page(request: HttpRequest, refused: Refused) -> HttpResponse:
    """A sentence for people, JSON for programs."""
    if "text/html" not in request.headers.get("Accept", ""):
        raise refused
    context = {
        "title": "You are not signed in",
        "text": str(refused),
        "status": refused.status,
        "leads_to_signin": True,
    }
    response = render(request, "errors/page.html", context, status=refused.status)
    response["Cache-Control"] = "no-store"
    if isinstance(refused, TooFast):
        response["Retry-After"] = str(refused.retry_in_s)
    return response


class SpaStart(PublicView):
    """`/auth/spa/start`"""

    @extend_schema(parameters=APP_START, responses={302: None, 429: ErrorBody, 503: ErrorBody})
    def get(self, request: Request) -> HttpResponse:
        """To the page where the user allows the app, signed in first where needed."""
        raw = request._request
        check_address(raw, "start")
        authorization_requests.read_app(raw.GET)
        consent = f"{reverse('consent')}?{raw.GET.urlencode()}"
        if find_caller(raw) is not None:
            return redirect_once(consent)
        check_signin_possible()
        if find_signin_methods().is_github_alone:
            return redirect_once(f"{reverse('oauth-start')}?{urlencode({'next': consent})}")
        return redirect_once(f"{reverse('signin')}?{urlencode({'next': consent})}")


class SpaExchange(PublicView):
    """`/auth/spa/exchange`"""

    @extend_schema(request=CodeExchange, responses={200: ExchangedApp, 429: ErrorBody})
    def post(self, request: Request) -> Response:
        """An app token for an app's code."""
        check_address(request._request, "exchange")
        code, verifier = field(request, "code"), field(request, "code_verifier")
        minted = codes.exchange(code, verifier, Purpose.APP, user_agent=user_agent_of(request))
        shown: ExchangedApp = {
            "token": minted.token,
            "tokenName": minted.credential.name,
            "expiresAt": iso_or_none(minted.credential.expires_at),
        }
        return Response(shown, headers=NO_STORE)


class DeviceCode(PublicView):
    """`/auth/device/code`"""

    @extend_schema(request=DeviceStart, responses={200: DeviceCodes, 429: ErrorBody})
    def post(self, request: Request) -> Response:
        """Codes for a device, and where its user types one."""
        check_address(request._request, "start")
        app_name = authorization_requests.read_app_name(field(request, "app_name"))
        machine_id = authorization_requests.read_machine_id(field(request, "machine_id"))
        both = devices.begin(app_name, machine_id)
        page = f"{settings.PUBLIC_ORIGIN}{reverse('device')}"
        shown: DeviceCodes = {
            "device_code": both.device_code,
            "user_code": both.user_code,
            "verification_uri": page,
            "verification_uri_complete": f"{page}?{urlencode({'user_code': both.user_code})}",
            "expires_in": int(devices.LIFETIME.total_seconds()),
            "interval": devices.POLL_EVERY_S,
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
            minted = devices.poll(field(request, "device_code"), user_agent=user_agent_of(request))
        except InvalidGrant:
            check_address(request._request, "exchange")
            raise
        shown: DeviceGranted = {"access_token": minted.token, "token_type": "Bearer"}
        return Response(shown, headers=NO_STORE)
