"""The HTTP+JSON binding of A2A 1.0: what JSON-RPC does at an agent's address, as paths below it.

A plain ASGI callable beside `a2a_bridge.asgi.Bridge`, with the same door, handlers and answers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from a2a_bridge import errors
from a2a_bridge.addresses import find_address, split
from a2a_bridge.answering import Answer, encode
from a2a_bridge.counter import Counter, call_of
from a2a_bridge.door import Door, preflight
from a2a_bridge.extensions import activated
from a2a_bridge.http_params import params_of
from a2a_bridge.versions import V1, speaks_v1, versions_of
from agents.pieces import Json
from kit import jsonrpc
from kit.asgi import Receive, Scope, Send, traced
from kit.jsonrpc import RpcError

STATUSES: Mapping[int, int] = {
    jsonrpc.METHOD_NOT_FOUND: 404,
    errors.TASK_NOT_FOUND: 404,
    jsonrpc.INTERNAL_ERROR: 500,
    errors.IDEMPOTENCY_KEY_REUSED: 422,
}
BROKEN = frozenset(
    {
        jsonrpc.PARSE_ERROR,
        jsonrpc.INVALID_REQUEST,
        jsonrpc.INVALID_PARAMS,
        errors.CONTENT_TYPE_NOT_SUPPORTED,
    }
)
NAMES: Mapping[int, str] = {
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    405: "UNIMPLEMENTED",
    408: "DEADLINE_EXCEEDED",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}


@dataclass(slots=True)
class HttpJsonWire:
    """Bare results and frames; errors as google.rpc.Status has them. See `a2a_bridge.answering.Wire`."""

    allow: bytes = b""
    media_type: bytes = field(default=b"application/json", init=False)

    def result(self, result: object) -> bytes:
        return encode(result)

    def frame(self, shown: Json) -> bytes:
        return encode(shown)

    def error(self, error: RpcError) -> bytes:
        status = self.status(error)
        name = NAMES.get(status) or ("INVALID_ARGUMENT" if error.code in BROKEN else "FAILED_PRECONDITION")
        details = V1.error(error).data
        return encode({"error": {"code": status, "status": name, "message": error.message, "details": details}})

    def status(self, error: RpcError) -> int:
        return error.status if error.status != 200 else STATUSES.get(error.code, 400)


@dataclass(frozen=True, slots=True)
class HttpJson:
    """The addresses below every published agent's own."""

    door: Door
    counter: Counter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; nothing a client sends makes this raise."""
        if scope["method"] == "OPTIONS":
            await preflight(send)
            return
        wire = HttpJsonWire()
        extra = [*activated(scope, self.door.public_url), traced(scope)]
        answer = Answer(receive, send, wire, extra)
        await self.counter.serve(answer, self._take(scope, receive, answer, wire), lambda: False)

    async def _take(self, scope: Scope, receive: Receive, answer: Answer, wire: HttpJsonWire) -> None:
        handle, rest = split(scope["path"]) or (None, "")
        address, names = find_address(rest)
        wire.allow = ", ".join([*address.verbs, "OPTIONS"]).encode()
        caller, body = await self.door.enter(scope, receive, handle, address.verbs)
        if not speaks_v1(versions_of(scope)):
            raise RpcError(errors.VERSION_NOT_SUPPORTED, "want A2A-Version: 1.0, as a header or in the query")
        operation = address.operation(scope["method"])
        request = V1.read(operation, params_of(scope, operation, names, body))
        await self.counter.give(call_of(scope, caller, V1, operation, request), answer)
