"""`POST /api/a2a/v1/agents/{owner}/{slug}`: JSON-RPC in, one JSON answer or an event stream out.

A plain ASGI callable, because a Django view costs a thread per request.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from a2a_bridge.service.answering import CallAnswer, CallRunner, encode
from a2a_bridge.service.calls import Incoming, Wire
from a2a_bridge.wire.dialects.dialect import STREAMS, Dialect
from a2a_bridge.wire.dialects.v1 import CORE, V1, V1_CORE
from a2a_bridge.wire.versions import VERSION_HEADERS, activated, choose, error_dialect, no_method, version_of
from accounts.authn import presented
from kit.asgi import Header, HttpRequest, RequestRefused, Send, answer_preflight
from kit.jsonrpc import RpcError, RpcId, read_call

PREFIX = "/api/a2a/v1/agents/"
ENDPOINT = re.compile(PREFIX + "@?+([^/]+/[^/]+)/?")  # the name people write is @owner/slug
BASE = re.compile(PREFIX + f"[^/]+/[^/]+(/{CORE}|/v1)?/?")
RPC_ENDPOINT = re.compile(PREFIX + f"@?+([^/]+/[^/]+)(/{CORE})?/?")
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


def handle_of(path: str) -> str | None:
    """The agent's handle when a path is its endpoint (a slash at the end is tolerated), else None."""
    found = ENDPOINT.fullmatch(path)
    return found[1] if found and found[1].isprintable() else None


def rpc_handle_of(path: str) -> str | None:
    """The agent's handle when a path takes JSON-RPC: the agent's endpoint or core endpoint; else None."""
    found = RPC_ENDPOINT.fullmatch(path)
    return found[1] if found and found[1].isprintable() else None


def without_slash(path: str) -> str:
    """The path in the form of Django's URLs: an agent's base, and `core` and `v1` below it, lose a last slash."""
    return path.rstrip("/") if BASE.fullmatch(path) else path


def is_core(path: str) -> bool:
    """True if a path is the core endpoint of an agent, or below it."""
    return path.removeprefix(PREFIX).split("/")[2:3] == [CORE]


@dataclass(frozen=True, slots=True)
class RequestReader:
    """Reads requests and their credentials. `public_url`: the origin whose pages may use the cookie."""

    public_url: str

    async def receive(
        self, request: HttpRequest, handle: str | None, methods: Sequence[str], wire: Wire
    ) -> tuple[Incoming, bytes]:
        """Read a request and keep its errors, which are sent after its caller and its agent were looked up.

        Raises:
            ClientLeft: it went away.
        """
        refused, body = None, b""
        try:
            body = await request.read_checked(methods)
        except RequestRefused as error:
            refused = error
        token = presented(request.headers, request.method, self.public_url)
        incoming = Incoming(
            handle=handle,
            token=token,
            digest=token.digest if token else None,
            wire=wire,
            body_bytes=len(body),
            refused=refused,
            is_readable=refused is None and token is not None,
        )
        return incoming, body

    def headers(self, request: HttpRequest) -> list[Header]:
        """The response headers that name extensions and the trace."""
        return [*activated(request, self.public_url), request.enter_trace()]


class RpcWire:
    """JSON-RPC: every answer has an envelope with the request's id. See `a2a_bridge.service.calls.Wire`."""

    __slots__ = ("dialect", "rpc_id", "streams_errors")

    media_type = b"application/json"
    allow = b"GET, HEAD, POST, OPTIONS"

    def __init__(self, dialect: Dialect, rpc_id: RpcId = None) -> None:
        self.dialect = dialect
        self.rpc_id = rpc_id
        self.streams_errors = False

    @property
    def headers(self) -> Sequence[Header]:
        """The version that is served; the hub's own dialect has none."""
        return VERSION_HEADERS.get(self.dialect.name, ())

    def result(self, result: object) -> bytes:
        return encode({"jsonrpc": "2.0", "result": result, "id": self.rpc_id})

    def frame(self, shown: object) -> bytes:
        return self.result(shown) if self.dialect.has_envelope else encode(shown)

    def error(self, error: RpcError) -> bytes:
        if error.rpc_id is None:
            error.rpc_id = self.rpc_id
        return self.dialect.error(error).body()

    def status(self, error: RpcError) -> int:
        return error.status


@dataclass(frozen=True, slots=True)
class Bridge:
    """The JSON-RPC endpoint of every published agent."""

    access: RequestReader
    runner: CallRunner

    async def __call__(self, request: HttpRequest, handle: str, send: Send) -> None:
        """Answer one request; nothing a client sends makes this raise."""
        if request.method == "OPTIONS":
            await answer_preflight(send, PREFLIGHT)
            return
        version = version_of(request)
        wire = RpcWire(error_dialect(version))
        answer = CallAnswer(request.receive, send, RpcWire(wire.dialect), self.access.headers(request))
        try:
            incoming, body = await self.access.receive(request, handle, ("POST",), wire)
            if incoming.is_readable:
                try:
                    rpc = read_call(body)
                    wire.rpc_id = rpc.rpc_id
                    dialect = choose(rpc.method, version, rpc.params)
                    if dialect is V1 and is_core(request.path):
                        dialect = V1_CORE
                    wire.dialect = dialect
                    operation = dialect.methods.get(rpc.method)
                    if operation is None:
                        raise no_method(rpc.method)
                    wire.streams_errors = dialect.streams_errors and operation in STREAMS
                    incoming.take(request, dialect, operation, dialect.read(operation, rpc.params))
                    del rpc
                except RpcError as error:
                    incoming.error = error
            del request, body  # an answer may take long; a stream need not hold them
            await self.runner.run(incoming, answer)
        except Exception as failure:  # noqa: BLE001  whatever fails becomes the answer
            await answer.fail(failure)
