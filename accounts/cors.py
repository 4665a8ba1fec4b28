"""Lets apps at home elsewhere (`APP_ORIGINS`) call the API with their Bearer token from a browser."""

from collections.abc import Collection

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.cache import patch_vary_headers
from django.utils.deprecation import MiddlewareMixin

from accounts.settings import get_settings
from kit.asgi import Header

PREFIX = "/api/v1/"
PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, POST, PATCH, DELETE, OPTIONS",
    "Access-Control-Allow-Headers": "Authorization, Content-Type",
    "Access-Control-Max-Age": "600",
}


class AppOriginsMiddleware(MiddlewareMixin):
    """CORS without credentials: the cookie never travels with it, and would not count if it did."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        """Answer a preflight of such an origin."""
        is_preflight = request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers
        return HttpResponse(status=204, headers=PREFLIGHT) if is_preflight and _is_known(request) else None

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Let such an origin read the answer."""
        if _is_known(request):
            response["Access-Control-Allow-Origin"] = request.headers["Origin"]
            patch_vary_headers(response, ["Origin"])
        return response


def allowing(origin: str | None, app_origins: Collection[str]) -> list[Header]:
    """The same for an answer that does not come from Django."""
    if origin is None or origin not in app_origins:
        return []
    return [(b"access-control-allow-origin", origin.encode("latin-1")), (b"vary", b"Origin")]


def _is_known(request: HttpRequest) -> bool:
    return request.path_info.startswith(PREFIX) and request.headers.get("Origin") in get_settings().app_origins
