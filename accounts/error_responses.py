"""Responses to requests that reach no view, or fail in one: JSON for programs, a plain page for browsers."""

import sys

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string

from kit.concurrency import RETRY_AFTER_S as AT_ONCE_RETRY_AFTER_S
from kit.concurrency import TooManyAtOnce
from kit.sql import DATABASE_UNAVAILABLE

FORBIDDEN_ORIGIN = "forbidden_origin"
FORBIDDEN_ORIGIN_TEXT = "a cookie counts only in requests from the hub's own pages; use a Bearer token"
INTERNAL, INTERNAL_TEXT = "internal", "internal error"
UNAVAILABLE_TEXT = "the hub's database is out of reach or takes no writes; nothing was done, try again shortly"
RETRY_AFTER_S = 2
API_PATHS = ("/api/", "/network/")  # the addresses of APIs, whose callers read JSON
CODES = {
    400: "validation_failed",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    406: "not_acceptable",
    409: "conflict",
    413: "payload_too_large",
    415: "unsupported_media_type",
    429: "rate_limited",
    500: INTERNAL,
    503: "unavailable",
}
TEXTS = {
    400: ("Bad request", "The hub could not make sense of this request."),
    403: ("Not allowed", "This page is not yours to see, or the form you sent has expired."),
    404: ("Not found", "There is nothing at this address."),
    429: ("Too many at once", "Try again when others of yours have ended."),
    500: ("Something broke", INTERNAL_TEXT),
    503: ("Not now", UNAVAILABLE_TEXT),
}


def json_error(status: int, code: str, message: str) -> JsonResponse:
    """An error response of REST."""
    return JsonResponse({"error": code, "message": message}, status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Respond 400 to a request that Django itself refuses."""
    return _failed(request, 400)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Respond 403 outside of DRF."""
    return _failed(request, 403)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Respond 403 to a form without its CSRF token (settings.CSRF_FAILURE_VIEW)."""
    return _failed(request, 403)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Respond 404 to an unknown address."""
    return _failed(request, 404)


def server_error(request: HttpRequest) -> HttpResponse:
    """Respond 500, without details, to an exception that Django has logged; 503 if the database failed."""
    if isinstance(sys.exc_info()[1], DATABASE_UNAVAILABLE):
        answer = _failed(request, 503)
        answer["Retry-After"] = str(RETRY_AFTER_S)
        return answer
    return _failed(request, 500)


def too_many_at_once(request: HttpRequest, failure: TooManyAtOnce) -> HttpResponse:
    """Respond 429 or 503, with a Retry-After."""
    answer = _failed(request, failure.status, f"{str(failure).capitalize()}.")
    answer["Retry-After"] = str(AT_ONCE_RETRY_AFTER_S)
    return answer


def _failed(request: HttpRequest, status: int, why: str = "") -> HttpResponse:
    """A page that needs neither the database nor the user, because either may be the cause of the failure."""
    title, text = TEXTS[status]
    text = why or text
    if request.path_info.startswith(API_PATHS):
        return json_error(status, CODES[status], text)
    page = render_to_string("errors/page.html", {"title": title, "text": text, "status": status})
    return HttpResponse(page, status=status)
