"""Which dialect a request speaks: by its `A2A-Version` header and the shape of its method's name.

Methods of A2A 0.3 hold a slash; A2A 1.0 and the hub share PascalCase names, so the header tells them apart.
"""

from collections.abc import Sequence

from a2a_bridge.errors import VERSION_NOT_SUPPORTED
from a2a_bridge.methods import METHODS, Method
from kit.jsonrpc import METHOD_NOT_FOUND, Call, RpcError

HUB_VERSIONS = ("", "0.3")


def choose(call: Call, versions: Sequence[str]) -> Method:
    """The method a call names, in its dialect. The hub's own is the one there is so far.

    Raises:
        RpcError: -32009 for a version not spoken here, -32601 for a method the dialect does not have.
    """
    asked = {version.strip() for version in versions} or {""}
    if len(asked) > 1 or ".".join(asked.pop().split(".")[:2]) not in HUB_VERSIONS:
        raise RpcError(
            VERSION_NOT_SUPPORTED, "this agent speaks the hub dialect: send no A2A-Version", call.rpc_id
        )
    method = METHODS.get(call.method)
    if method is None:
        raise RpcError(METHOD_NOT_FOUND, f"no method {call.method[:60]!r} here", call.rpc_id)
    return method
