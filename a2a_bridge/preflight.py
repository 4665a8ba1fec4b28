"""Answers for programs of every origin that only read: GET, HEAD, and the question a browser asks beforehand."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse

from accounts.error_pages import json_error

ALLOWED = "GET, HEAD, OPTIONS"
PREFLIGHT = {
    "Access-Control-Allow-Methods": ALLOWED,
    "Access-Control-Allow-Headers": "Authorization, A2A-Version, A2A-Extensions, X-A2A-Extensions, If-None-Match",
    "Access-Control-Max-Age": "86400",
}
View = Callable[..., HttpResponse]


def for_readers(view: View) -> View:
    """Serve GET and HEAD, answer preflights, nothing else. Pages of every origin may read what is not private."""

    @wraps(view)
    def reading(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.method == "OPTIONS":
            answer = HttpResponse(status=204, headers=PREFLIGHT)
        elif request.method in ("GET", "HEAD"):
            answer = view(request, *args, **kwargs)
        else:
            answer = json_error(405, "method_not_allowed", f"want one of {ALLOWED}")
            answer["Allow"] = ALLOWED
        if "private" not in answer.get("Cache-Control", ""):
            answer["Access-Control-Allow-Origin"] = "*"
            answer["Access-Control-Expose-Headers"] = "ETag, Last-Modified"
        return answer

    return reading
