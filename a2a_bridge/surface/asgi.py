"""`POST /api/a2a/v1/agents/{owner}/{slug}`: JSON-RPC in, one JSON answer or an event stream out.

A plain ASGI callable, because a Django view costs a thread per request.
"""

import re
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from a2a_bridge.service.answering import CallRunner
from a2a_bridge.service.calls import Incoming, Wire
from a2a_bridge.service.direct import answer_whole
from a2a_bridge.service.exchange_notes import begin_note
from a2a_bridge.service.responses import CallAnswer, encode
from a2a_bridge.wire.dialects.dialect import STREAMS, Dialect
from a2a_bridge.wire.dialects.v1 import CORE, V1, V1_CORE
from a2a_bridge.wire.versions import EXTENSION_PATHS, SPOKEN, choose, no_method, version_of
from accounts.authn import presented
from kit.asgi import Exchange, Header, HttpRequest, RequestRefused, Send, answer_preflight
from kit.jsonrpc import RpcError, RpcId, read_call

PREFIX = "/api/a2a/v1/agents/"
HANDLE = re.compile("@?+([^/]+/[^/]+)/?")  # the name people write is @owner/slug
AGENT_PATH = re.compile(PREFIX + "@?+([^/]+/[^/]+)(?:/(.*))?", re.DOTALL)
BASE = re.compile(PREFIX + f"[^/]+/[^/]+(/{CORE}|/v1)?/?")
RPC_PATHS = frozenset({"", CORE, f"{CORE}/"})  # below an agent's address
EXTENSION_HEADERS = ("a2a-extensions", "x-a2a-extensions")
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


def find_handle(name: str) -> str | None:
    """The handle in an agent's name, at whose end a slash is tolerated; None where no agent can have the name."""
    found = HANDLE.fullmatch(name)
    return found[1] if found and found[1].isprintable() else None


def split(path: str) -> tuple[str, str] | None:
    """The handle, and what is below the agent's address, of a path that is or lies below one; else None."""
    found = AGENT_PATH.fullmatch(path)
    return (found[1], found[2] or "") if found and found[1].isprintable() else None


def without_slash(path: str) -> str:
    """The path in the form of Django's URLs: an agent's base, and `core` and `v1` below it, lose a last slash."""
    return path.rstrip("/") if BASE.fullmatch(path) else path


def is_core(path: str) -> bool:
    """True if a path is the core endpoint of an agent, or below it."""
    return path.removeprefix(PREFIX).split("/")[2:3] == [CORE]


def response_headers(request: HttpRequest, public_url: str) -> list[Header]:
    """The response headers that name the extensions that the request asks for and the hub has, and the trace."""
    headers: list[Header] = []
    for name in EXTENSION_HEADERS:
        if name in request.headers:
            asked = {uri.strip() for value in request.values(name) for uri in value.split(",")}
            if ours := [uri for path in EXTENSION_PATHS if (uri := f"{public_url}{path}") in asked]:
                headers.append((name.encode(), ", ".join(ours).encode()))
    return [*headers, request.enter_trace()]


async def receive(
    request: HttpRequest, handle: str | None, methods: Sequence[str], wire: Wire, public_url: str
) -> tuple[Incoming, bytes]:
    """Read a request and keep its errors, which are sent after its caller and its agent were looked up.

    `public_url`: the origin whose pages may use the cookie.

    Raises:
        ClientLeft: it went away.
    """
    refused, body = None, b""
    try:
        body = await request.read_checked(methods)
    except RequestRefused as error:
        refused = error
    return _incoming(request, handle, wire, public_url, body, refused), body


def _incoming(
    request: HttpRequest,
    handle: str | None,
    wire: Wire,
    public_url: str,
    body: bytes,
    refused: RequestRefused | None,
) -> Incoming:
    token = presented(request.headers, request.method, public_url)
    return Incoming(
        handle=handle,
        token=token,
        digest=token.digest if token else None,
        wire=wire,
        body_bytes=len(body),
        refused=refused,
        is_readable=refused is None and token is not None,
    )


class RpcWire(Struct):
    """JSON-RPC: every answer has an envelope with the request's id. See `a2a_bridge.service.calls.Wire`."""

    dialect: Dialect
    rpc_id: RpcId = None
    streams_errors: bool = False
    media_type: bytes = b"application/json"
    allow: bytes = b"GET, HEAD, POST, OPTIONS"

    @property
    def headers(self) -> Sequence[Header]:
        """The version that is served; the hub's own dialect has none."""
        return self.dialect.headers

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

    runner: CallRunner
    public_url: str

    async def __call__(self, request: HttpRequest, handle: str, send: Send) -> None:
        """Answer one request; nothing a client sends makes this raise."""
        if request.method == "OPTIONS":
            await answer_preflight(send, PREFLIGHT)
            return
        version, wire = _wire_of(request)
        answer = CallAnswer(request.receive, send, wire, response_headers(request, self.public_url))
        try:
            incoming, body = await receive(request, handle, ("POST",), wire, self.public_url)
            self._read(request, version, wire, incoming, body, answer)
        except Exception as failure:  # noqa: BLE001  whatever fails becomes the answer
            await answer.fail(failure)
            return
        del request, body  # an answer may take long; a stream need not hold them
        await self.runner.answer(incoming, answer)

    def ask_whole(
        self, handle: str, request: HttpRequest, body: bytes, exchange: Exchange
    ) -> Coroutine[Any, Any, None] | None:
        """Answer one POST whose body was read; returns a coroutine if the call needs a task from its beginning."""
        version, wire = _wire_of(request)
        headers = response_headers(request, self.public_url)
        answer = CallAnswer(exchange.receive, exchange.send, wire, headers, exchange=exchange)
        try:
            refused = None
            try:
                request.check_whole(("POST",), body)
            except RequestRefused as error:
                refused, body = error, b""
            incoming = _incoming(request, handle, wire, self.public_url, body, refused)
            self._read(request, version, wire, incoming, body, answer)
            return answer_whole(self.runner, incoming, answer, exchange)
        except Exception as failure:  # noqa: BLE001  whatever fails becomes the answer
            return answer.fail(failure)

    def _read(
        self,
        request: HttpRequest,
        version: str | None,
        wire: RpcWire,
        incoming: Incoming,
        body: bytes,
        answer: CallAnswer,
    ) -> None:
        """Read the call of a request; an error of what it says is kept in `incoming`."""
        if self.runner.exchanges is not None:
            incoming.note = answer.note = begin_note(request, body, incoming.body_bytes, "JSON-RPC")
        if not incoming.is_readable:
            return
        try:
            rpc = read_call(body)
            wire = incoming.wire = RpcWire(wire.dialect, rpc.rpc_id)
            dialect = choose(rpc.method, version, rpc.params)
            if dialect is V1 and is_core(request.path):
                dialect = V1_CORE
            wire.dialect = dialect
            method = dialect.methods.get(rpc.method)
            if method is None:
                raise no_method(rpc.method)
            wire.streams_errors = dialect.streams_errors and method.operation in STREAMS
            incoming.take(request, dialect, method.operation, method.read(rpc.params))
            if incoming.note is not None:
                incoming.note.dialect = dialect.description.title
        except RpcError as error:
            incoming.error = error


def _wire_of(request: HttpRequest) -> tuple[str | None, RpcWire]:
    """The version of a request, and the wire of errors that come before there is a method.

    -32009 is an error of 1.0, which has details.
    """
    version = version_of(request)
    return version, RpcWire(SPOKEN[version][False] if version in SPOKEN else V1)
