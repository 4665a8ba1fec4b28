"""`request.user` from a Bearer token or the cookie `cw_session`; the headers of pages; CORS for apps elsewhere."""

from collections.abc import Collection

from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.cache import patch_vary_headers
from django.utils.deprecation import MiddlewareMixin
from django.utils.functional import SimpleLazyObject

from accounts import settings
from accounts.acting import find_acted_for, record_act_for_group
from accounts.authn import SAFE_METHODS, find_caller, presented_by
from accounts.error_responses import (
    API_PATHS,
    FORBIDDEN_ORIGIN,
    FORBIDDEN_ORIGIN_TEXT,
    json_error,
    too_many_at_once,
)
from accounts.models import Credential, User
from kit.asgi import Header
from kit.concurrency import TooManyAtOnce

BAD_REQUEST = 400
API_PREFIX = "/api/v1/"
PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, POST, PATCH, DELETE, OPTIONS",
    "Access-Control-Allow-Headers": "Authorization, Content-Type",
    "Access-Control-Max-Age": "600",
}

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


class PageMiddleware(MiddlewareMixin):
    """Gives every page the strict Content-Security-Policy, and responds to requests over a concurrency limit."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Add the policy to a page whose view has set none."""
        if response.headers.get("Content-Type", "").startswith("text/html"):
            response.headers.setdefault("Content-Security-Policy", PAGE_POLICY)
        return response

    def process_exception(self, request: HttpRequest, failure: Exception) -> HttpResponseBase | None:
        """Respond to a request over a concurrency limit; views of REST handle their exceptions themselves."""
        return too_many_at_once(request, failure) if isinstance(failure, TooManyAtOnce) else None


class AppOriginsMiddleware(MiddlewareMixin):
    """Lets apps of other origins (`APP_ORIGINS`) call the API from a browser, with their Bearer token.

    CORS without credentials: the browser sends no cookie, and the hub would not accept it.
    """

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        """Answer a preflight of such an origin."""
        is_preflight = request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers
        return HttpResponse(status=204, headers=PREFLIGHT) if is_preflight and _is_known(request) else None

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Let such an origin read the answer."""
        if "Origin" in request.headers and _is_known(request):
            response["Access-Control-Allow-Origin"] = request.headers["Origin"]
            patch_vary_headers(response, ["Origin"])
        return response


class CredentialMiddleware(AuthenticationMiddleware):
    """Sets `request.user` on first use, and refuses a cookie on an API request forged by another site.

    Pages keep Django's CSRF tokens; the API has none, so its guard is the origin.
    """

    def process_request(self, request: HttpRequest) -> HttpResponseBase | None:  # type: ignore[override]
        """Answer 403 before any view runs, or let the request pass."""
        if request.path_info.startswith(API_PATHS):
            token = presented_by(request)
            if token is not None and token.is_foreign:
                return json_error(403, FORBIDDEN_ORIGIN, FORBIDDEN_ORIGIN_TEXT)
        request.user = SimpleLazyObject(lambda: _user(request))  # type: ignore[assignment]
        request.acted_for = SimpleLazyObject(lambda: _acted_for(request))  # type: ignore[attr-defined]
        return None

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Record a change that was made by REST with a token of a group."""
        account: User | None = getattr(request, "acting_account", None)
        if account is not None and request.method not in SAFE_METHODS and response.status_code < BAD_REQUEST:
            record_act_for_group(request, account)
        return response


def allowing(origin: str | None, app_origins: Collection[str]) -> list[Header]:
    """The headers of `AppOriginsMiddleware`, for a response that Django does not make."""
    if origin is None or origin not in app_origins:
        return []
    return [(b"access-control-allow-origin", origin.encode("latin-1")), (b"vary", b"Origin")]


def _is_known(request: HttpRequest) -> bool:
    return request.path_info.startswith(API_PREFIX) and request.headers.get("Origin") in settings.APP_ORIGINS


def _user(request: HttpRequest) -> User | AnonymousUser:
    """The user of a browser's session: an app's token is for the API, not for pages or the admin."""
    request.caller = caller = find_caller(request)  # type: ignore[attr-defined]
    return caller.user if caller and caller.identity.kind == Credential.Kind.SESSION else AnonymousUser()


def _acted_for(request: HttpRequest) -> User | None:
    """The account of the group for which the browser's user acts; for the bar of all pages."""
    caller = request.caller if request.user.is_authenticated else None  # type: ignore[attr-defined]
    return find_acted_for(caller) if caller else None
