"""JSON-RPC 2.0 envelopes read strictly: no batches, no notifications, nothing that `kit.strict_json` refuses.

Implements the checks of rows 1 to 16 of the hostile-input table in docs/reference/errors.md.
"""

from typing import Any

import msgspec

from kit import strict_json
from kit.strict_json import BadShape, ForbiddenText, NotJson, UnreadableText, is_forbidden

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

INT64 = 2**63

RpcId = str | int | None


class RpcError(Exception):
    """A request that gets a JSON-RPC error object; `status` is the HTTP status it travels on.

    `field` names the wrong field of the request; `data` is what a dialect adds, left out when None.
    """

    def __init__(
        self, code: int, message: str, rpc_id: RpcId = None, *, status: int = 200, field: str = ""
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.rpc_id = rpc_id
        self.status = status
        self.field = field
        self.data: Any = None

    def envelope(self) -> dict[str, Any]:
        """The response envelope."""
        error = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = self.data
        return {"jsonrpc": "2.0", "error": error, "id": self.rpc_id}

    def body(self) -> bytes:
        """The response envelope as JSON."""
        return msgspec.json.encode(self.envelope())


class RpcCall(msgspec.Struct, frozen=True):
    """A request with a valid envelope; `params` is the caller's JSON, not checked yet."""

    rpc_id: RpcId
    method: str
    params: Any


def read_call(body: bytes) -> RpcCall:
    """Decode one JSON-RPC request.

    Raises:
        RpcError: -32700 when the body is not JSON, -32600 for an invalid request, -32602 for forbidden text.
    """
    forbidden: ForbiddenText | None = None
    try:
        envelope = strict_json.read(body)
    except ForbiddenText as found:  # refused below, where the id is known
        forbidden, envelope = found, found.value
    except UnreadableText as wrong:
        raise _unreadable(wrong) from None
    if type(envelope) is not dict:
        raise RpcError(INVALID_REQUEST, "want one request object; batches are not supported")
    if "id" not in envelope:
        raise RpcError(INVALID_REQUEST, "id is missing; notifications are not supported")
    rpc_id = envelope["id"]
    if type(rpc_id) is str:
        is_id = forbidden is None or not is_forbidden(rpc_id)
    else:
        is_id = rpc_id is None or (type(rpc_id) is int and -INT64 <= rpc_id < INT64)
    if not is_id:
        raise RpcError(INVALID_REQUEST, "id must be a string, a 64-bit integer or null")
    match envelope:
        case {"jsonrpc": "2.0", "method": str(method)}:
            pass
        case {"jsonrpc": "2.0"}:
            raise RpcError(INVALID_REQUEST, "method must be a string", rpc_id)
        case _:
            raise RpcError(INVALID_REQUEST, 'want "jsonrpc": "2.0"', rpc_id)
    if forbidden is not None:
        raise RpcError(INVALID_PARAMS, str(forbidden), rpc_id)
    return RpcCall(rpc_id, method, envelope.get("params"))


def read_value(body: bytes) -> Any:
    """The JSON value of a body.

    Raises:
        RpcError: -32700 when the body is not JSON, -32600 for JSON that `kit.strict_json` refuses, -32602 for
            forbidden text.
    """
    try:
        return strict_json.read(body)
    except UnreadableText as wrong:
        raise _unreadable(wrong) from None


def _unreadable(wrong: UnreadableText) -> RpcError:
    codes = {NotJson: PARSE_ERROR, BadShape: INVALID_REQUEST, ForbiddenText: INVALID_PARAMS}
    return RpcError(codes[type(wrong)], str(wrong))
