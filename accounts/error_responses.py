"""Answers to what never reaches a view, or breaks in one: JSON for programs, a plain page for people."""

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
API_PATHS = ("/api/", "/network/")  # what programs call, that read JSON
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
    """The one shape of an error."""
    return JsonResponse({"error": code, "message": message}, status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400 for what Django itself refuses."""
    return _failed(request, 400)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403 outside of DRF."""
    return _failed(request, 403)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """403 for a form without its token (settings.CSRF_FAILURE_VIEW)."""
    return _failed(request, 403)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404 for an unknown address."""
    return _failed(request, 404)


def server_error(request: HttpRequest) -> HttpResponse:
    """500: Django has logged it; the body tells nothing of it. 503 when the database is what failed."""
    if isinstance(sys.exc_info()[1], DATABASE_UNAVAILABLE):
        answer = _failed(request, 503)
        answer["Retry-After"] = str(RETRY_AFTER_S)
        return answer
    return _failed(request, 500)


def too_many_at_once(request: HttpRequest, failure: TooManyAtOnce) -> HttpResponse:
    """429 or 503, and when to try again."""
    answer = _failed(request, failure.status, f"{str(failure).capitalize()}.")
    answer["Retry-After"] = str(AT_ONCE_RETRY_AFTER_S)
    return answer


def _failed(request: HttpRequest, status: int, why: str = "") -> HttpResponse:
    """The page needs neither the database nor a user, because either may be what is broken."""
    title, text = TEXTS[status]
    text = why or text
    if request.path_info.startswith(API_PATHS):
        return json_error(status, CODES[status], text)
    page = render_to_string("errors/page.html", {"title": title, "text": text, "status": status})
    return HttpResponse(page, status=status)
