"""The HTTP+JSON binding of A2A 1.0: what JSON-RPC does at an agent's address, as paths below it.

A plain ASGI callable beside `a2a_bridge.surface.asgi.Bridge`, with the same checks, operations and answers.
Parameters come from path, query and body, and are those of JSON-RPC.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from a2a_bridge.service.answering import CallRunner
from a2a_bridge.service.calls import Incoming
from a2a_bridge.service.exchange_notes import begin_note
from a2a_bridge.service.responses import CallAnswer, encode
from a2a_bridge.surface.addresses import find_address
from a2a_bridge.surface.asgi import PREFLIGHT, is_core, receive, response_headers
from a2a_bridge.wire import errors
from a2a_bridge.wire.dialects.agno import AGNO
from a2a_bridge.wire.dialects.dialect import Operation
from a2a_bridge.wire.dialects.reading import invalid
from a2a_bridge.wire.dialects.v1 import V1, V1_CORE
from a2a_bridge.wire.versions import no_method, version_of
from agents.transcript.pieces import Json
from kit import jsonrpc
from kit.asgi import HttpRequest, Send, answer_preflight
from kit.jsonrpc import RpcError, RpcId, read_call, read_value
from kit.strict_json import is_forbidden

MAX_QUERY_PARAMETERS = 64
FLAGS = ("includeArtifacts", "include_artifacts")
ENVELOPED = ("v1/message:send", "v1/message:stream")
MAY_BE_EMPTY = frozenset({Operation.CANCEL, Operation.SUBSCRIBE})
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


class HttpJsonWire:
    """Bare results and frames; errors as google.rpc.Status has them. See `a2a_bridge.service.calls.Wire`."""

    __slots__ = ("allow",)

    media_type = b"application/json"
    streams_errors = False
    headers = V1.headers

    def __init__(self) -> None:
        self.allow = b""

    def result(self, result: object) -> bytes:
        return encode(result)

    def frame(self, shown: object) -> bytes:
        return encode(shown)

    def error(self, error: RpcError) -> bytes:
        status = self.status(error)
        name = NAMES.get(status) or ("INVALID_ARGUMENT" if error.code in BROKEN else "FAILED_PRECONDITION")
        details = V1.error(error).data
        return encode({"error": {"code": status, "status": name, "message": error.message, "details": details}})

    def status(self, error: RpcError) -> int:
        return error.status if error.status != 200 else STATUSES.get(error.code, 400)


class EnvelopeWire(HttpJsonWire):
    """Results and frames of JSON-RPC, and errors of HTTP+JSON, because Agno reads only their HTTP status."""

    __slots__ = ("rpc_id",)

    headers = AGNO.headers

    def __init__(self, rpc_id: RpcId) -> None:
        super().__init__()
        self.rpc_id = rpc_id

    def result(self, result: object) -> bytes:
        return encode({"jsonrpc": "2.0", "result": result, "id": self.rpc_id})

    def frame(self, shown: object) -> bytes:
        return self.result(shown)


@dataclass(frozen=True, slots=True)
class HttpJsonBinding:
    """The addresses below every published agent's own."""

    runner: CallRunner
    public_url: str

    async def __call__(self, request: HttpRequest, handle: str, rest: str, send: Send) -> None:
        """Answer one request for `rest` below an agent's address; nothing a client sends makes this raise."""
        if request.method == "OPTIONS":
            await answer_preflight(send, PREFLIGHT)
            return
        wire = HttpJsonWire()
        answer = CallAnswer(request.receive, send, wire, response_headers(request, self.public_url))
        try:
            address, names = find_address(rest)
            wire.allow = ", ".join([*address.verbs, "OPTIONS"]).encode()
            incoming, body = await receive(request, handle, address.verbs, wire, self.public_url)
            if self.runner.exchanges is not None:
                incoming.note = answer.note = begin_note(request, body, incoming.body_bytes, "HTTP+JSON")
            if incoming.is_readable:
                try:
                    version, operation = version_of(request), address.operation(request.method)
                    if version == "" and rest in ENVELOPED and b'"jsonrpc"' in body:
                        take_envelope(request, operation, body, incoming)
                    elif version not in V1.versions:
                        text = "want A2A-Version: 1.0, as a header or in the query"
                        raise RpcError(errors.VERSION_NOT_SUPPORTED, text)
                    else:
                        params = params_of(request, operation, names, body)
                        dialect = V1_CORE if is_core(request.path) else V1
                        incoming.take(request, dialect, operation, dialect.method(operation).read(params))
                    if incoming.note is not None and incoming.dialect is not None:
                        incoming.note.dialect = incoming.dialect.description.title
                except RpcError as error:
                    incoming.error = error
        except Exception as failure:  # noqa: BLE001  whatever fails becomes the answer
            await answer.fail(failure)
            return
        del request, body  # an answer may take long; a stream need not hold them
        await self.runner.answer(incoming, answer)


def take_envelope(request: HttpRequest, operation: Operation, body: bytes, incoming: Incoming) -> None:
    """Read a call of Agno's, see `a2a_bridge.wire.dialects.agno`.

    Raises:
        RpcError: the body is no valid call, or names another method than its address.
    """
    rpc = read_call(body)
    incoming.wire = EnvelopeWire(rpc.rpc_id)
    method = AGNO.methods.get(rpc.method)
    if method is None or method.operation is not operation:
        raise no_method(rpc.method)
    incoming.take(request, AGNO, operation, method.read(rpc.params))


def params_of(request: HttpRequest, operation: Operation, names: dict[str, str], body: bytes) -> Json:
    """Parameters of an operation. The values of the path take precedence.

    Raises:
        RpcError: query or body are no parameters at all.
    """
    if request.method in ("GET", "HEAD"):
        return read_query(request.scope.get("query_string", b"")) | names
    if request.method == "DELETE" or (operation in MAY_BE_EMPTY and not body.strip()):
        return dict(names)
    params = read_value(body)
    if not isinstance(params, dict):
        raise invalid("body", "the body must be an object")
    return params | names


def read_query(query: bytes) -> Json:
    """The parameters of a query; empty ones count as absent.

    Raises:
        RpcError: -32602, it is not UTF-8, holds too much, or contradicts itself.
    """
    try:
        pairs = parse_qsl(query.decode("ascii"), errors="strict", max_num_fields=MAX_QUERY_PARAMETERS)
    except ValueError:
        raise invalid("query", f"query: want UTF-8, at most {MAX_QUERY_PARAMETERS} parameters") from None
    told: Json = {}
    for name, value in pairs:
        if told.setdefault(name, value) != value:
            raise invalid(name, f"{name}: told twice, and differently")
        if is_forbidden(value):
            raise invalid(name, f"{name}: text may not hold NUL")
    return {name: _flag(name, value) if name in FLAGS else value for name, value in told.items()}


def _flag(name: str, value: str) -> bool:
    if value not in ("true", "false"):
        raise invalid(name, f"{name}: want true or false")
    return value == "true"
