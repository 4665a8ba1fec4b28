"""The door of the bridge: which agent, how a request may come, and who calls."""

from collections.abc import Sequence
from dataclasses import dataclass

from a2a_bridge import errors
from a2a_bridge.calls import Caller
from accounts.authn import CALLER_KINDS, ForeignOrigin, TokenScope, check_origin, presented
from agents.ledger import Ledger
from kit.asgi import (
    BODY_WITHIN_S,
    MAX_BODY_BYTES,
    BodyTooLarge,
    BodyTooSlow,
    Receive,
    Scope,
    Send,
    contradicted_header,
    headers_of,
    media_type_of,
    read_body,
)
from kit.jsonrpc import INVALID_REQUEST, RpcError

MEDIA_TYPES = frozenset({"", "application/json", "application/a2a+json"})
PREFLIGHT = [
    (b"access-control-allow-origin", b"*"),
    (b"access-control-allow-methods", b"GET, POST, DELETE, OPTIONS"),
    (
        b"access-control-allow-headers",
        b"Authorization, Content-Type, A2A-Version, A2A-Extensions, X-A2A-Extensions, Last-Event-ID,"
        b" Idempotency-Key, traceparent, tracestate",
    ),
    (b"access-control-max-age", b"86400"),
]


@dataclass(frozen=True, slots=True)
class Door:
    """Who may come in, and what they may bring. `public_url`: whose pages may use the cookie."""

    ledger: Ledger
    public_url: str

    async def enter(
        self, scope: Scope, receive: Receive, handle: str | None, methods: Sequence[str]
    ) -> tuple[Caller, bytes]:
        """Check a request in the order: agent, HTTP method, media type, size, caller.

        Raises:
            RpcError, Unavailable: it may not come in.
        """
        headers = headers_of(scope)
        wrong = _transport_error(scope, methods, headers)
        body = b""
        if wrong is None:
            try:
                body = await read_body(scope, receive, limit_bytes=MAX_BODY_BYTES, within_s=BODY_WITHIN_S)
            except BodyTooLarge:
                wrong = _too_large(MAX_BODY_BYTES)
            except BodyTooSlow:
                wrong = RpcError(INVALID_REQUEST, f"the body took over {BODY_WITHIN_S:g} s", status=408)
        return await self._find_caller(scope, handle, headers, wrong, len(body)), body

    async def _find_caller(
        self, scope: Scope, handle: str | None, headers: dict[str, str], wrong: RpcError | None, body_bytes: int
    ) -> Caller:
        token = presented(headers)
        found = await self.ledger.look_up(token.digest if token else None, handle)
        if found.agent is None:
            raise errors.agent_not_found()
        if wrong is not None:
            raise wrong
        if found.agent.max_body_bytes is not None and body_bytes > found.agent.max_body_bytes:
            raise _too_large(found.agent.max_body_bytes)
        if token is None or found.identity is None or found.identity.kind not in CALLER_KINDS:
            raise errors.unauthenticated()
        if token.by_cookie:
            try:
                check_origin(scope["method"], headers, public_url=self.public_url)
            except ForeignOrigin:
                raise errors.foreign_origin() from None
        if not found.identity.may(TokenScope.ASK, agent=found.agent.handle):
            raise errors.out_of_scope()
        return Caller(found.identity, found.agent)


async def preflight(send: Send) -> None:
    """What a browser may send from another origin: everything but a cookie."""
    await send({"type": "http.response.start", "status": 204, "headers": PREFLIGHT})
    await send({"type": "http.response.body", "body": b""})


def _too_large(limit_bytes: int) -> RpcError:
    return RpcError(INVALID_REQUEST, f"the body is over {limit_bytes} bytes", status=413)


def _transport_error(scope: Scope, methods: Sequence[str], headers: dict[str, str]) -> RpcError | None:
    http_method = scope["method"]
    if http_method not in methods:
        return RpcError(INVALID_REQUEST, f"want {' or '.join(methods)}", status=405)
    if name := contradicted_header(scope):
        return RpcError(INVALID_REQUEST, f"the header {name} came with two values", status=400)
    if http_method == "POST" and media_type_of(headers.get("content-type", "")) not in MEDIA_TYPES:
        return RpcError(errors.CONTENT_TYPE_NOT_SUPPORTED, "want Content-Type: application/json", status=415)
    return None
