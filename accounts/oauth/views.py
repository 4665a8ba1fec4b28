"""The sign-in's addresses under /api/v1/auth: starts and the callback for browsers, exchanges for programs."""

import logging
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import ParseError
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.shown import NO_STORE, api_session_token, user_agent_of
from accounts.browser import own_path, sign_in
from accounts.callers import find_caller
from accounts.models import LoginAttempt
from accounts.oauth import asked, attempts, codes, devices, github, people
from accounts.oauth.asked import Asked
from accounts.oauth.bodies import CodeExchange, DevicePoll, DeviceStart
from accounts.oauth.codes import Purpose
from accounts.oauth.errors import AccessDenied, InvalidGrant, InvalidState, Refused
from accounts.oauth.queries import APP_START, CALLBACK, CLI_START
from accounts.rest import REFUSED_STATUS
from accounts.shapes import DeviceCodes, DeviceGranted, ExchangedApp, SignedIn
from accounts.throttle import check_address
from kit.describe import ErrorBody
from kit.ids import unguessable
from kit.iso import iso_or_none

logger = logging.getLogger(__name__)

BROWSER_KEY_CHARS = 40
CALLBACK_REFUSALS = (400, 403, 429, 502, 503)


class Indifferent(DefaultContentNegotiation):
    """Does not look at Accept: a browser that wants a page is sent on to one."""

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> Any:
        """JSON."""
        return renderers[0], renderers[0].media_type


class Open(APIView):
    """For callers who are on their way to a credential: whatever they bring along is not looked at."""

    content_negotiation_class = Indifferent
    authentication_classes = []
    permission_classes = []


class OAuthStart(Open):
    """`/auth/oauth/start`"""

    @extend_schema(parameters=CLI_START, responses={302: None, 429: ErrorBody, 503: ErrorBody})
    def get(self, request: Request) -> HttpResponse:
        """Off to GitHub; with `redirect_uri` for a command line, without for this browser."""
        raw = request._request
        check_address(raw, "start")
        is_cli = "redirect_uri" in raw.GET
        wanted = asked.read_cli(raw.GET) if is_cli else None
        github.check_configured()
        browser = raw.COOKIES.get(_cookie_name(), "")
        if len(browser) != BROWSER_KEY_CHARS or not browser.isalnum():
            browser = unguessable() + unguessable()[: BROWSER_KEY_CHARS - 32]
        next_path = "" if is_cli else own_path(asked.one(raw.GET, "next"))
        started = attempts.begin(browser, next_path=next_path, asked=wanted)
        response = _to(github.authorize_url(started.state, started.verifier))
        response.set_cookie(
            _cookie_name(),
            browser,
            max_age=attempts.LIFETIME,
            path="/",
            httponly=True,
            samesite="Lax",
            secure=settings.IS_HTTPS,
        )
        return response


class OAuthCallback(Open):
    """`/auth/oauth/callback`"""

    @extend_schema(parameters=CALLBACK, responses={302: None} | dict.fromkeys(CALLBACK_REFUSALS, ErrorBody))
    def get(self, request: Request) -> HttpResponse:
        """Back from GitHub: the browser is signed in, or the command line gets its code, or learns why not."""
        raw = request._request
        try:
            attempt, verifier = attempts.come_back(
                raw.COOKIES.get(_cookie_name(), ""), asked.one(raw.GET, "state")
            )
        except Refused as refused:
            return _refused_page(raw, refused)
        try:
            return self._finish(raw, attempt, verifier)
        except Refused as refused:
            logger.info("signin.refused", extra={"reason": refused.code})
            if attempt.redirect_uri:
                return _back(attempt, error=refused.code, error_description=str(refused))
            return _refused_page(raw, refused)

    def _finish(self, request: HttpRequest, attempt: LoginAttempt, verifier: str) -> HttpResponse:
        if asked.one(request.GET, "error"):
            raise AccessDenied("you did not allow the sign-in on GitHub")
        code = asked.one(request.GET, "code")
        if not code.isascii() or not code.isprintable() or not 0 < len(code) <= 512:
            raise InvalidState(attempts.BAD_STATE)
        with github.leg(code, verifier) as person:
            user = people.admit(person.profile(), is_member=person.is_member)
        if not attempt.redirect_uri:
            response = _to(own_path(attempt.next_path))
            sign_in(request, response, user)
            return response
        wanted = Asked(
            redirect_uri=attempt.redirect_uri,
            state=attempt.client_state,
            code_challenge=attempt.code_challenge,
            machine_id=attempt.machine_id,
        )
        return _back(attempt, code=codes.issue(user, Purpose.CLI, wanted))


class OAuthToken(Open):
    """`/auth/oauth/token`"""

    @extend_schema(request=CodeExchange, responses={200: SignedIn, 429: ErrorBody, 503: ErrorBody})
    def post(self, request: Request) -> Response:
        """A session for a command line's code."""
        check_address(request._request, "exchange")
        github.check_configured()
        code, verifier = _field(request, "code"), _field(request, "code_verifier")
        minted = codes.exchange(code, verifier, Purpose.CLI, user_agent=user_agent_of(request))
        return Response(api_session_token(minted), headers=NO_STORE)


class SpaStart(Open):
    """`/auth/spa/start`"""

    @extend_schema(parameters=APP_START, responses={302: None, 429: ErrorBody, 503: ErrorBody})
    def get(self, request: Request) -> HttpResponse:
        """To the page where the user allows the app, signed in first where needed."""
        raw = request._request
        check_address(raw, "start")
        asked.read_app(raw.GET)
        consent = f"{reverse('consent')}?{raw.GET.urlencode()}"
        if find_caller(raw) is not None:
            return _to(consent)
        if not settings.DEV_LOGIN:
            github.check_configured()
            return _to(f"{reverse('oauth-start')}?{urlencode({'next': consent})}")
        return _to(f"{reverse('signin')}?{urlencode({'next': consent})}")


class SpaExchange(Open):
    """`/auth/spa/exchange`"""

    @extend_schema(request=CodeExchange, responses={200: ExchangedApp, 429: ErrorBody})
    def post(self, request: Request) -> Response:
        """An app token for an app's code."""
        check_address(request._request, "exchange")
        code, verifier = _field(request, "code"), _field(request, "code_verifier")
        minted = codes.exchange(code, verifier, Purpose.APP, user_agent=user_agent_of(request))
        shown: ExchangedApp = {
            "token": minted.token,
            "tokenName": minted.credential.name,
            "expiresAt": iso_or_none(minted.credential.expires_at),
        }
        return Response(shown, headers=NO_STORE)


class DeviceCode(Open):
    """`/auth/device/code`"""

    @extend_schema(request=DeviceStart, responses={200: DeviceCodes, 429: ErrorBody})
    def post(self, request: Request) -> Response:
        """Codes for a device, and where its user types one."""
        check_address(request._request, "start")
        app_name = asked.read_app_name(_field(request, "app_name"))
        machine_id = asked.read_machine_id(_field(request, "machine_id"))
        both = devices.begin(app_name, machine_id)
        page = f"{settings.PUBLIC_URL}{reverse('device')}"
        shown: DeviceCodes = {
            "device_code": both.device_code,
            "user_code": both.user_code,
            "verification_uri": page,
            "verification_uri_complete": f"{page}?{urlencode({'user_code': both.user_code})}",
            "expires_in": int(devices.LIFETIME.total_seconds()),
            "interval": devices.POLL_EVERY_S,
        }
        return Response(shown, headers=NO_STORE)


class DeviceToken(Open):
    """`/auth/device/token`"""

    @extend_schema(request=DevicePoll, responses={200: DeviceGranted, 429: ErrorBody})
    def post(self, request: Request) -> Response:
        """The app token, once the user has allowed it.

        Polling is paced by the grant; only guesses are counted.
        """
        try:
            minted = devices.poll(_field(request, "device_code"), user_agent=user_agent_of(request))
        except InvalidGrant:
            check_address(request._request, "exchange")
            raise
        shown: DeviceGranted = {"access_token": minted.token, "token_type": "Bearer"}
        return Response(shown, headers=NO_STORE)


def _field(request: Request, name: str) -> str:
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


def _cookie_name() -> str:
    """`__Host-` keeps other names below the hub's from planting a cookie of theirs."""
    return "__Host-cw_login" if settings.IS_HTTPS else "cw_login"


def _to(address: str) -> HttpResponseRedirect:
    response = HttpResponseRedirect(address)
    response["Cache-Control"] = "no-store"
    return response


def _back(attempt: LoginAttempt, **answer: str) -> HttpResponse:
    """To where the command line listens; the address was checked at the start."""
    return _to(f"{attempt.redirect_uri}?{urlencode(answer | {'state': attempt.client_state})}")


def _refused_page(request: HttpRequest, refused: Refused) -> HttpResponse:
    """A sentence for people, JSON for programs."""
    if "text/html" not in request.headers.get("Accept", ""):
        raise refused
    status = REFUSED_STATUS.get(refused.code, 400)
    context = {"title": "You are not signed in", "text": str(refused), "status": status}
    response = render(request, "errors/page.html", context, status=status)
    response["Cache-Control"] = "no-store"
    return response
