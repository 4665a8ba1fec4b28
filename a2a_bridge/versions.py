"""Which dialect a request speaks: by its `A2A-Version` and the shape of its method's name.

Methods of A2A 0.3 hold a slash; A2A 1.0 and the hub share PascalCase names, so the version tells them apart.
"""

from collections.abc import Sequence

from a2a_bridge.dialects.dialect import Dialect
from a2a_bridge.dialects.hub import HubDialect
from a2a_bridge.dialects.v03 import V03Dialect
from a2a_bridge.dialects.v1 import V1Dialect
from a2a_bridge.errors import VERSION_NOT_SUPPORTED
from kit.asgi import Scope, headers_named, query_values
from kit.jsonrpc import METHOD_NOT_FOUND, RpcError

HUB = HubDialect()
V03 = V03Dialect()
V1 = V1Dialect()
DIALECTS: tuple[Dialect, ...] = (HUB, V03, V1)
V1_VERSIONS = frozenset({"1", "1.0"})
OLD_VERSIONS = frozenset({"", "0.3"})


def versions_of(scope: Scope) -> list[str]:
    """What a request says of its version: its headers, else its query."""
    return headers_named(scope, b"a2a-version") or query_values(scope, "A2A-Version")


def speaks_v1(versions: Sequence[str]) -> bool:
    """Whether the version is 1.0; the patch does not count."""
    return _named(versions) in V1_VERSIONS


def of_errors(versions: Sequence[str]) -> Dialect:
    """The dialect of an error that comes before there is a method. -32009 is one of 1.0, which has details."""
    return HUB if _named(versions) in OLD_VERSIONS else V1


def choose(method: str, versions: Sequence[str]) -> Dialect:
    """The dialect of a method's name.

    Raises:
        RpcError: -32009 for a version not spoken here.
    """
    named = _named(versions)
    if named in V1_VERSIONS:
        return V1
    if named in OLD_VERSIONS:
        return V03 if "/" in method else HUB
    raise unsupported()


def unsupported() -> RpcError:
    """-32009."""
    return RpcError(VERSION_NOT_SUPPORTED, "want A2A-Version 1.0 or 0.3, or none")


def no_method(method: str) -> RpcError:
    """-32601; when another version has it, with what to send."""
    version = next((one.name for one in (V1, V03) if method in one.methods), "")
    return RpcError(
        METHOD_NOT_FOUND, f"no method {method[:60]!r} here{f': send A2A-Version: {version}' if version else ''}"
    )


def _named(versions: Sequence[str]) -> str | None:
    """Major and minor; None when a request contradicts itself."""
    asked = {version.strip() for version in versions} or {""}
    return ".".join(asked.pop().split(".")[:2]) if len(asked) == 1 else None
