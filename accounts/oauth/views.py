"""`/auth/oauth`: signing in at GitHub, a browser or the command line."""

import logging
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.shown import NO_STORE, api_session_token, user_agent_of
from accounts.browser import own_path, sign_in
from accounts.models import LoginAttempt
from accounts.oauth import asked, attempts, codes, github, people
from accounts.oauth.asked import Asked
from accounts.oauth.bodies import CodeExchange
from accounts.oauth.codes import Purpose
from accounts.oauth.errors import AccessDenied, InvalidState, Refused
from accounts.oauth.open import Open, field, sent_to
from accounts.oauth.queries import CALLBACK, CLI_START
from accounts.rest import REFUSED_STATUS
from accounts.shapes import SignedIn
from accounts.throttle import check_address
from kit.describe import ErrorBody
from kit.ids import unguessable

logger = logging.getLogger(__name__)

BROWSER_KEY_CHARS = 40
CALLBACK_REFUSALS = (400, 403, 429, 502, 503)


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
        response = sent_to(github.authorize_url(started.state, started.verifier))
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
            response = sent_to(own_path(attempt.next_path))
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
        code, verifier = field(request, "code"), field(request, "code_verifier")
        minted = codes.exchange(code, verifier, Purpose.CLI, user_agent=user_agent_of(request))
        return Response(api_session_token(minted), headers=NO_STORE)


def _cookie_name() -> str:
    """`__Host-` keeps other names below the hub's from planting a cookie of theirs."""
    return "__Host-cw_login" if settings.IS_HTTPS else "cw_login"


def _back(attempt: LoginAttempt, **answer: str) -> HttpResponse:
    """To where the command line listens; the address was checked at the start."""
    return sent_to(f"{attempt.redirect_uri}?{urlencode(answer | {'state': attempt.client_state})}")


def _refused_page(request: HttpRequest, refused: Refused) -> HttpResponse:
    """A sentence for people, JSON for programs."""
    if "text/html" not in request.headers.get("Accept", ""):
        raise refused
    status = REFUSED_STATUS.get(refused.code, 400)
    context = {"title": "You are not signed in", "text": str(refused), "status": status}
    response = render(request, "errors/page.html", context, status=status)
    response["Cache-Control"] = "no-store"
    return response
