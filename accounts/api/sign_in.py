"""`/auth/oauth`, `/auth/oidc/{number}`: a browser signs in at GitHub or at an OpenID Connect provider."""

import logging
from collections.abc import Callable
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.views import APIView

from accounts import settings
from accounts.browser import own_path, sign_in
from accounts.errors import AccessDenied, InvalidState, NotConfigured, SignInRefused, TooFast
from accounts.models import LoginAttempt, User
from accounts.oauth import attempts, clients, grants
from accounts.oauth.attempts import Started, browser_key, keep_key, sound_key
from accounts.oauth.clients import CHALLENGE, MACHINE_ID, STATE, AuthorizationRequest, one
from accounts.oauth.identity_providers import GitHub, check_github, github_url, oidc_url, redeem_oidc
from accounts.oauth.provider_accounts import sign_in_github_user, sign_in_oidc_user
from accounts.oauth.signin_methods import NOTHING_SET_UP, SignInMethods, find_signin_methods
from accounts.rest import JSONForAnyAccept
from accounts.signup import Provider
from accounts.throttle import check_address
from kit.describe import ErrorBody, as_pattern

logger = logging.getLogger(__name__)

MAX_CODE_CHARS = 2048
CALLBACK_REFUSALS = (400, 403, 429, 502, 503)
OIDC_START_REFUSALS = (400, 404, 429, 502)
OIDC_CALLBACK_REFUSALS = (400, 403, 404, 502)

COMES_BACK_TO = "where the browser comes back to: loopback, any port, a plain path"
CHALLENGE_TEXT = "the SHA-256 of the verifier in base64url"
MACHINE_TEXT = "the installation; its older session or token ends"


def client_parameters(*, required: bool) -> list[OpenApiParameter]:
    """The parameters of an authorization request, for the description; `clients` checks them one by one."""
    state, challenge = as_pattern(STATE.pattern), as_pattern(CHALLENGE.pattern)
    machine_id = as_pattern(MACHINE_ID.pattern)
    return [
        OpenApiParameter("redirect_uri", str, required=required, description=COMES_BACK_TO),
        OpenApiParameter("state", str, required=required, pattern=state, description="comes back as it was"),
        OpenApiParameter("code_challenge", str, required=required, pattern=challenge, description=CHALLENGE_TEXT),
        OpenApiParameter("code_challenge_method", str, required=required, enum=["S256"]),
        OpenApiParameter("machine_id", str, pattern=machine_id, description=MACHINE_TEXT),
    ]


CLI_START = [
    *client_parameters(required=False),
    OpenApiParameter("next", str, description="without redirect_uri: the path this browser goes to, signed in"),
]
CALLBACK = [OpenApiParameter(name, str, description="of GitHub") for name in ("code", "state", "error")]
PROVIDER = OpenApiParameter("number", int, "path", description="which provider, from 1")
OIDC_START = [PROVIDER, OpenApiParameter("next", str, description="the path this browser goes to, signed in")]
OIDC_CALLBACK = [
    PROVIDER,
    *(OpenApiParameter(name, str, description="of the provider") for name in ("code", "state", "error", "iss")),
]


class PublicView(APIView):
    """A view for callers without a credential: credentials in the request are ignored."""

    content_negotiation_class = JSONForAnyAccept
    authentication_classes = []
    permission_classes = []


class OAuthStart(PublicView):
    """`/auth/oauth/start`"""

    @extend_schema(parameters=CLI_START, responses={302: None, 429: ErrorBody, 503: ErrorBody})
    def get(self, request: Request) -> HttpResponse:
        """Off to GitHub, or to a choice; with `redirect_uri` for a command line, without for this browser."""
        raw = request._request
        try:
            check_address(raw, "start")
            wanted = clients.read_cli(raw.GET) if "redirect_uri" in raw.GET else None
            next_path = own_path(one(raw.GET, "next")) if wanted is None else ""
            ways = find_signin_methods()
            if wanted is not None and not ways.is_github_alone:
                return _redirect_to_consent(raw, wanted, ways)
            check_github()
            return _begin(raw, github_url, next_path=next_path, asked=wanted)
        except SignInRefused as refused:
            return refused_page(raw, refused)


class OAuthCallback(PublicView):
    """`/auth/oauth/callback`"""

    @extend_schema(parameters=CALLBACK, responses={302: None} | dict.fromkeys(CALLBACK_REFUSALS, ErrorBody))
    def get(self, request: Request) -> HttpResponse:
        """Back from GitHub: the browser is signed in, or the command line gets its code, or learns why not."""

        def find_user(started: Started) -> User:
            github = GitHub(read_code(request._request, "GitHub"), started.verifier)
            return sign_in_github_user(github.profile(), is_member=github.is_member)

        return _finish(request._request, "", find_user)


class OidcStart(PublicView):
    """`/auth/oidc/{number}/start`"""

    @extend_schema(parameters=OIDC_START, responses={302: None} | dict.fromkeys(OIDC_START_REFUSALS, ErrorBody))
    def get(self, request: Request, number: int) -> HttpResponse:
        """Off to the provider."""
        raw, provider = request._request, _get_provider(number)
        try:
            check_address(raw, "start")
            next_path = own_path(one(raw.GET, "next"))
            return _begin(
                raw, lambda started: oidc_url(provider, started), provider=provider.issuer, next_path=next_path
            )
        except SignInRefused as refused:
            return refused_page(raw, refused)


class OidcCallback(PublicView):
    """`/auth/oidc/{number}/callback`"""

    @extend_schema(
        parameters=OIDC_CALLBACK, responses={302: None} | dict.fromkeys(OIDC_CALLBACK_REFUSALS, ErrorBody)
    )
    def get(self, request: Request, number: int) -> HttpResponse:
        """Back from the provider: the browser is signed in, or learns why not."""
        raw, provider = request._request, _get_provider(number)

        def find_user(started: Started) -> User:
            issuer, code = one(raw.GET, "iss"), read_code(raw, provider.name)
            return sign_in_oidc_user(redeem_oidc(provider, code, started, issuer=issuer))

        return _finish(raw, provider.issuer, find_user)


def _get_provider(number: int) -> Provider:
    for provider in settings.OIDC_PROVIDERS:
        if provider.number == number:
            return provider
    raise Http404


def _begin(
    request: HttpRequest,
    make_url: Callable[[Started], str],
    *,
    provider: str = "",
    next_path: str = "",
    asked: AuthorizationRequest | None = None,
) -> HttpResponse:
    """Send a browser to a provider, with the cookie by which the hub knows the browser when it comes back."""
    browser = sound_key(request)
    started = attempts.begin(browser, provider=provider, next_path=next_path, asked=asked)
    response = redirect_once(make_url(started))
    keep_key(response, browser)
    return response


def _finish(request: HttpRequest, issuer: str, find_user: Callable[[Started], User]) -> HttpResponse:
    """Sign the browser in that came back, or send the command line its code; or say why not."""
    attempt: LoginAttempt | None = None
    try:
        state = one(request.GET, "state")
        attempt, started = attempts.finish_attempt(browser_key(request), state, provider=issuer)
        user = find_user(started)
    except SignInRefused as refused:
        about = {"issuer": issuer} if issuer else {}
        logger.info("signin.refused", extra={"reason": refused.code, **about})
        if attempt is not None and attempt.redirect_uri:
            return _redirect_back(attempt, error=refused.code, error_description=str(refused))
        return refused_page(request, refused)
    if attempt.redirect_uri:
        wanted = AuthorizationRequest(
            redirect_uri=attempt.redirect_uri,
            state=attempt.client_state,
            code_challenge=attempt.code_challenge,
            machine_id=attempt.machine_id,
        )
        return _redirect_back(attempt, code=grants.issue_code(user, grants.Purpose.CLI, wanted))
    response = redirect_once(own_path(attempt.next_path))
    sign_in(request, response, user)
    return response


def read_code(request: HttpRequest, provider: str) -> str:
    """The code with which a provider sent a browser back.

    Raises:
        AccessDenied: the user said no there.
        InvalidState: there is no code.
    """
    if one(request.GET, "error"):
        raise AccessDenied(f"you did not allow the sign-in at {provider}")
    code = one(request.GET, "code")
    if not code.isascii() or not code.isprintable() or not 0 < len(code) <= MAX_CODE_CHARS:
        raise InvalidState(attempts.BAD_STATE)
    return code


def _redirect_to_consent(request: HttpRequest, wanted: AuthorizationRequest, ways: SignInMethods) -> HttpResponse:
    """A command line where there is more than GitHub: its user signs in by any way, then allows it on a page."""
    if ways.is_any:
        return redirect_once(f"{reverse('consent')}?{request.GET.urlencode()}")
    logger.info("signin.refused", extra={"reason": NotConfigured.code})
    answer = {"error": NotConfigured.code, "error_description": NOTHING_SET_UP, "state": wanted.state}
    return redirect_once(f"{wanted.redirect_uri}?{urlencode(answer)}")


def _redirect_back(attempt: LoginAttempt, **answer: str) -> HttpResponse:
    """To where the command line listens; the address was checked at the start."""
    return redirect_once(f"{attempt.redirect_uri}?{urlencode(answer | {'state': attempt.client_state})}")


def redirect_once(address: str) -> HttpResponseRedirect:
    """A redirect that no cache keeps."""
    response = HttpResponseRedirect(address)
    response["Cache-Control"] = "no-store"
    return response


def refused_page(request: HttpRequest, refused: SignInRefused) -> HttpResponse:
    """A page with the reason, for a browser.

    Raises:
        Refused: the request is of a program, which gets JSON.
    """
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
