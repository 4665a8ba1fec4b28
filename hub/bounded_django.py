"""The bounds of what Django serves. Files come larger than other bodies, and only from who is known.

Django takes a whole body into memory, on the event loop and before any middleware or view: a slow one holds no
thread, but it would hold its memory. So the bounds stand before it. A file's body is not read before its token is
known to be live, and one user sends a few at a time. What a view takes of the limits of `kit.concurrency` is given
back here, when the request is over.
"""

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping

from django.db import Error as DatabaseDown

from accounts.authn import find_identity, presented
from kit.asgi import (
    ALLOW_ALL,
    BODY_WITHIN_S,
    METHODS,
    BodyTooLarge,
    BodyTooSlow,
    BoundedBody,
    HttpRequest,
    Receive,
    Scope,
    Send,
    bodiless,
    respond,
)
from kit.async_db import db_call
from kit.concurrency import SLOTS_KEY, ConcurrencyLimit, RequestSlots

Application = Callable[[Scope, Receive, Send], Awaitable[None]]

UPLOAD = re.compile(r"/api/v1/sessions/[0-9a-f-]{36}/files|/api/channel/files")
UPLOAD_WITHIN_S = 120.0
UPLOADS_AT_ONCE = 4
NO_SUCH_METHOD = b'{"error":"method_not_allowed","message":"no address of the hub takes this HTTP method"}'
TOO_LARGE = b'{"error":"payload_too_large","message":"the body is over the limit"}'
TOO_SLOW = b'{"error":"request_timeout","message":"the body was not complete in time"}'
TOO_MANY = b'{"error":"rate_limited","message":"you send too many files at once"}'
DOWN = b'{"error":"unavailable","message":"the database is out of reach; nothing was stored"}'
BROKEN = {BodyTooLarge: (413, TOO_LARGE), BodyTooSlow: (408, TOO_SLOW)}
RETRY_SOON = [(b"retry-after", b"2")]


class BoundedDjango:
    """Passes requests on to Django within their bounds. `path_prefix`: with which Django expects their paths."""

    def __init__(
        self,
        application: Application,
        *,
        path_prefix: str,
        max_body_bytes: int,
        max_upload_bytes: int,
        limits: Mapping[str, ConcurrencyLimit],
    ) -> None:
        self._application = application
        self._path_prefix = path_prefix
        self._limits = limits
        self._max_body_bytes = max_body_bytes
        self._max_upload_bytes = max_upload_bytes
        self._uploads: Counter[int] = Counter()  # under way, by user

    async def serve(self, request: HttpRequest, send: Send) -> None:
        """One request."""
        if request.method not in METHODS:
            await respond(send, 405, NO_SUCH_METHOD, [(b"allow", ALLOW_ALL)])
        elif is_upload(request):
            await self._upload(request, send)
        else:
            await self._pass(request, send, self._max_body_bytes, BODY_WITHIN_S)

    async def _upload(self, request: HttpRequest, send: Send) -> None:
        try:
            user_id = await db_call(_find_uploader)(request)
        except DatabaseDown:
            await respond(send, 503, DOWN, RETRY_SOON)
            return
        if user_id is None:
            # Without a live token the view answers 401: none of the file's bytes is taken into memory for that.
            request.receive = bodiless(request.receive)
            await self._pass(request, send, self._max_upload_bytes, UPLOAD_WITHIN_S)
        elif self._uploads[user_id] >= UPLOADS_AT_ONCE:
            await respond(send, 429, TOO_MANY, RETRY_SOON)
        else:
            self._uploads[user_id] += 1
            try:
                await self._pass(request, send, self._max_upload_bytes, UPLOAD_WITHIN_S)
            finally:
                self._uploads -= Counter([user_id])  # forgets who is at none

    async def _pass(self, request: HttpRequest, send: Send, limit_bytes: int, within_s: float) -> None:
        try:
            request.check_length(limit_bytes)
        except BodyTooLarge:
            await respond(send, 413, TOO_LARGE)
            return
        body = BoundedBody(request.receive, limit_bytes=limit_bytes, within_s=within_s)
        slots = RequestSlots(self._limits)
        scope = {**request.scope, "path": self._path_prefix + request.path, SLOTS_KEY: slots}
        try:
            await self._application(scope, body.receive, send)
        finally:
            slots.release()
        if body.broken is not None:  # Django believes that the client left
            status, text = BROKEN[type(body.broken)]
            await respond(send, status, text, [(b"connection", b"close")])


def is_upload(request: HttpRequest) -> bool:
    """Whether a request brings a file."""
    return request.method == "POST" and UPLOAD.fullmatch(request.path) is not None


def _find_uploader(request: HttpRequest) -> int | None:
    """The user whose live token a request carries; whether it is of a fitting kind is the view's to say."""
    identity = find_identity(presented(request.headers))
    return identity.user_id if identity else None
