"""A2A 1.0 as the merged card promises it: no push notifications, no extended card (docs/adr/0041)."""

from dataclasses import replace
from typing import Any

from a2a_bridge.wire.dialects.dialect import Operation
from a2a_bridge.wire.dialects.v1 import V1
from a2a_bridge.wire.errors import PUSH_NOTIFICATION_NOT_SUPPORTED, UNSUPPORTED_OPERATION
from a2a_bridge.wire.requests import Request, Send
from kit.jsonrpc import RpcError

CORE = "core"  # the last segment of the address, below the agent's base
PUSHES = frozenset({Operation.CREATE_PUSH, Operation.GET_PUSH, Operation.LIST_PUSH, Operation.DELETE_PUSH})
INSTEAD = "a card that is fetched with A2A-Version: 1.0 names an address that has"


def read_core(operation: Operation, params: Any) -> Request:
    """Read parameters of 1.0.

    Raises:
        RpcError: as in `V1`; -32003 or -32004, with any parameters, for an operation that the merged card denies.
    """
    if operation in PUSHES:
        raise _no_push()
    if operation is Operation.SHOW_CARD:
        raise RpcError(UNSUPPORTED_OPERATION, f"no extended card here: {INSTEAD} one")
    request = V1.read(operation, params)
    if isinstance(request, Send) and request.push is not None:
        raise _no_push()
    return request


def _no_push() -> RpcError:
    return RpcError(PUSH_NOTIFICATION_NOT_SUPPORTED, f"no push notifications here: {INSTEAD} them")


V1_CORE = replace(V1, read=read_core)
