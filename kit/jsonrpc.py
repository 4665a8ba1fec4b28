"""JSON-RPC 2.0 envelopes read strictly: what msgspec and json let pass is refused here first.

Implements the checks of rows 1 to 16 of the hostile-input table in docs/reference/errors.md: no batches, no
notifications, no duplicate keys, at most 64 levels, no NUL and no lone surrogate in any string.
"""

import json
from dataclasses import dataclass
from typing import Any, NoReturn

import msgspec

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

MAX_DEPTH = 64
MAX_BRACKETS = 10_000  # half a million empty arrays in one body would hold up everybody else
INT64 = 2**63

RpcId = str | int | None


class RpcError(Exception):
    """A request that gets a JSON-RPC error object; `status` is the HTTP status it travels on."""

    def __init__(self, code: int, message: str, rpc_id: RpcId = None, *, status: int = 200) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.rpc_id = rpc_id
        self.status = status

    def body(self) -> bytes:
        """The response envelope."""
        return msgspec.json.encode(
            {"jsonrpc": "2.0", "error": {"code": self.code, "message": self.message}, "id": self.rpc_id}
        )


@dataclass(frozen=True, slots=True)
class Call:
    """One request whose envelope is sound; `params` is still whatever JSON the caller sent."""

    rpc_id: RpcId
    method: str
    params: Any


class _DuplicateKey(ValueError):
    pass


def read_call(body: bytes) -> Call:
    """Decode one JSON-RPC request.

    Raises:
        RpcError: -32700 when it is not JSON, -32600 when it is no sound request, -32602 for forbidden text.
    """
    text = _decode(body)
    envelope = _parse(text)
    if not isinstance(envelope, dict):
        raise RpcError(INVALID_REQUEST, "want one request object; batches are not supported")
    rpc_id = _read_id(envelope)
    if envelope.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, 'want "jsonrpc": "2.0"', rpc_id)
    method = envelope.get("method")
    if not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, "method must be a string", rpc_id)
    if "\\u" in text and _has_forbidden_text(envelope):
        raise RpcError(INVALID_PARAMS, "text may hold neither NUL nor a lone surrogate", rpc_id)
    return Call(rpc_id, method, envelope.get("params"))


def _decode(body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RpcError(PARSE_ERROR, "the body is not UTF-8") from None


def _parse(text: str) -> Any:
    brackets = text.count("[") + text.count("{")
    if brackets > MAX_BRACKETS:
        raise RpcError(INVALID_REQUEST, f"more than {MAX_BRACKETS} objects and arrays")
    try:
        value = json.loads(text, object_pairs_hook=_without_twins, parse_constant=_refuse_constant)
    except json.JSONDecodeError as wrong:
        raise RpcError(PARSE_ERROR, f"not JSON: {wrong.msg} at character {wrong.pos}") from None
    except _DuplicateKey as twin:
        raise RpcError(INVALID_REQUEST, str(twin)) from None
    except RecursionError:
        raise RpcError(INVALID_REQUEST, f"nested deeper than {MAX_DEPTH} levels") from None
    except ValueError:
        raise RpcError(INVALID_REQUEST, "a number is too long") from None
    if brackets > MAX_DEPTH and is_deeper_than(value, MAX_DEPTH):
        raise RpcError(INVALID_REQUEST, f"nested deeper than {MAX_DEPTH} levels")
    return value


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _DuplicateKey("an object names one key twice")
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise json.JSONDecodeError(f"{name} is not JSON", name, 0)


def _read_id(envelope: dict[str, Any]) -> RpcId:
    if "id" not in envelope:
        raise RpcError(INVALID_REQUEST, "id is missing; notifications are not supported")
    rpc_id = envelope["id"]
    sound = rpc_id is None or (isinstance(rpc_id, str) and not _is_forbidden(rpc_id))
    if sound or (type(rpc_id) is int and -INT64 <= rpc_id < INT64):
        return rpc_id  # type: ignore[no-any-return]
    raise RpcError(INVALID_REQUEST, "id must be a string, a 64-bit integer or null")


def is_deeper_than(value: Any, levels: int) -> bool:
    """Whether objects and arrays lie deeper in each other than that."""
    layer = [value]
    for _ in range(levels):
        layer = [inner for outer in layer for inner in _children(outer)]
        if not layer:
            return False
    return any(isinstance(inner, dict | list) for inner in layer)


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _has_forbidden_text(value: Any) -> bool:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str) and _is_forbidden(item):
            return True
        if isinstance(item, dict):
            waiting.extend(item)
        waiting.extend(_children(item))
    return False


def _is_forbidden(text: str) -> bool:
    return "\0" in text or any("\ud800" <= character <= "\udfff" for character in text)
