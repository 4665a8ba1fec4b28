"""`POST /api/a2a/v1/agents/{owner}/{slug}`: JSON-RPC in, one JSON answer or an event stream out.

A plain ASGI callable, because a Django view costs a thread per request (docs/adr/0002). Clients give up after 5 s
of silence, so a waiting answer is padded with a space, and a waiting stream with a comment, every 3 s.
"""

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

import msgspec

from a2a_bridge import errors
from a2a_bridge.dialects import hub
from a2a_bridge.exchange import Exchange, timestamp
from a2a_bridge.methods import Caller, Method, Services
from a2a_bridge.open_streams import OpenStreams
from a2a_bridge.tasks.record import Task
from a2a_bridge.versions import choose
from accounts.authn import CALLER_KINDS, ForeignOrigin, check_origin, presented
from accounts.served import Served
from agents.errors import NotPublished, Unavailable
from agents.ledger import Ledger
from agents.waiting import RunningTurn
from kit import sse
from kit.asgi import (
    BodyTooLarge,
    BodyTooSlow,
    ClientLeft,
    Receive,
    Scope,
    Send,
    headers_named,
    headers_of,
    read_body,
    respond,
)
from kit.ids import unguessable
from kit.jsonrpc import INTERNAL_ERROR, INVALID_REQUEST, RpcError, RpcId, read_call

logger = logging.getLogger(__name__)

PREFIX = "/api/a2a/v1/agents/"
MAX_BODY_BYTES = 1_048_576
BODY_WITHIN_S = 30.0
KEEPALIVE_S = 3.0
SEND_WITHIN_S = 30.0
MEDIA_TYPES = frozenset({"", "application/json", "application/a2a+json"})
CORS = [(b"access-control-allow-origin", b"*")]
PREFLIGHT = [
    *CORS,
    (b"access-control-allow-methods", b"POST, OPTIONS"),
    (
        b"access-control-allow-headers",
        b"Authorization, Content-Type, A2A-Version, A2A-Extensions, X-A2A-Extensions",
    ),
    (b"access-control-max-age", b"86400"),
]
EXTRA_HEADERS = {
    401: [(b"www-authenticate", b"Bearer")],
    405: [(b"allow", b"POST, OPTIONS")],
    503: [(b"retry-after", b"2")],
}

_encode = msgspec.json.Encoder().encode


def handle_of(path: str) -> str | None:
    """The agent's handle when a path is its endpoint (a slash at the end is tolerated), else None."""
    if not path.startswith(PREFIX):
        return None
    handle = path[len(PREFIX) :].removesuffix("/")
    handle = handle.removeprefix("@")  # the name people write is @owner/slug
    owner, _, slug = handle.partition("/")
    return handle if owner and slug and "/" not in slug and handle.isprintable() else None


@dataclass(frozen=True, slots=True)
class Request:
    """A request that is sound: what to run, for whom, with what."""

    rpc_id: RpcId
    method: Method
    caller: Caller
    params: Any


@dataclass(frozen=True, slots=True)
class Bridge:
    """The endpoint of every published agent. `public_origin`: whose pages may use the cookie."""

    services: Services
    ledger: Ledger
    streams: OpenStreams
    public_origin: str
    callers: Served

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; nothing a client sends makes this raise."""
        rpc_id: RpcId = None
        try:
            if scope["method"] == "OPTIONS":
                await send({"type": "http.response.start", "status": 204, "headers": PREFLIGHT})
                await send({"type": "http.response.body", "body": b""})
                return
            request = await self._read(scope, receive)
            rpc_id = request.rpc_id
            await (self._stream(send, request) if request.method.streams else self._answer(send, request))
        except RpcError as error:
            await _refuse(send, error, rpc_id)
        except NotPublished:
            await _refuse(send, errors.agent_not_found(), rpc_id)
        except Unavailable:
            await _refuse(send, errors.unavailable(), rpc_id)
        except (ClientLeft, OSError):
            return
        except Exception:
            logger.exception("bridge.failed", extra={"path": scope["path"]})
            await _refuse(send, RpcError(INTERNAL_ERROR, "internal error", status=500), rpc_id)

    async def _answer(self, send: Send, request: Request) -> None:
        exchange = await self._run(request)
        answer = Answer(send)
        if not await self._serve(request, _answer(answer, request.rpc_id, exchange)):
            await answer.cut_off(errors.unauthenticated(), request.rpc_id)

    async def _stream(self, send: Send, request: Request) -> None:
        caller_id = request.caller.identity.user_id
        self.streams.enter(caller_id)
        try:
            exchange = await self._run(request)
            if not await self._serve(request, _stream(send, exchange)):
                await _send(send, {"type": "http.response.body", "body": b""})
        finally:
            self.streams.leave(caller_id)

    async def _run(self, request: Request) -> Exchange:
        return await request.method.run(self.services, request.caller, request.params)

    async def _serve(self, request: Request, answer: Coroutine[Any, Any, None]) -> bool:
        """Run what may take long; False when the caller's credential was revoked before its end."""
        return await self.callers.serve(request.caller.identity.credential_id, answer)

    async def _read(self, scope: Scope, receive: Receive) -> Request:
        """Check a request in the order: agent, HTTP method, media type, size, caller, JSON, method, params."""
        headers = headers_of(scope)
        wrong = _transport_error(scope["method"], headers)
        body = b""
        if wrong is None:
            try:
                body = await read_body(scope, receive, limit_bytes=MAX_BODY_BYTES, within_s=BODY_WITHIN_S)
            except BodyTooLarge:
                wrong = RpcError(INVALID_REQUEST, f"the body is over {MAX_BODY_BYTES} bytes", status=413)
            except BodyTooSlow:
                wrong = RpcError(INVALID_REQUEST, f"the body took over {BODY_WITHIN_S:g} s", status=408)
        caller = await self._find_caller(scope, headers, wrong)
        call = read_call(body)
        method = choose(call, _versions(scope))
        try:
            return Request(call.rpc_id, method, caller, hub.read_params(method.params, call.params))
        except RpcError as error:
            error.rpc_id = call.rpc_id
            raise

    async def _find_caller(self, scope: Scope, headers: dict[str, str], wrong: RpcError | None) -> Caller:
        token = presented(headers)
        found = await self.ledger.look_up(token.digest if token else None, handle_of(scope["path"]))
        if found.agent is None:
            raise errors.agent_not_found()
        if wrong is not None:
            raise wrong
        if token is None or found.identity is None or found.identity.kind not in CALLER_KINDS:
            raise errors.unauthenticated()
        if token.by_cookie:
            try:
                check_origin("POST", headers, public_origin=self.public_origin)
            except ForeignOrigin:
                raise errors.foreign_origin() from None
        return Caller(found.identity, found.agent)


def _transport_error(http_method: str, headers: dict[str, str]) -> RpcError | None:
    if http_method != "POST":
        return RpcError(INVALID_REQUEST, "want POST", status=405)
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in MEDIA_TYPES:
        return RpcError(errors.CONTENT_TYPE_NOT_SUPPORTED, "want Content-Type: application/json", status=415)
    return None


def _versions(scope: Scope) -> list[str]:
    if named := headers_named(scope, b"a2a-version"):
        return named
    query = scope.get("query_string", b"")
    return parse_qs(str(query, "latin-1")).get("A2A-Version", []) if query else []


async def _refuse(send: Send, error: RpcError, rpc_id: RpcId) -> None:
    if error.rpc_id is None:
        error.rpc_id = rpc_id
    await respond(send, error.status, error.body(), [*CORS, *EXTRA_HEADERS.get(error.status, ())])


class Answer:
    """A `send` that knows whether the answer has begun."""

    __slots__ = ("_has_begun", "_plain")

    def __init__(self, send: Send) -> None:
        self._plain = send
        self._has_begun = False

    async def __call__(self, message: Mapping[str, Any]) -> None:
        self._has_begun = True
        await self._plain(message)

    async def cut_off(self, error: RpcError, rpc_id: RpcId) -> None:
        """End with an error, whichever half of the answer is out."""
        error.rpc_id = rpc_id
        if self._has_begun:
            await _send(self._plain, {"type": "http.response.body", "body": error.body()})
        else:
            await _refuse(self._plain, error, rpc_id)


async def _answer(send: Send, rpc_id: RpcId, exchange: Exchange) -> None:
    """The finished task in one answer; spaces before its JSON keep an impatient client waiting."""
    if await exchange.ended(KEEPALIVE_S):
        await respond(send, 200, _result(rpc_id, exchange), CORS)
        return
    headers = [(b"content-type", b"application/json"), *CORS]
    await _send(send, {"type": "http.response.start", "status": 200, "headers": headers})
    while True:
        await _send(send, {"type": "http.response.body", "body": b" ", "more_body": True})
        if await exchange.ended(KEEPALIVE_S):
            break
    await _send(send, {"type": "http.response.body", "body": _result(rpc_id, exchange)})


def _result(rpc_id: RpcId, exchange: Exchange) -> bytes:
    return _encode({"jsonrpc": "2.0", "result": hub.task_json(exchange.task), "id": rpc_id})


async def _stream(send: Send, exchange: Exchange) -> None:
    """First the task as it began, then its chunks, last its end; a refused one is a single FAILED frame."""
    await _send(send, {"type": "http.response.start", "status": 200, "headers": [*sse.HEADERS, *CORS]})
    await _send_event(send, hub.frame(exchange.opening))
    if exchange.running is not None:
        await _send_chunks(send, exchange.opening, exchange.running)
        await _send_event(send, hub.frame(exchange.task))
    await _send(send, {"type": "http.response.body", "body": b""})


async def _send_chunks(send: Send, task: Task, running: RunningTurn) -> None:
    message_id = unguessable("msg-")
    told = 0
    while told < len(running.pieces) or not running.settled.done():
        if not await running.more_than(told, KEEPALIVE_S):
            await _send(send, {"type": "http.response.body", "body": sse.KEEPALIVE, "more_body": True})
        for piece in running.pieces[told:]:
            told += 1
            if not isinstance(piece, str):
                continue
            await _send_event(send, hub.chunk_frame(task, piece, message_id=message_id, timestamp=timestamp()))


async def _send_event(send: Send, frame: hub.Json) -> None:
    await _send(send, {"type": "http.response.body", "body": sse.event(_encode(frame)), "more_body": True})


async def _send(send: Send, message: dict[str, Any]) -> None:
    """Send to a client that must take it in time."""
    try:
        async with asyncio.timeout(SEND_WITHIN_S):
            await send(message)
    except TimeoutError:
        raise ClientLeft from None
