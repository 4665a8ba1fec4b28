"""Documents that programs only read: open to pages of every origin, with validators for readers with a copy."""

import hashlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import wraps
from typing import Any

import msgspec
import rfc8785
from django.http import HttpRequest, HttpResponse
from django.utils.cache import get_conditional_response
from django.utils.http import http_date

from accounts.error_pages import json_error
from kit.describe import DescribedAnswer, DescribedOperation, Parameter

STARTED_AT = datetime.now(UTC)
REVALIDATED = "public, max-age=0, must-revalidate"
ALLOWED = "GET, HEAD, OPTIONS"
PREFLIGHT = {
    "Access-Control-Allow-Methods": ALLOWED,
    "Access-Control-Allow-Headers": "Authorization, A2A-Version, A2A-Extensions, X-A2A-Extensions, If-None-Match",
    "Access-Control-Max-Age": "86400",
}
View = Callable[..., HttpResponse]

encode = msgspec.json.Encoder().encode


def describe_document(
    path: str,
    name: str,
    summary: str,
    answer: Any,
    *,
    parameters: Sequence[Parameter] = (),
    tag: str = "a2a",
    validators: str = "`If-None-Match`, `If-Modified-Since`",
) -> DescribedOperation:
    """A read of an open document, for the public description. `validators`: what a reader with a copy sends."""
    return DescribedOperation(
        method="get",
        path=path,
        name=name,
        summary=summary,
        tag=tag,
        security=(),
        parameters=parameters,
        answers={200: answer, 304: DescribedAnswer(text=f"The reader's copy holds ({validators}).")},
    )


def weak_etag(stable: Any) -> str:
    """An ETag of what does not change by the minute."""
    return f'W/"{hashlib.sha256(rfc8785.dumps(stable)).hexdigest()}"'


def last_modified(changed_at: datetime) -> int:
    """The second since 1970 in which an answer last changed: its data, or the code that writes it."""
    return int(max(changed_at, STARTED_AT).timestamp())


def not_modified(request: HttpRequest, etag: str, modified: int | None = None) -> HttpResponse | None:
    """The 304 for a reader whose copy holds (weakly compared), a 412 for an impossible `If-Match`, or None."""
    answer = get_conditional_response(request, etag=etag, last_modified=modified)
    return answer if isinstance(answer, HttpResponse) else None


def with_validators(answer: HttpResponse, etag: str, modified: int | None = None) -> HttpResponse:
    """The answer with the validators by which a reader asks again.

    Whole seconds cannot tell two changes of one second apart: a change in the running second is dated before it,
    so that no cached copy counts as fresh until that second is over.
    """
    answer["Cache-Control"] = REVALIDATED
    answer["ETag"] = etag
    if modified is not None:
        answer["Last-Modified"] = http_date(min(modified, int(datetime.now(UTC).timestamp()) - 1))
    return answer


def allow_cross_origin(view: View) -> View:
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
