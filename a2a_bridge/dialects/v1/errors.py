"""What A2A 1.0 says about an error besides: google.rpc ErrorInfo, and which field is wrong."""

from typing import Any

from kit.jsonrpc import INVALID_PARAMS, RpcError

DOMAIN = "a2a-protocol.org"
OWN_DOMAIN = "clawbridge"
REASONS = {
    -32700: "PARSE_ERROR",
    -32600: "INVALID_REQUEST",
    -32601: "METHOD_NOT_FOUND",
    -32602: "INVALID_PARAMS",
    -32603: "INTERNAL_ERROR",
    -32001: "TASK_NOT_FOUND",
    -32002: "TASK_NOT_CANCELABLE",
    -32003: "PUSH_NOTIFICATION_NOT_SUPPORTED",
    -32004: "UNSUPPORTED_OPERATION",
    -32005: "CONTENT_TYPE_NOT_SUPPORTED",
    -32006: "INVALID_AGENT_RESPONSE",
    -32007: "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
    -32008: "EXTENSION_SUPPORT_REQUIRED",
    -32009: "VERSION_NOT_SUPPORTED",
}
OWN_REASONS = {
    -32010: "UNAUTHENTICATED",
    -32011: "FOREIGN_ORIGIN",
    -32012: "AGENT_NOT_FOUND",
    -32013: "UNAVAILABLE",
    -32014: "TOO_MANY_STREAMS",
    -32015: "REFUSED",
    -32016: "IDEMPOTENCY_KEY_REUSED",
    -32017: "INSUFFICIENT_SCOPE",
}


def with_details(error: RpcError) -> RpcError:
    """The error with its `data`."""
    if error.data is None:
        error.data = details_of(error)
    return error


def details_of(error: RpcError) -> list[dict[str, Any]]:
    """ErrorInfo, and for parameters the field."""
    reason = REASONS.get(error.code)
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": reason or OWN_REASONS.get(error.code, "ERROR"),
        "domain": DOMAIN if reason else OWN_DOMAIN,
        "metadata": {},
    }
    if error.code != INVALID_PARAMS:
        return [info]
    violation = {"field": error.field or "params", "description": error.message}
    return [info, {"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [violation]}]
