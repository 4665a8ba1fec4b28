"""The bounds of what Django serves. Files come larger than other bodies, and only from who is known.

Django takes a whole body into memory, on the event loop and before any middleware or view. This module reads the
body instead, within the bounds of `kit.asgi`: a slow client holds no thread. A file's body is not read before its
token is known to be live, and one user sends a few at a time. The places that a view takes of the limits of
`kit.concurrency` are given back here, when the request is over.
"""

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from time import thread_time
from typing import IO, Any

from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.core.signals import request_started
from django.db import Error as DatabaseDown
from django.urls import set_script_prefix
from django.utils.http import parse_header_parameters

from accounts.authn import AGENT_KINDS, CALLER_KINDS, find_holder, presented
from accounts.models import User
from hub.limits import UPLOADS
from hub.request_turns import RequestTurns
from kit.asgi import (
    ALLOW_ALL,
    BODY_WITHIN_S,
    METHODS,
    RETRY_SOON,
    ClientLeft,
    HttpRequest,
    Receive,
    RequestRefused,
    Scope,
    Send,
    media_type_of,
    receive_of,
    respond_refused,
    slow_down,
    two_values,
)
from kit.async_db import leave_thread, read_slice, request_call
from kit.concurrency import SLOTS_KEY, ConcurrencyLimit

Application = Callable[[Scope, Receive, Send], Awaitable[None]]

UPLOAD = re.compile(
    r"/api/v1/files|/api/v1/sessions/[0-9a-f-]{36}/files|/api/channel/files"
    r"|/api/v1/team/sessions/import|/api/v1/network/venues/import|/desk/network/venues/import"
)
UPLOAD_WITHIN_S = 120.0
LOOKS_EVERY_S = 0.5
FORMS = ("multipart/form-data", "application/x-www-form-urlencoded")
UTF_8 = ("utf-8", "utf8")
NOT_UTF_8 = "want forms in UTF-8"
NO_SUCH_METHOD = "no address of the hub takes this HTTP method"
TOO_MANY = "you send too many files at once"
DOWN = "the database is out of reach; nothing was stored"


class OneThreadHandler(ASGIHandler):
    """Django, with all that it does for a request in one call of a thread: middleware and views are synchronous.

    Django's own `handle` changes between the event loop and the thread for each middleware and each signal, over
    twenty times, for as much processor time as the rest of a small request takes.
    """

    def __init__(self, turns: RequestTurns) -> None:
        super().__init__()
        self._turns = turns

    def load_middleware(self, is_async: bool = False) -> None:
        """Load the middleware for calls from a thread, which Django's constructor does not ask for."""
        super().load_middleware(is_async=False)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request."""
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        set_script_prefix(get_script_prefix(scope))
        turn = await self._turns.begin(scope, receive)
        go_on = asyncio.get_running_loop().call_soon_threadsafe
        leave_thread.set(partial(go_on, self._turns.release, turn))
        spent_s, user_id = 0.0, None
        try:
            response, spent_s, user_id = await turn.in_thread(self._call_view)(scope, body)
        finally:
            self._turns.end(turn, spent_s, user_id)
        await slow_down(response.status_code)
        if response.closed:
            await self.send_response(response, send)
        else:
            read_slice.set(partial(self._turns.read_slice, turn))
            await self._stream(response, receive, send)

    def _call_view(self, scope: Scope, body: IO[bytes]) -> tuple[Any, float, int | None]:
        """The answer, closed unless it is read from a database while it is sent; processor seconds; the user's id.

        The user is that of the token, as far as the view asked for it.
        """
        began_s = thread_time()
        request_started.send(sender=self.__class__, scope=scope)
        with body:
            request, refused = self.create_request(scope, body)
            response: Any = refused if request is None else self.get_response(request)
            response._handler_class = self.__class__
            if response.streaming and not response.is_async:
                response.streaming_content = list(response.streaming_content)  # a file's
            if not response.streaming or not response.is_async:
                response.close()
        return response, thread_time() - began_s, _user_of(request)

    async def _stream(self, response: Any, receive: Receive, send: Send) -> None:
        """Send the parts of an answer until the client has all of them or has left."""
        tasks = [
            asyncio.create_task(self.send_response(response, send), name="send an answer"),
            asyncio.create_task(self.listen_for_disconnect(receive), name="the client leaves"),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            sent, _ = await asyncio.gather(*tasks, return_exceptions=True)
            await request_call(response.close)()
        if isinstance(sent, Exception):
            raise sent


class RequestSlots:
    """The slots that one request has taken."""

    def __init__(self, limits: Mapping[str, ConcurrencyLimit]) -> None:
        self._limits = limits
        self._taken: list[tuple[ConcurrencyLimit, int]] = []
        self._is_over = False
        self._lock = threading.Lock()

    def take(self, kind: str, account_id: int) -> None:
        """Take a slot, for as long as the request lasts. A view may still run after its client has left.

        Raises:
            TooManyAtOnce: there is none.
        """
        limit = self._limits[kind]
        with self._lock:
            if not self._is_over:
                limit.enter(account_id)
                self._taken.append((limit, account_id))

    def release(self) -> None:
        """Release the slots: the request is over."""
        with self._lock:
            self._is_over = True
            for limit, account_id in self._taken:
                limit.leave(account_id)
            self._taken.clear()


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
        turns: RequestTurns,
        load: Callable[[], None],
    ) -> None:
        """`load`: imports the pages. Called in a thread; requests are passed on after it has returned."""
        self._application = application
        self._turns = turns
        self._load = load
        self._loading: asyncio.Task[None] | None = None
        self._is_loaded = False
        self._path_prefix = path_prefix
        self._limits = limits
        self._max_body_bytes = max_body_bytes
        self._max_upload_bytes = max_upload_bytes
        self._uploads = ConcurrencyLimit("uploads", per_account=UPLOADS.most, refuse=_too_many_uploads)

    async def serve(self, request: HttpRequest, send: Send) -> None:
        """Serve one request. A body comes whole, so it is bounded before a view runs."""
        try:
            if request.method not in METHODS:
                raise RequestRefused(405, "method_not_allowed", NO_SUCH_METHOD, (b"allow", ALLOW_ALL))
            if request.contradicted:
                raise two_values(request.contradicted)
            content_type = request.headers.get("content-type", "")
            if media_type_of(content_type) in FORMS and not is_in_utf_8(content_type):
                raise RequestRefused(415, "unsupported_media_type", NOT_UTF_8)
            if request.method == "POST" and UPLOAD.fullmatch(request.path):
                await self._upload(request, send)
            else:
                await self._read(request, send, self._max_body_bytes, BODY_WITHIN_S)
        except RequestRefused as refused:
            await respond_refused(send, refused)
        except ClientLeft:
            return

    async def _upload(self, request: HttpRequest, send: Send) -> None:
        user_id, spent_s = None, 0.0
        turn = await self._turns.begin(request.scope, partial(_leave, request.receive))
        try:
            user_id, spent_s = await turn.in_thread(_find_uploader)(request)
        except DatabaseDown:
            raise RequestRefused(503, "unavailable", DOWN, RETRY_SOON) from None
        finally:
            self._turns.end(turn, spent_s, user_id)
        if user_id is None:
            # Without a live token the view answers 401: none of the file's bytes is taken into memory for that.
            request.check_length(self._max_upload_bytes)
            await self._pass(request, send, bytearray())
        else:
            with self._uploads.hold(user_id):
                await self._read(request, send, self._max_upload_bytes, UPLOAD_WITHIN_S)

    async def _read(self, request: HttpRequest, send: Send, limit_bytes: int, within_s: float) -> None:
        request.check_length(limit_bytes)
        try:
            body = await request.read_body(limit_bytes, within_s)
        except RequestRefused as refused:
            # The rest of the body is still to come, and is not read.
            closing = (*refused.headers, (b"connection", b"close"))
            raise RequestRefused(refused.status, refused.code, str(refused), *closing) from None
        await self._pass(request, send, body)

    async def _pass(self, request: HttpRequest, send: Send, body: bytearray) -> None:
        if not self._is_loaded:
            await self._ensure_loaded()
        slots = RequestSlots(self._limits)
        scope = {**request.scope, "path": self._path_prefix + request.path, SLOTS_KEY: slots.take}
        try:
            await self._application(scope, receive_of(body, request.receive), send)
        finally:
            slots.release()

    async def _ensure_loaded(self) -> None:
        if self._loading is None or self._loading.done():  # first, or the try before failed
            self._loading = asyncio.create_task(self._load_pages(), name="load pages")
        # Shielded: all early requests share it, and one that leaves must not cancel it for the others.
        await asyncio.shield(self._loading)

    async def _load_pages(self) -> None:
        await asyncio.to_thread(self._load)
        self._is_loaded = True


def is_in_utf_8(content_type: str) -> bool:
    """True if a form names no charset but UTF-8: Python's codecs fail at some others, or make no text."""
    try:
        _, parameters = parse_header_parameters(content_type)
    except ValueError:
        return False
    return parameters.get("charset", "utf-8").lower() in UTF_8


def _too_many_uploads(most: int) -> RequestRefused:
    return RequestRefused(429, "rate_limited", TOO_MANY, RETRY_SOON)


def _user_of(request: Any) -> int | None:
    """The user that authentication found for a request; None if no view asked, or there is none."""
    known = vars(request) if request is not None else {}
    if (caller := known.get("caller")) is not None:
        return int(caller.user.pk)
    user = known.get("user")  # of REST; on pages it is looked up only when it is used
    return int(user.pk) if type(user) is User else None


def _find_uploader(request: HttpRequest) -> tuple[int | None, float]:
    """The user whose live token a request carries, and processor seconds.

    Whether the token is of a fitting kind is the view's to say.
    """
    began_s = thread_time()
    holder = find_holder(presented(request.headers), *CALLER_KINDS, *AGENT_KINDS)
    return holder.user.pk if holder else None, thread_time() - began_s


async def _leave(receive: Receive) -> Any:
    """Wait until the client has left, and receive nothing: the body of an upload is not read yet."""
    exchange = getattr(receive, "__self__", None)
    while not getattr(exchange, "disconnected", False):  # noqa: ASYNC110  uvicorn has no event for it
        await asyncio.sleep(LOOKS_EVERY_S)
    return {"type": "http.disconnect"}
