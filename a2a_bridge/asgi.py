"""`POST /api/a2a/v1/agents/{owner}/{slug}`: JSON-RPC in, one JSON answer or an event stream out.

A plain ASGI callable, because a Django view costs a thread per request (docs/adr/0002).
"""

from dataclasses import dataclass, field

from a2a_bridge.answering import Answer, encode
from a2a_bridge.counter import Counter, call_of
from a2a_bridge.dialects.dialect import STREAMS, Dialect
from a2a_bridge.door import Door, preflight
from a2a_bridge.extensions import activated
from a2a_bridge.versions import HUB, choose, no_method, of_errors, versions_of
from agents.pieces import Json
from kit.asgi import Receive, Scope, Send, traced
from kit.jsonrpc import RpcError, RpcId, read_call

PREFIX = "/api/a2a/v1/agents/"


def handle_of(path: str) -> str | None:
    """The agent's handle when a path is its endpoint (a slash at the end is tolerated), else None."""
    if not path.startswith(PREFIX):
        return None
    handle = path[len(PREFIX) :].removesuffix("/")
    handle = handle.removeprefix("@")  # the name people write is @owner/slug
    owner, _, slug = handle.partition("/")
    return handle if owner and slug and "/" not in slug and handle.isprintable() else None


@dataclass(slots=True)
class RpcWire:
    """JSON-RPC: every answer has an envelope with the request's id. See `a2a_bridge.answering.Wire`."""

    dialect: Dialect = HUB
    rpc_id: RpcId = None
    streams_errors: bool = False
    media_type: bytes = field(default=b"application/json", init=False)
    allow: bytes = field(default=b"POST, OPTIONS", init=False)

    def result(self, result: object) -> bytes:
        return encode({"jsonrpc": "2.0", "result": result, "id": self.rpc_id})

    def frame(self, shown: Json) -> bytes:
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

    door: Door
    counter: Counter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; nothing a client sends makes this raise."""
        if scope["method"] == "OPTIONS":
            await preflight(send)
            return
        wire = RpcWire(of_errors(versions_of(scope)))
        extra = [*activated(scope, self.door.public_url), traced(scope)]
        answer = Answer(receive, send, wire, extra)
        await self.counter.serve(answer, self._take(scope, receive, answer, wire), lambda: wire.streams_errors)

    async def _take(self, scope: Scope, receive: Receive, answer: Answer, wire: RpcWire) -> None:
        caller, body = await self.door.enter(scope, receive, handle_of(scope["path"]), ("POST",))
        call = read_call(body)
        wire.rpc_id = call.rpc_id
        wire.dialect = dialect = choose(call.method, versions_of(scope))
        operation = dialect.methods.get(call.method)
        if operation is None:
            raise no_method(call.method)
        wire.streams_errors = dialect.streams_errors and operation in STREAMS
        request = dialect.read(operation, call.params)
        await self.counter.give(call_of(scope, caller, dialect, operation, request), answer)
