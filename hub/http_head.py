"""The head of a request: its headers' names in lower case, and what a trusted proxy says of the client."""

from collections.abc import Callable
from contextlib import suppress
from copy import copy
from functools import lru_cache
from typing import Any, cast

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from kit.asgi import Scope

USUAL_HEADERS = (
    *(b"accept", b"accept-encoding", b"accept-language", b"authorization", b"cache-control", b"connection"),
    *(b"content-length", b"content-type", b"cookie", b"forwarded", b"host", b"idempotency-key", b"origin"),
    *(b"referer", b"traceparent", b"user-agent", b"via", b"x-forwarded-for", b"x-forwarded-host"),
    *(b"x-forwarded-proto", b"x-real-ip", b"x-request-id"),
)


class LowerCaseNames(dict[bytes, bytes]):
    """The names of headers in lower case; the usual ones without a call."""

    def __missing__(self, name: bytes) -> bytes:
        return name.lower()


LOWER_CASE = LowerCaseNames({form: name for name in USUAL_HEADERS for form in (name, name.title())})


@lru_cache(maxsize=8)
def find_proxy_headers(app: object) -> Callable[[Scope], None] | None:
    """The function that changes a scope as uvicorn does where it trusts proxies; None: uvicorn trusts none."""
    if not isinstance(app, ProxyHeadersMiddleware):
        return None

    async def serve_nothing(*_: object) -> None: ...

    middleware = cast(Any, copy(app))
    middleware.app = serve_nothing

    def change(scope: Scope) -> None:
        with suppress(StopIteration):  # the middleware waits for nothing
            middleware(scope, serve_nothing, serve_nothing).send(None)

    return change
