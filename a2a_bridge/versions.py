"""Which dialect a request speaks, by its `A2A-Version` and the shape of its method's name; and its extensions.

Methods of A2A 0.3 hold a slash; A2A 1.0 and the hub share PascalCase names, so the version tells them apart. Of
the extensions a request asks for, what the card has of them is active; others are ignored.
"""

from a2a_bridge.dialects.dialect import Dialect
from a2a_bridge.dialects.hub import HubDialect
from a2a_bridge.dialects.v03 import V03Dialect
from a2a_bridge.dialects.v1 import V1Dialect
from a2a_bridge.dialects.v1.card import EXTENSION_PATH
from a2a_bridge.errors import VERSION_NOT_SUPPORTED
from kit.asgi import Header, HttpRequest
from kit.jsonrpc import METHOD_NOT_FOUND, RpcError

HUB = HubDialect()
V03 = V03Dialect()
V1 = V1Dialect()
DIALECTS: tuple[Dialect, ...] = (HUB, V03, V1)
V1_VERSIONS = frozenset({"1", "1.0"})
OLD_VERSIONS = frozenset({"", "0.3"})
KNOWN = V1_VERSIONS | OLD_VERSIONS
EXTENSION_HEADERS = ("a2a-extensions", "x-a2a-extensions")


def version_of(request: HttpRequest) -> str | None:
    """Major and minor of the version in the headers, else in the query; None: the request contradicts itself."""
    named = request.values("a2a-version") or request.query_values("A2A-Version")
    if len(named) > 1 and len({version.strip() for version in named}) > 1:
        return None
    version = named[0].strip() if named else ""
    return version if version in KNOWN else ".".join(version.split(".")[:2])


def error_dialect(version: str | None) -> Dialect:
    """The dialect of an error that comes before there is a method. -32009 is one of 1.0, which has details."""
    return HUB if version in OLD_VERSIONS else V1


def choose(method: str, version: str | None) -> Dialect:
    """The dialect of a method's name.

    Raises:
        RpcError: -32009 for a version not spoken here.
    """
    if version in V1_VERSIONS:
        return V1
    if version in OLD_VERSIONS:
        return V03 if "/" in method else HUB
    raise RpcError(VERSION_NOT_SUPPORTED, "want A2A-Version 1.0 or 0.3, or none")


def no_method(method: str) -> RpcError:
    """-32601; when another version has it, with what to send."""
    version = next((one.name for one in (V1, V03) if method in one.methods), "")
    return RpcError(
        METHOD_NOT_FOUND, f"no method {method[:60]!r} here{f': send A2A-Version: {version}' if version else ''}"
    )


def activated(request: HttpRequest, public_url: str) -> list[Header]:
    """The headers that say which extensions are active, under the names they were asked for by."""
    found: list[Header] = []
    for name in EXTENSION_HEADERS:
        if name in request.headers:
            asked = {uri.strip() for value in request.values(name) for uri in value.split(",")}
            if (ours := f"{public_url}{EXTENSION_PATH}") in asked:
                found.append((name.encode(), ours.encode()))
    return found
