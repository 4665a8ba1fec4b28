"""Parameters of the HTTP+JSON binding: from path, query and body, as JSON-RPC would have them."""

from urllib.parse import parse_qsl

from a2a_bridge.dialects.dialect import Operation
from a2a_bridge.dialects.reading import invalid
from agents.pieces import Json
from kit.asgi import Scope
from kit.jsonrpc import INVALID_PARAMS, RpcError, parse
from kit.strict_json import ForbiddenText, check_strings, is_forbidden

MAX_QUERY_PARAMETERS = 64
FLAGS = ("includeArtifacts", "include_artifacts")
MAY_BE_EMPTY = frozenset({Operation.CANCEL, Operation.SUBSCRIBE})


def params_of(scope: Scope, operation: Operation, names: dict[str, str], body: bytes) -> Json:
    """Parameters of an operation. What the path says counts.

    Raises:
        RpcError: query or body are no parameters at all.
    """
    if scope["method"] in ("GET", "HEAD"):
        return read_query(scope.get("query_string", b"")) | names
    if scope["method"] == "DELETE" or (operation in MAY_BE_EMPTY and not body.strip()):
        return dict(names)
    return read_object(body) | names


def read_object(body: bytes) -> Json:
    """A body that holds parameters.

    Raises:
        RpcError: -32700 when it is not JSON, -32600 when no sound program sends it, -32602 else.
    """
    text, value = parse(body)
    if not isinstance(value, dict):
        raise invalid("body", "the body must be an object")
    try:
        check_strings(text, value)
    except ForbiddenText as wrong:
        raise RpcError(INVALID_PARAMS, str(wrong)) from None
    return value


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
